/* compare.js - the page of a comparison: for each run beside the first a drawing of what changed, with intervals, and the figures. */
"use strict";

const VERDICT_CLASS = { slower: "bad", faster: "good", gone: "warn", new: "warn" };

const signed = (v, show) => !finite(v) ? "–" : v === 0 ? "0" : (v > 0 ? "+" : "−") + show(Math.abs(v));

function verdict(d) {
  if (d.regressed) return el("span", { class: "chip bad" }, "regression");
  if (VERDICT_CLASS[d.verdict]) return el("span", { class: "chip " + VERDICT_CLASS[d.verdict] }, d.verdict);
  return el("span", { class: "soft" }, d.verdict || (d.n === 1 ? "one sample" : "no spread"));
}

const DELTA_COLUMNS = [
  { name: "what", get: (d) => d.name },
  { name: "phase", get: (d) => d.phase },
  { name: "change", get: (d) => d.in_a && d.in_b ? d.change : NaN, show: (v) => signed(v, (a) => percent(a)) },
  { name: "before", get: (d) => d.in_a ? d.a_ns : NaN, show: time },
  { name: "after", get: (d) => d.in_b ? d.b_ns : NaN, show: time },
  { name: "difference", get: (d) => d.diff_ns, show: (v) => signed(v, time) },
  { name: "95 % interval", get: (d) => d.has_interval ? d.lo_ns : NaN, show: (v, d) => d.has_interval ? `${signed(d.lo_ns, time)} to ${signed(d.hi_ns, time)}` : "–" },
  { name: "in all", get: (d) => Math.abs(d.cost_ns), show: (v, d) => signed(d.cost_ns, time), title: "over all tokens of the first run" },
  { name: "verdict", get: (d) => d.verdict, show: (v, d) => verdict(d) },
];

/* Bars from zero: slower to the right, faster to the left; whiskers are the intervals. Names stand in a column of their own. */
function forest(list, label) {
  const shown = list.filter((d) => d.in_a && d.in_b && d.diff_ns !== 0).slice(0, 14), row = 28;
  if (!shown.length) return none("Nothing differs.");
  return drawing((b, width) => {
    const ends = shown.flatMap((d) => [d.diff_ns, d.has_interval ? d.lo_ns : 0, d.has_interval ? d.hi_ns : 0]);
    const lo = Math.min(0, ...ends), hi = Math.max(0, ...ends), pad = (hi - lo) * 0.04;
    const p = plot(b, width, shown.length * row + 30, { left: Math.min(230, Math.round(width * 0.42)), right: 14, top: 4, bottom: 26 });
    const x = linear(lo - pad, hi + pad, p.x0, p.x1), zero = x(0);
    for (const v of x.ticks(Math.max(2, (p.x1 - p.x0) / 110))) p.root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: p.y1, y2: p.y0 }),
      svg("text", { x: Math.min(x(v), width - 30), y: p.y0 + 18, "text-anchor": "middle" }, v === 0 ? "0" : (v < 0 ? "−" : "+") + shortTime(Math.abs(v))));
    p.root.append(svg("line", { x1: zero, x2: zero, y1: p.y1, y2: p.y0, stroke: "var(--soft)" }));
    shown.forEach((d, i) => forestRow(p, x, d, p.y1 + i * row, row));
  }, label);
}

function forestRow(p, x, d, y, row) {
  const sure = d.verdict === "slower" || d.verdict === "faster", worse = d.diff_ns > 0, zero = x(0), to = x(d.diff_ns), mid = y + row / 2;
  const fill = !sure ? "var(--c6)" : worse ? "var(--bad)" : "var(--good)";
  const bar = svg("rect", { x: Math.min(zero, to), y: mid - 5, width: Math.max(1, Math.abs(to - zero)), height: 10, rx: 2, fill, "fill-opacity": 0.75,
    tabindex: 0, role: "img", "aria-label": `${d.name}, ${d.phase}: ${signed(d.diff_ns, time)}` });
  withTip(bar, `${d.name}, ${d.phase}`, [["before", time(d.a_ns)], ["after", time(d.b_ns)], ["difference", signed(d.diff_ns, time)],
    ["interval", d.has_interval ? `${signed(d.lo_ns, time)} to ${signed(d.hi_ns, time)}` : "not known"], ["samples", d.n ? grouped(d.n) + (d.paired ? " pairs" : "") : "–"]]);
  p.root.append(bar);
  if (d.has_interval) p.root.append(svg("line", { x1: x(d.lo_ns), x2: x(d.hi_ns), y1: mid, y2: mid, stroke: "var(--ink)", "stroke-width": 1.5 }),
    ...[d.lo_ns, d.hi_ns].map((v) => svg("line", { x1: x(v), x2: x(v), y1: mid - 4, y2: mid + 4, stroke: "var(--ink)", "stroke-width": 1.5 })));
  p.root.append(svg("text", { class: "ink", x: p.x0 - 10, y: mid + 4, "text-anchor": "end" }, fit(`${d.name} · ${d.phase}`, p.x0 - 14)));
}

function compareTiles(v) {
  const shown = v.phases.filter((d) => d.gates || d.name === "first token").slice(0, 6);
  return el("div", { class: "tiles" }, shown.map((d) => el("div", { class: "tile" }, el("b", { class: VERDICT_CLASS[d.verdict] || null },
    signed(d.change, (a) => percent(a))), el("span", {}, `${d.name}: ${time(d.a_ns)} then ${time(d.b_ns)}`), verdict(d))));
}

function showCompare(data, page) {
  const nav = [], nodes = [];
  nodes.push(el("div", { class: "intro" }, el("h1", {}, data.model ? `${data.model}, compared` : "Runs, compared"),
    el("p", { class: "sub" }, `The base is ${data.base}. Times are of one token; a difference above zero is slower. ` +
      "Intervals hold the median difference with 95 % confidence within these runs.")));
  data.others.forEach((v, i) => {
    const id = "run" + (i + 1);
    nav.push(el("a", { href: "#" + id }, v.name));
    const notes = v.notes.length ? el("ul", { class: "notes soft" }, v.notes.map((n) => el("li", {}, n))) : "";
    const t = sortable(DELTA_COLUMNS.map((c, k) => k ? c : { ...c, name: data.by }), v.steps, "Differences of steps", 7, true);
    const phases = sortable(DELTA_COLUMNS.filter((c) => c.name !== "phase"), v.phases, "Differences of phases", -1, false);
    nodes.push(section(id, v.name, v.regressed ? `Slower than ${data.base} by more than ${percent(data.threshold)}.` : `Against ${data.base}.`,
      compareTiles(v), notes, el("h3", {}, "Phases"), phases.table,
      el("h3", {}, `Steps by ${data.by}: the difference in each token, what costs most first`), forest(v.steps, "Differences of steps"),
      el("h3", {}, "All steps"), el("div", { class: "tools" }, t.filter, t.count), t.table));
  });
  document.getElementById("nav").replaceChildren(...nav);
  page.replaceChildren(...nodes);
}
