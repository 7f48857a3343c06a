/* curves.js - time against something that grows: each token's latency along the answer, with the disturbed ones marked, and what each
 * kernel costs a token at each position, as the straight lines that the analysis fitted. */
"use strict";

/* Tokens if the trace has them, else decode passes, a token of each: [{x, ns, disturbed, pos}] */
function latencyPoints(run) {
  if (run.tokens.length > 1) return run.tokens.filter((t) => t[2] > 0).map((t) => ({ x: t[2], ns: t[1], pos: t[3], disturbed: !!t[4] }));
  let made = 0;
  return run.passes.filter((p) => p[3] === "decode").map((p) => {
    const each = Math.max(1, p[4]) / Math.max(1, p[7]); /* tokens of one sequence in the pass */
    return { x: made += each, ns: p[1] / each, pos: p[5], disturbed: !!p[6] };
  });
}

function latency(run) {
  const points = latencyPoints(run);
  if (points.length < 2) return [none("Fewer than two tokens were timed one by one in this run.")];
  const sorted = points.map((p) => p.ns).sort((a, b) => a - b), at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const decode = run.phases.find((p) => p.phase === "decode") || {}, gaps = run.gaps || decode.token_ns;
  const p50 = gaps ? gaps.p50 : at(0.5), p95 = gaps ? gaps.p95 : at(0.95);
  const top = Math.max(at(0.999), p95) > 6 * p50 ? Math.max(2.5 * p95, at(0.9) * 2) : sorted[sorted.length - 1] * 1.08;
  const low = Math.min(sorted[0], p50) > 0.4 * top ? sorted[0] - 0.25 * (top - sorted[0]) : 0;
  const [per, unit] = unitOf(top), off = points.filter((p) => p.ns > top).length, marked = points.filter((p) => p.disturbed).length;

  const box = drawing((b, width) => {
    const p = plot(b, width, 280, { left: 48, right: 14, top: 24, bottom: 44 });
    const x = linear(Math.min(...points.map((q) => q.x)), Math.max(...points.map((q) => q.x)), p.x0 + 4, p.x1 - 4);
    const y = linear(low / per, top / per, p.y0, p.y1);
    axes(p, x, y, x.ticks(Math.min(10, width / 90)), y.ticks(5), (v) => grouped(v), short, "token of the answer", unit);
    for (const v of [p50, p95])
      p.root.append(svg("line", { x1: p.x0, x2: p.x1, y1: y(v / per), y2: y(v / per), stroke: "var(--ink)", "stroke-dasharray": "5 4", opacity: 0.55 }));
    const r = points.length > 800 ? 1.6 : points.length > 200 ? 2.2 : 3;
    for (const q of points) if (!q.disturbed) p.root.append(mark(q, x(q.x), y(Math.min(q.ns, top) / per), r, "var(--c0)"));
    for (const q of points) if (q.disturbed) p.root.append(mark(q, x(q.x), y(Math.min(q.ns, top) / per), r + 2, "var(--c1)", q.ns > top));
    const near = y(p50 / per) - y(p95 / per) < 22;
    for (const [v, name] of [[p50, "p50"], [p95, "p95"]])
      p.root.append(svg("text", { class: "ink halo", x: p.x1 - 2, y: y(v / per) + (near && name === "p50" ? 16 : -8), "text-anchor": "end" }, `${name} ${time(v)}`));
  }, "Time of each token along the answer");
  return [box, el("ul", { class: "legend" }, el("li", {}, dot("var(--c0)"), "token"),
    marked ? el("li", {}, dot("var(--c1)"), `disturbed: ${marked}` + (run.disturbed_ns ? `, ${time(run.disturbed_ns)} lost in all` : "")) : "",
    off ? el("li", {}, `${off} beyond the top of the drawing are shown at its edge`) : "")];
}

function mark(q, cx, cy, r, fill, over) {
  const shape = over ? svg("path", { d: `M${cx - r} ${cy + r}L${cx + r} ${cy + r}L${cx} ${cy - r}Z`, fill })
    : svg("circle", { cx, cy, r, fill, "fill-opacity": q.disturbed ? 1 : 0.75 });
  return withTip(shape, `token ${q.x}`, [["took", time(q.ns)], ["position", q.pos >= 0 ? grouped(q.pos) : "–"], ["disturbed", q.disturbed ? "yes" : "no"]]);
}

/* What has grown since the first position: lines that start at zero show a slope that a large constant would hide. */
function growth(run) {
  const lines = run.growth.filter((g) => g.x_hi > g.x_lo && finite(g.slope_ns));
  if (!lines.length) return [none("The trace has too few positions to say whether time grows with them.")];
  const moving = lines.filter((g, i) => i === 0 || g.kind === "grows" || g.kind === "shrinks"), shown = moving.slice(0, 6), flat = lines.length - moving.length;
  const box = drawing((b, width) => {
    const p = plot(b, width, 280, { left: 52, right: 14, top: 24, bottom: 44 });
    const [per, unit] = unitOf(Math.max(1, ...shown.filter((g) => g.kind !== "flat").map((g) => Math.abs(g.last_ns - g.first_ns))) * 2);
    const since = (g) => g.kind === "flat" ? 0 : (g.last_ns - g.first_ns) / per, ends = shown.map(since);
    const x = linear(Math.min(...shown.map((g) => g.x_lo)), Math.max(...shown.map((g) => g.x_hi)), p.x0, p.x1);
    const y = linear(Math.min(0, ...ends) * 1.1, Math.max(0, ...ends) * 1.1 || 1, p.y0, p.y1);
    axes(p, x, y, x.ticks(Math.min(8, width / 90)), y.ticks(5), grouped, short, "position", `${unit} a token, more than at the first position`);
    shown.forEach((g, i) => {
      const line = svg("line", { x1: x(g.x_lo), x2: x(g.x_hi), y1: y(0), y2: y(since(g)), stroke: color(i), "stroke-width": i ? 2.5 : 3.5,
        "stroke-linecap": "round", "stroke-dasharray": g.kind === "flat" ? "1 7" : null, tabindex: 0, role: "img", "aria-label": `${g.name}: ${g.verdict}` });
      p.root.append(withTip(line, g.name, growthRows(g)));
    });
  }, "Growth of a token's time with position");
  const rows = moving.map((g, i) => el("tr", {}, el("td", {}, i < 6 ? dot(color(i)) : "", g.name),
    el("td", { class: "text" }, el("span", { class: g.kind === "grows" ? "warn" : "soft" }, g.verdict)),
    el("td", {}, `${digits(g.slope_ns / 1e3, 3)} ± ${digits(1.96 * g.error_ns / 1e3, 2)}`), el("td", {}, digits(g.r2, 2))));
  return [box, el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "kernel"), el("th", { class: "text" }, "verdict"),
    el("th", {}, "µs per position"), el("th", {}, "R²"))), el("tbody", {}, rows))),
    flat ? el("p", { class: "why below" }, `${flat} more ${flat === 1 ? "kernel is" : "kernels are"} flat.`) : ""];
}

const growthRows = (g) => [["at position " + grouped(g.x_lo), time(g.first_ns)], ["at position " + grouped(g.x_hi), time(g.last_ns)],
  ["per position", time(g.slope_ns)], ["R²", digits(g.r2, 2)], ["", g.verdict]];
