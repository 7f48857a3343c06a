/* probe.js - the page of a probe: for each shape a bar for every variant, beside the least time that the machine's ceilings allow;
 * an overview of how near the best of each shape comes to that; all figures as a table. */
"use strict";

const probeTime = (s, v) => v[s.by] ? v[s.by].p50 : NaN;
const timed = (s) => s.variants.filter((v) => v.right && finite(probeTime(s, v))).sort((a, b) => probeTime(s, a) - probeTime(s, b));
const reach = (s) => { const t = timed(s); return t.length && s.ceiling_ns ? s.ceiling_ns / probeTime(s, t[0]) : NaN; };
const variantColor = (v) => v.library ? "var(--c1)" : v.engine ? "var(--c0)" : "var(--c6)";

function variantTags(v) {
  const tags = [];
  if (v.library) tags.push(["baseline", "soft"]);
  if (v.best) tags.push(["best", "good"]);
  if (v.engine) tags.push(["engine", "soft"]);
  if (v.right === false) tags.push(["wrong", "bad"]);
  if (v.cached) tags.push(["cached", "soft"]);
  return tags.map(([text, c]) => el("span", { class: "chip " + c }, text));
}

/* Bars of time, the shortest first, with the interval of each median; a dashed line where the ceiling is. What takes more than so many
 * times the best is cut and says so. */
const CUT = 6;
function variantBars(s) {
  const list = timed(s), row = 26;
  if (!list.length) return none("Nobody got this shape right.");
  const best = probeTime(s, list[0]), most = Math.min(CUT * best, probeTime(s, list[list.length - 1])) * 1.02;
  return drawing((b, width) => {
    const left = Math.min(260, Math.round(width * 0.45));
    const p = plot(b, width, list.length * row + 48, { left, right: 16, top: 20, bottom: 28 });
    const x = linear(0, Math.max(most, s.ceiling_ns * 1.05), p.x0, p.x1);
    for (const v of x.ticks(Math.max(2, (p.x1 - p.x0) / 110))) p.root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: p.y1, y2: p.y0 }),
      svg("text", { x: Math.min(x(v), width - 30), y: p.y0 + 18, "text-anchor": "middle" }, shortTime(v)));
    list.forEach((v, i) => variantBar(p, x, s, v, p.y1 + i * row, row));
    if (s.ceiling_ns) p.root.append(svg("line", { x1: x(s.ceiling_ns), x2: x(s.ceiling_ns), y1: p.y1 - 4, y2: p.y0, stroke: "var(--bad)", "stroke-width": 1.5,
      "stroke-dasharray": "4 3" }), svg("text", { class: "ink", x: Math.max(x(s.ceiling_ns), p.x0 + 30), y: 12, "text-anchor": x(s.ceiling_ns) > width - 60 ? "end" : "middle" }, "ceiling"));
  }, "Variants of " + s.spec);
}

function variantBar(p, x, s, v, y, row) {
  const t = v[s.by], mid = y + row / 2, end = Math.min(x(t.p50), p.x1), cut = x(t.p50) > p.x1 + 1;
  const bar = svg("rect", { x: p.x0, y: mid - 8, width: Math.max(1, end - p.x0), height: 16, rx: 2, fill: variantColor(v), "fill-opacity": v.best ? 1 : 0.65,
    tabindex: 0, role: "img", "aria-label": `${v.name}: ${time(t.p50)}` });
  withTip(bar, v.name, [[s.by, `${time(t.p50)}, ${time(t.lo)} to ${time(t.hi)}`], ["samples", grouped(t.n)],
    ["GB/s", digits(s.bytes / t.p50, 3)], ["GFLOP/s", digits(s.flops / t.p50, 3)], ["of the ceiling", s.ceiling_ns ? percent(s.ceiling_ns / t.p50, 0) : "–"],
    ["largest error", v.max_abs.toExponential(1)]]);
  p.root.append(bar, svg("text", { class: "ink", x: p.x0 - 8, y: mid + 4, "text-anchor": "end" }, fit(v.name, p.x0 - 12)));
  if (cut) p.root.append(svg("text", { class: "on", x: p.x1 - 6, y: mid + 4, "text-anchor": "end" }, time(t.p50)));
  else p.root.append(svg("line", { x1: Math.min(x(t.lo), p.x1), x2: Math.min(x(t.hi), p.x1), y1: mid, y2: mid, stroke: "var(--ink)", "stroke-width": 1.5 }));
}

/* One row for each shape: how near its best comes to the ceiling, ours and the libraries'. */
function overview(specs) {
  const shown = specs.filter((s) => finite(reach(s))), row = 22;
  if (!shown.length) return none("No ceiling is known: `quern doctor` measures them.");
  return drawing((b, width) => {
    const p = plot(b, width, shown.length * row + 48, { left: Math.min(430, Math.round(width * 0.5)), right: 18, top: 18, bottom: 28 });
    const most = Math.max(1, ...shown.flatMap((s) => timed(s).map((v) => s.ceiling_ns / probeTime(s, v)))), x = linear(0, most * 1.04, p.x0, p.x1);
    for (const v of x.ticks(Math.max(2, (p.x1 - p.x0) / 90))) p.root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: p.y1, y2: p.y0 }),
      svg("text", { x: Math.min(x(v), width - 22), y: p.y0 + 18, "text-anchor": "middle" }, percent(v, 0)));
    p.root.append(svg("line", { x1: x(1), x2: x(1), y1: p.y1 - 4, y2: p.y0, stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "4 3" }));
    shown.forEach((s, i) => overviewRow(p, x, s, p.y1 + i * row + row / 2));
  }, "The best of each shape against the ceiling");
}

function overviewRow(p, x, s, mid) {
  const seen = new Set();
  p.root.append(svg("text", { class: "ink", x: p.x0 - 8, y: mid + 4, "text-anchor": "end" }, fit(s.spec.replace("op=", ""), p.x0 - 12)));
  for (const v of timed(s)) {
    const kind = v.library ? "library" : v.engine ? "engine" : "ours";
    if (seen.has(kind)) continue;
    seen.add(kind);
    const share = s.ceiling_ns / probeTime(s, v), c = svg("circle", { cx: x(share), cy: mid, r: v.best ? 6 : 4, fill: variantColor(v), stroke: "var(--card)", tabindex: 0, role: "img",
      "aria-label": `${s.spec}, ${v.name}: ${percent(share, 0)}` });
    p.root.append(withTip(c, v.name, [["of the ceiling", percent(share, 0)], [s.by, time(probeTime(s, v))]]));
  }
}

const PROBE_COLUMNS = [
  { name: "variant", get: (r) => r.v.name, show: (t, r) => el("span", {}, t, " ", variantTags(r.v)) },
  { name: "shape", get: (r) => r.s.spec, text: true },
  { name: "warm", get: (r) => r.v.warm ? r.v.warm.p50 : NaN, show: time },
  { name: "cold", get: (r) => r.v.cold ? r.v.cold.p50 : NaN, show: time },
  { name: "±", get: (r) => r.v[r.s.by] ? (r.v[r.s.by].hi - r.v[r.s.by].lo) / 2 / r.v[r.s.by].p50 : NaN, show: (v) => percent(v) },
  { name: "GB/s", get: (r) => r.s.bytes / probeTime(r.s, r.v), show: (v) => digits(v, 3) },
  { name: "GFLOP/s", get: (r) => r.s.flops / probeTime(r.s, r.v), show: (v) => digits(v, 3) },
  { name: "of ceiling", get: (r) => r.s.ceiling_ns ? r.s.ceiling_ns / probeTime(r.s, r.v) : NaN, show: (v) => percent(v, 0) },
  { name: "max abs", get: (r) => r.v.max_abs, show: (v) => v.toExponential(1) },
  { name: "max rel", get: (r) => r.v.max_rel, show: (v) => v.toExponential(1) },
  { name: "NMSE", get: (r) => r.v.nmse, show: (v) => v.toExponential(1) },
];

function absentTable(specs) {
  const reasons = new Map();
  for (const s of specs) for (const v of s.variants) if (v.misses) {
    const key = v.name + "\n" + v.misses;
    reasons.set(key, (reasons.get(key) || 0) + 1);
  }
  const rows = [...reasons].map(([key, n]) => ({ name: key.split("\n")[0], why: key.split("\n")[1], n }));
  if (!rows.length) return [none("Every variant took every shape of its op.")];
  const t = sortable([{ name: "variant", get: (r) => r.name }, { name: "shapes not taken", get: (r) => r.n }, { name: "why", get: (r) => r.why, text: true }], rows,
    "Variants that took no part", 1, true);
  return [el("div", { class: "tools" }, t.filter, t.count), t.table];
}

function showProbe(data, page) {
  const specs = data.specs, rows = specs.flatMap((s) => s.variants.filter((v) => !v.misses).map((v) => ({ s, v })));
  const wrong = rows.filter((r) => r.v.right === false);
  const table = sortable(PROBE_COLUMNS, rows, "All results", -1, false), legendRow = (c, text) => el("li", {}, dot(c), text);
  const colors = () => el("ul", { class: "legend" }, legendRow("var(--c0)", "what an untuned engine takes"), legendRow("var(--c6)", "other variants"),
    legendRow("var(--c1)", "other libraries"), legendRow("var(--bad)", "the machine's ceiling"));
  const hold = el("div"), names = [...new Set(specs.map((s) => s.op))];
  const show = (op) => hold.replaceChildren(...specs.filter((s) => s.op === op).map((s) => el("div", { class: "contest" }, el("h3", { class: "mono" }, s.spec),
    variantBars(s), el("p", { class: "why below" }, `${s.verdict}. Ranked by the ${s.by} time.`))));
  page.replaceChildren(
    el("div", { class: "intro" }, el("h1", {}, "Kernels, measured"),
      el("p", { class: "sub" }, `${data.cpu} · ${data.threads} ${data.threads === 1 ? "thread" : "threads"} · ${data.isa} · ${grouped(specs.length)} shapes, ${grouped(data.n_variants)} variants`),
      el("p", { class: "sub" }, ceilingWords(data.ceilings)), data.baselines.map((t) => el("p", { class: "sub" }, t)),
      wrong.length ? el("p", { class: "alert" }, wrong.map((r) => `${r.v.name} is wrong at ${r.s.spec}: ${r.v.why}`).join("; ") + ".") : ""),
    section("overview", "Against the ceiling", "The least time that memory or arithmetic allows, divided by the time that was taken. To the right is better; a shape that fits the caches can pass 100 %.",
      overview(specs), colors()),
    section("shapes", "Variants by shape", "The shorter the bar, the faster; the thin line is the 95 % interval of the median.",
      el("div", { class: "tools" }, choice("Op", names.map((n) => [n, n]), names[0], show)), hold, colors()),
    section("results", "All results", "Press a column's name to sort by it.", el("div", { class: "tools" }, table.filter, table.count), table.table),
    section("absent", "What took no part", "Every pair that was not run has a reason.", absentTable(specs)));
  if (names.length) show(names[0]);
  document.getElementById("nav").replaceChildren(...[["overview", "overview"], ["shapes", "shapes"], ["results", "results"], ["absent", "not run"]].map(([id, t]) => el("a", { href: "#" + id }, t)));
}
