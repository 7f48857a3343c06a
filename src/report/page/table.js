/* table.js - a table that sorts by any column and keeps only rows that hold a text. Columns: {name, get, show, text, bar}. */
"use strict";

function sortable(columns, rows, label, sortBy, down) {
  let by = sortBy, downward = down, words = [];
  const head = el("tr"), body = el("tbody"), count = el("span", { class: "soft" });
  const heads = columns.map((c, i) => el("th", { class: c.text ? "text" : null, scope: "col" },
    el("button", { type: "button", title: c.title || null, onclick: () => { downward = by === i ? !downward : !c.text; by = i; show(); } }, c.name)));
  head.append(...heads);

  function cell(c, row) {
    const value = c.get(row), shown = c.show ? c.show(value, row) : value === undefined || value === "" ? "–" : String(value);
    const td = el("td", { class: c.text ? "text" : null, title: c.text || c === columns[0] ? String(value) : null });
    if (c.bar && finite(value)) {
      const i = el("i");
      i.style.width = Math.min(100, 100 * value) + "%";
      td.append(el("span", { class: "share", "aria-hidden": "true" }, i));
    }
    td.append(shown);
    return td;
  }

  function show() {
    const found = rows.filter((r) => words.every((w) => columns.some((c) => String(c.get(r)).toLowerCase().includes(w))));
    const get = by < 0 ? null : columns[by].get; /* below zero: in the order they came */
    if (get) found.sort((a, b) => {
      const u = get(a), v = get(b);
      const order = typeof u === "number" && typeof v === "number" ? u - v : String(u).localeCompare(String(v), "en", { numeric: true });
      return downward ? -order : order;
    });
    heads.forEach((h, i) => i === by ? h.setAttribute("aria-sort", downward ? "descending" : "ascending") : h.removeAttribute("aria-sort"));
    const most = 400;
    body.replaceChildren(...found.slice(0, most).map((r) => el("tr", {}, columns.map((c) => cell(c, r)))));
    count.textContent = found.length > most ? `first ${most} of ${grouped(found.length)} rows` : `${grouped(found.length)} of ${grouped(rows.length)} rows`;
  }

  const filter = el("input", { type: "search", placeholder: "filter", "aria-label": "Filter rows of " + label, oninput: () => {
    words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    show();
  } });
  show();
  return { filter, count, table: el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, head), body)) };
}

const launches = (v, r) => r.expected && r.expected !== r.n ? el("span", { class: "warn", title: `${r.expected} were asked for` }, `${grouped(r.n)} of ${grouped(r.expected)}`)
  : grouped(r.n);

const STEP_COLUMNS = [
  { name: "step", get: (r) => r.name, show: (v, r) => el("span", {}, dot(color(kindOf(r.op, r.kernel || r.name, r.role || r.name))), v || "–") },
  { name: "phase", get: (r) => r.phase },
  { name: "of phase", get: (r) => r.share, show: (v) => percent(v), bar: true, title: "share of the phase's time" },
  { name: "total", get: (r) => r.total_ns, show: time },
  { name: "launches", get: (r) => r.n, show: launches },
  { name: "mean", get: (r) => r.avg_ns, show: time },
  { name: "p50", get: (r) => r.has_spread ? r.p50_ns : NaN, show: time },
  { name: "p95", get: (r) => r.has_spread ? r.p95_ns : NaN, show: time },
  { name: "p99", get: (r) => r.has_spread ? r.p99_ns : NaN, show: time },
  { name: "max", get: (r) => r.max_ns || NaN, show: time },
  { name: "GB/s", get: (r) => r.gbs || NaN, show: (v) => digits(v, 3) },
  { name: "GFLOP/s", get: (r) => r.gflops || NaN, show: (v) => digits(v, 3) },
  { name: "of ceiling", get: (r) => r.of_ceiling || NaN, show: (v, r) => finite(v) ? `${percent(v, 0)} ${r.bound}` : "–", title: "of what memory or arithmetic could do" },
  { name: "waiting", get: (r) => r.total_ns && r.wait_ns ? r.wait_ns / r.total_ns : NaN, show: (v) => percent(v), title: "share of the time that threads waited" },
];

function stepTable(run) {
  const names = Object.keys(run.by).filter((k) => run.by[k].length);
  if (!names.length) return [none("No step was timed in this run; `--trace-level step` times them.")];
  const hold = el("div"), tools = el("div", { class: "tools" });
  let filter = "";
  const put = (by) => {
    const columns = STEP_COLUMNS.filter((c, i) => i < 3 || run.by[by].some((r) => { const v = c.get(r); return typeof v !== "number" || isFinite(v); }));
    const t = sortable(columns.map((c, i) => i ? c : { ...c, name: by }), run.by[by], "Steps by " + by, 3, true);
    t.filter.value = filter;
    t.filter.dispatchEvent(new Event("input"));
    t.filter.addEventListener("input", () => { filter = t.filter.value; });
    tools.replaceChildren(pick, t.filter, t.count);
    hold.replaceChildren(t.table);
  };
  const first = names.includes("kernel") ? "kernel" : names[0];
  const pick = choice("Group steps by", names.map((n) => [n, "by " + n]), first, put);
  put(first);
  return [tools, hold];
}

function choiceTable(run) {
  const t = sortable([
    { name: "op", get: (r) => r.op }, { name: "first step", get: (r) => r.role, text: true }, { name: "rows", get: (r) => r.rows },
    { name: "steps", get: (r) => r.steps }, { name: "kernel", get: (r) => r.kernel, text: true }, { name: "why", get: (r) => r.reason, text: true },
    { name: "rejected", get: (r) => r.rejected || "–", text: true },
  ], run.choices, "Kernel choices", 3, true);
  return [el("div", { class: "tools" }, t.filter, t.count), t.table];
}
