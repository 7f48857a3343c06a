/* roofline.js - each kernel as a dot: how many operations it does for a byte, and how many a second. The lines are what the machine
 * was measured to do at most: on the slope memory limits, on the flat arithmetic does. Numbers stand in the dots and in the list. */
"use strict";

function rooflinePoints(run) {
  const points = [];
  for (const s of run.series) {
    if (!s[7] || !(s[9] > 0) || !(s[10] > 0)) continue;
    const name = s[1] || s[2], key = s[0] + "\n" + name;
    let p = points.find((q) => q.key === key);
    if (!p) points.push(p = { key, phase: s[0], name, kind: kindOf(s[2], s[1], ""), ns: 0, bytes: 0, flops: 0 });
    p.ns += s[7];
    p.bytes += s[9];
    p.flops += s[10];
  }
  const all = points.reduce((sum, p) => sum + p.ns, 0);
  for (const p of points) {
    p.x = p.flops / p.bytes;
    p.y = p.flops / p.ns;
    p.gbs = p.bytes / p.ns;
    p.share = all ? p.ns / all : 0;
  }
  return points.sort((a, b) => b.ns - a.ns);
}

function rooflineLimits(run) {
  const c = run.ceilings;
  const memory = [["memory, huge pages", c.read_gbs], ["memory, 4 KiB pages", c.read_small_gbs]].filter((m) => m[1] > 0);
  const compute = [["int8", c.int8_gops], ["bf16", c.bf16_gflops], ["f32", c.f32_gflops]].filter((m) => m[1] > 0);
  return { memory, compute };
}

function roofline(run) {
  const points = rooflinePoints(run), limits = rooflineLimits(run), numbered = points.slice(0, 8);
  if (!points.length) return [none("No step of this run says how many bytes it moves and how many operations it does, so there is nothing to place.")];

  const box = drawing((b, width) => {
    const height = Math.max(280, Math.min(440, width * 0.5));
    const p = plot(b, width, height, { left: 46, right: 12, top: 24, bottom: 44 });
    const tops = limits.compute.map((l) => l[1]), bandwidth = Math.max(0, ...limits.memory.map((l) => l[1]));
    const ridge = bandwidth ? Math.max(0, ...tops) / bandwidth : 0;
    const xs = points.map((q) => q.x), ys = points.map((q) => q.y);
    const x = logarithmic(Math.min(...xs) / 2.5, Math.max(ridge * 1.5, ...xs) * 2.5, p.x0, p.x1);
    const y = logarithmic(Math.min(...ys) / 2.5, Math.max(...tops, ...ys) * 2.5, p.y0, p.y1);
    axes(p, x, y, x.ticks(), y.ticks(), shortBig, shortBig, "operations per byte", "GFLOP/s");
    const labels = roofs(p, x, y, limits, width);
    for (const q of points.slice().reverse()) bubble(p, x(q.x), y(q.y), q, numbered.indexOf(q), width);
    p.root.append(...labels);
  }, "Roofline: operations a second over operations per byte, on logarithmic axes");

  const rows = numbered.map((q, i) => el("tr", {}, el("td", {}, dot(color(q.kind)), `${i + 1}. ${q.name}`), el("td", {}, q.phase),
    el("td", {}, percent(q.share)), el("td", {}, digits(q.gbs, 3)), el("td", {}, digits(q.y, 3)), el("td", {}, digits(q.x, 3)),
    el("td", {}, limits.memory.length ? percent(q.gbs / limits.memory[0][1], 0) : "–")));
  const table = el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["kernel", "phase", "of step time", "GB/s", "GFLOP/s",
    "op/byte", "of memory's speed"].map((t) => el("th", {}, t)))), el("tbody", {}, rows)));
  const missing = limits.memory.length ? "" : none("The trace has no ceilings of its machine, so the lines are missing; `quern doctor` measures them.");
  return [box, missing, el("h3", {}, "The dots with most time"), table];
}

/* Draws the lines; their names are handed back, to stand above the dots. */
function roofs(p, x, y, limits, width) {
  const labels = [], right = p.x1, peak = Math.max(0, ...limits.compute.map((l) => l[1]));
  const clipX = (v) => Math.min(Math.max(v, p.x0), p.x1);
  for (const [i, [name, gbs]] of limits.memory.entries()) {
    const d = [];
    for (let px = p.x0; px <= right; px += 2) { /* walk along the axis: the line ends where arithmetic takes over */
      const v = invert(x, px), ops = gbs * v;
      if (peak && ops > peak) break;
      const py = y(ops);
      if (py <= p.y0 && py >= p.y1) d.push(`${d.length ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`);
    }
    if (!d.length) continue;
    p.root.append(svg("path", { d: d.join(""), fill: "none", stroke: "var(--ink)", "stroke-width": i ? 1 : 2, "stroke-dasharray": i ? "4 4" : null,
      opacity: i ? 0.5 : 0.8 }));
    const mid = d[Math.min(d.length - 1, 4)].slice(1).split(" ").map(Number);
    const text = width < 520 ? `${digits(gbs, 3)} GB/s` : `${name}: ${digits(gbs, 3)} GB/s`;
    const angle = Math.atan2(y(gbs * 10) - y(gbs), x(10) - x(1)) * 180 / Math.PI;
    labels.push(svg("text", { class: "ink halo", x: mid[0], y: mid[1] + (i ? 15 : -7), transform: `rotate(${angle.toFixed(1)} ${mid[0]} ${mid[1]})`,
      "text-anchor": "start" }, text));
  }
  const bandwidth = Math.max(0, ...limits.memory.map((l) => l[1]));
  let above = Infinity; /* the label before: names of ceilings that lie close keep apart */
  for (const [name, ops] of [...limits.compute].sort((a, b) => a[1] - b[1])) {
    const from = bandwidth ? clipX(x(ops / bandwidth)) : p.x0;
    p.root.append(svg("line", { x1: from, x2: right, y1: y(ops), y2: y(ops), stroke: "var(--ink)", "stroke-width": ops === peak ? 2 : 1,
      opacity: ops === peak ? 0.8 : 0.5, "stroke-dasharray": ops === peak ? null : "4 4" }));
    above = Math.min(y(ops) - 5, above - 13);
    labels.push(svg("text", { class: "ink halo", x: right - 2, y: above, "text-anchor": "end" }, `${name} ${digits(ops, 3)}`));
  }
  return labels;
}

/* The value at a pixel of a logarithmic axis, from two known points of it. */
function invert(x, px) {
  const one = x(1), ten = x(10);
  return Math.pow(10, (px - one) / (ten - one));
}

function bubble(p, cx, cy, q, rank, width) {
  const r = Math.max(rank >= 0 ? 9 : 4, Math.min(width < 520 ? 20 : 30, 34 * Math.sqrt(q.share)));
  const c = svg("circle", { cx, cy, r, fill: color(q.kind), "fill-opacity": q.phase === "decode" ? 0.85 : 0.55, stroke: "var(--card)",
    "stroke-width": 1.5, tabindex: 0, role: "img", "aria-label": `${q.name}, ${q.phase}: ${digits(q.y, 3)} GFLOP/s, ${digits(q.gbs, 3)} GB/s` });
  withTip(c, q.name, [["phase", q.phase], ["of step time", percent(q.share)], ["GFLOP/s", digits(q.y, 3)], ["GB/s", digits(q.gbs, 3)],
    ["op/byte", digits(q.x, 3)]]);
  p.root.append(c);
  if (rank >= 0) p.root.append(svg("text", { class: "on", x: cx, y: cy + 4, "text-anchor": "middle", "pointer-events": "none" }, String(rank + 1)));
}
