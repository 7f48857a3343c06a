/* icicle.js - where a phase's time is, as nested bars: widths are times, each bar lies under what it is a part of. A press on a bar
 * makes it as wide as the page. Built from the totals of the series, so it adds up to the steps' time. */
"use strict";

const ICICLE_ROW = 40;

function grow(node, name, ns, kind) {
  let child = node.index.get(name);
  if (!child) {
    child = { name, ns: 0, kind, parts: [], index: new Map(), parent: node };
    node.index.set(name, child);
    node.parts.push(child);
  }
  child.ns += ns;
  return child;
}

function icicleTree(run, phase, by) {
  const root = { name: phase, ns: 0, kind: -1, parts: [], index: new Map(), parent: null };
  for (const s of run.series) {
    if (s[0] !== phase || !s[7]) continue;
    const kind = kindOfSeries(s), role = shortRole(s), layer = s[5] >= 0 ? "layer " + s[5] : role || s[1] || "outside layers";
    const path = by === "layer" ? [layer, role || s[1]] : [s[2] || s[1], s[1], s[3] || ""];
    let node = root;
    root.ns += s[7];
    for (const [i, name] of path.entries()) {
      if (!name || (i && name === node.name)) continue;
      node = grow(node, name, s[7], by === "layer" && i === 0 && s[5] >= 0 ? -1 : kind);
    }
  }
  const sort = (n) => {
    const number = (p) => /^layer \d+$/.test(p.name) ? Number(p.name.slice(6)) : -1;
    if (by === "layer" && n === root) n.parts.sort((a, b) => number(a) - number(b));
    else n.parts.sort((a, b) => b.ns - a.ns);
    n.parts.forEach(sort);
  };
  sort(root);
  return root;
}

function icicle(run) {
  const many = (f) => run.series.filter((s) => s[0] === f && s[7]).length > 1, all = [...new Set(run.series.filter((s) => s[7]).map((s) => s[0]))];
  const phases = all.some(many) ? all.filter(many) : all; /* a phase of one thing has no inside */
  const hasLayers = run.series.some((s) => s[5] >= 0);
  let phase = phases.includes("decode") ? "decode" : phases[0], by = hasLayers ? "layer" : "op";
  let root = icicleTree(run, phase, by), focus = root;
  const crumbs = el("div", { class: "crumbs" });

  function go(node) {
    focus = node;
    untip();
    box.redraw();
  }

  const box = drawing((b, width) => {
    const depth = (n) => 1 + Math.max(0, ...n.parts.map(depth)), levels = depth(focus), height = levels * ICICLE_ROW;
    const p = plot(b, width, height, { left: 0, right: 0, top: 0, bottom: 0 });
    const put = (node, x, w, level) => {
      if (w < 0.6) return;
      bar(p.root, node, x, w, level * ICICLE_ROW);
      let at = x;
      for (const part of node.parts) {
        const share = node.ns ? part.ns / node.ns * w : 0;
        put(part, at, share, level + 1);
        at += share;
      }
    };
    put(focus, 0, width, 0);
    trail();
  }, "Time of a phase as nested bars");

  function bar(svgRoot, node, x, w, y) {
    const neutral = node.kind < 0;
    const rect = svg("rect", { class: "hit", x, y, width: Math.max(0.5, w - 1), height: ICICLE_ROW - 2, rx: w > 8 ? 3 : 0,
      fill: neutral ? "var(--grid)" : color(node.kind), tabindex: w > 14 ? 0 : null, role: "button",
      "aria-label": `${node.name}: ${time(node.ns)}, ${percent(node.ns / root.ns)}`, onclick: () => go(node),
      onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); go(node); } } });
    withTip(rect, node.name, [["time", time(node.ns)], ["of the phase", percent(node.ns / root.ns)],
      ["of its parent", node.parent ? percent(node.ns / node.parent.ns) : "–"]]);
    svgRoot.append(rect);
    const small = neutral && w < 40, room = small ? w - 2 : w - 10, whole = fit(node.name, room, !neutral) === node.name;
    const name = whole ? node.name : fit(node.name.replace(/^layer (?=\d)/, ""), room, !neutral);
    const two = w > 46;
    if (!name || (name.length < 3 && name.endsWith("…"))) return;
    svgRoot.append(svg("text", { class: neutral ? "ink" : "on", x: small ? x + w / 2 : x + 5, y: y + (two ? 16 : 24), "pointer-events": "none",
      "text-anchor": small ? "middle" : "start" }, name));
    if (two) svgRoot.append(svg("text", { class: neutral ? "" : "on", x: x + 5, y: y + 31, "pointer-events": "none",
      opacity: neutral ? 1 : 0.85 }, w > 130 ? `${time(node.ns)}, ${percent(node.ns / root.ns)}` : percent(node.ns / root.ns, w > 54 ? 1 : 0)));
  }

  function trail() {
    const way = [];
    for (let n = focus; n; n = n.parent) way.unshift(n);
    crumbs.replaceChildren(...way.flatMap((n, i) => [i ? " › " : "", n === focus ? n.name
      : el("button", { type: "button", onclick: () => go(n) }, n.name)]), `: ${time(focus.ns)}, ${percent(focus.ns / root.ns)} of ${root.name}`);
  }

  const remake = () => { root = icicleTree(run, phase, by); go(root); };
  const pickPhase = phases.length > 1 ? choice("Phase", phases.map((f) => [f, f]), phase, (v) => { phase = v; remake(); }) : "";
  const pickBy = hasLayers ? choice("Nesting", [["layer", "by layer"], ["op", "by op"]], by, (v) => { by = v; remake(); }) : "";
  return [el("div", { class: "tools" }, pickPhase, pickBy), crumbs, box, legend(run.series.filter((s) => s[7]).map(kindOfSeries))];
}
