/* memory.js - what memory holds: a bar of the last record, its parts named below, and every record as a row. */
"use strict";

function memoryParts(m) {
  const parts = Object.entries(m.parts || {}).filter(([, v]) => finite(v) && v > 0).map(([name, v]) => [name, v]);
  const named = parts.reduce((sum, p) => sum + p[1], 0);
  if (!parts.length && m.weights > 0) parts.push(["weights", m.weights]);
  else if (m.weights > named) parts.push(["other weights", m.weights - named]);
  if (m.kv_used > 0) parts.push(["KV cache in use", m.kv_used]);
  if (m.kv > m.kv_used) parts.push(["KV cache, free", m.kv - m.kv_used]);
  if (m.scratch > 0) parts.push(["scratch", m.scratch]);
  const known = parts.reduce((sum, p) => sum + p[1], 0);
  if (m.resident > known) parts.push(["program and the rest", m.resident - known]);
  return parts;
}

/* Widths are shares of the sum; names inside where they fit. */
function stackBar(parts, show) {
  const all = parts.reduce((sum, p) => sum + p[1], 0) || 1;
  return [el("div", { class: "stack" }, parts.map(([name, v, c], i) => {
    const part = el("div", { tabindex: 0, "aria-label": `${name}: ${show(v)}` }, v / all > 0.1 ? name : "");
    part.style.width = 100 * v / all + "%";
    part.style.background = c || color(i);
    return withTip(part, name, [["", show(v)], ["share", percent(v / all)]]);
  })), el("ul", { class: "legend" }, parts.map(([name, v, c], i) => el("li", {}, dot(c || color(i)), `${name} ${show(v)}`)))];
}

function memory(run) {
  if (!run.memory.length) return [none("The trace has no record of memory.")];
  const last = run.memory[run.memory.length - 1];
  const rows = run.memory.map((m) => el("tr", {}, el("td", {}, m.when || "–"),
    [m.weights, m.kv, m.kv_used, m.scratch, m.resident, m.peak].map((v) => el("td", {}, v ? bytes(v) : "–"))));
  return [...stackBar(memoryParts(last), bytes), el("h3", {}, "Each record"), el("div", { class: "scroll" }, el("table", {}, el("thead", {},
    el("tr", {}, ["when", "weights", "KV cache", "in use", "scratch", "resident", "peak"].map((t) => el("th", {}, t)))), el("tbody", {}, rows)))];
}
