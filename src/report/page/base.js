/* base.js - what every drawing uses: elements, numbers as people read them, colours by what a step does, scales, the tip that follows
 * the pointer, the theme. Texts of a trace only ever become text nodes, so nothing in them can act. */
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/* el("button", {class: "x", onclick: f}, child, "text") */
function el(tag, attrs, ...children) {
  const node = document.createElement(tag);
  return fill(node, attrs, children);
}

function svg(tag, attrs, ...children) {
  const node = document.createElementNS(SVG, tag);
  return fill(node, attrs, children);
}

function fill(node, attrs, children) {
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}

/* ---- numbers */

const finite = (v) => typeof v === "number" && isFinite(v);

function digits(v, n) {
  if (!finite(v)) return "–";
  const a = Math.abs(v);
  const d = a >= 1000 || a === 0 ? 0 : Math.max(0, n - 1 - Math.floor(Math.log10(a)));
  return v.toFixed(Math.min(d, 6));
}

function grouped(v) {
  return finite(v) ? Math.round(v).toString().replace(/\B(?=(\d{3})+(?!\d))/g, " ") : "–";
}

function time(ns) {
  if (!finite(ns)) return "–";
  const a = Math.abs(ns);
  if (a < 1e3) return digits(ns, 3) + " ns";
  if (a < 1e6) return digits(ns / 1e3, 3) + " µs";
  if (a < 1e9) return digits(ns / 1e6, 3) + " ms";
  if (a < 120e9) return digits(ns / 1e9, 3) + " s";
  return Math.floor(ns / 60e9) + " min " + Math.round(ns / 1e9 % 60) + " s";
}

function bytes(v) {
  if (!finite(v)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (v >= 1024 && i < units.length - 1) v /= 1024, i++;
  return (i ? digits(v, 3) : v) + " " + units[i];
}

/* The unit in which a time of this size has few digits: what to divide ns by, and its name. */
function unitOf(ns) {
  const units = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  return units.filter((u) => u[0] <= ns).pop() || units[0];
}

/* As much of a text as fits in so many pixels, in the font of the drawings. */
const pen = document.createElement("canvas").getContext("2d");
pen.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

function fit(text, room, bold) {
  const width = (s) => pen.measureText(s).width * (bold ? 1.2 : 1);
  if (width(text) <= room) return text;
  let n = Math.min(text.length, Math.floor(room / 4));
  while (n > 0 && width(text.slice(0, n) + "…") > room) n--;
  return n > 0 ? text.slice(0, n) + "…" : "";
}

/* For axes: as few digits as say it. */
const short = (v) => String(parseFloat(v.toPrecision(6)));
const shortTime = (ns) => ns === 0 ? "0" : time(ns).replace(/\.?0+(?= )/, (z) => z[0] === "." ? "" : z);
const shortBig = (v) => v < 1000 ? short(v) : big(v).replace(/\.0+(?= )/, "");
const rate = (v) => v < 1e4 ? digits(v, 3) : big(v);

function big(v) {
  if (!finite(v)) return "–";
  const units = ["", "K", "M", "G", "T", "P"];
  let i = 0;
  while (v >= 1000 && i < units.length - 1) v /= 1000, i++;
  return digits(v, 3) + (i ? " " + units[i] : "");
}

const percent = (v, d) => finite(v) ? (100 * v).toFixed(d === undefined ? 1 : d) + " %" : "–";

/* ---- colours: one for each kind of work, the same in every drawing */

const MATRIX = /linear|mat_?mul|gemm|gemv|dot_product|lm_?head/i;
const KINDS = ["feed-forward matrices", "attention", "norms", "matrices", "attention matrices", "cache, positions, lookups", "inputs, the rest",
  "activations, sums"];
const BY_NAME = [
  [1, /attend|attention|sdpa|flash|kv_kernel|softmax|merge_state/i],
  [2, /norm/i],
  [7, /swiglu|geglu|glu|silu|gelu|add|mul(?!_mat)|scale|soft_?cap|residual/i],
  [5, /rope|rotary|store|kv_|transpose|append|cache|embed|take|gather|pick|sampl|logits|argmax|top_?k|index/i],
];

/* A number of KINDS, which is the number of its colour. A matrix is told by its place, where the log says it. */
function kindOf(op, kernel, role) {
  if (MATRIX.test(op || kernel)) {
    if (/ffn|mlp|gate|\bup\b|down/i.test(role || "")) return 0;
    return /attn|qkv|attention|\b[qkvo](_proj)?\b/i.test(role || "") ? 4 : 3;
  }
  for (const name of [op, kernel])
    for (const [kind, pattern] of BY_NAME) if (name && pattern.test(name)) return kind;
  return 6;
}

const kindOfSeries = (s) => kindOf(s[2], s[1], s[3]);
const kindName = (i) => KINDS[i];
const color = (i) => `var(--c${i % 8})`;
const resolve = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function legend(kinds) {
  const seen = [...new Set(kinds)].sort((a, b) => a - b);
  return el("ul", { class: "legend" }, seen.map((k) => el("li", {}, dot(color(k)), kindName(k))));
}

function dot(c) {
  const d = el("span", { class: "dot" });
  d.style.background = c;
  return d;
}

/* ---- scales: a function from values to pixels, and round values for its axis */

function linear(lo, hi, from, to) {
  const span = hi - lo || 1;
  const f = (v) => from + (v - lo) / span * (to - from);
  f.ticks = (n) => {
    const rough = span / Math.max(1, n), power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power * 10;
    const out = [];
    for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step) out.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return out;
  };
  return f;
}

function logarithmic(lo, hi, from, to) {
  const a = Math.log10(lo), b = Math.log10(hi);
  const f = (v) => from + (Math.log10(v) - a) / (b - a || 1) * (to - from);
  f.ticks = () => {
    const out = [];
    const steps = b - a < 2 ? [1, 2, 5] : [1];
    for (let e = Math.floor(a); e <= b; e++)
      for (const m of steps) if (m * Math.pow(10, e) >= lo && m * Math.pow(10, e) <= hi) out.push(m * Math.pow(10, e));
    return out;
  };
  return f;
}

/* ---- a drawing that is drawn again when its width or the theme changes */

const drawings = [];

function drawing(render, label) {
  const box = el("div", { class: "draw", role: "group", "aria-label": label });
  let width = 0;
  const again = (force) => {
    const now = Math.floor(box.clientWidth);
    if (now < 40 || (now === width && !force)) return;
    width = now;
    render(box, now);
  };
  drawings.push(() => again(true));
  new ResizeObserver(() => again(false)).observe(box);
  box.redraw = () => again(true);
  return box;
}

/* Room for axes around a plot; labels of the y axis need more on the left when they are long. */
function plot(box, width, height, margin) {
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": box.getAttribute("aria-label") });
  box.replaceChildren(root);
  return { root, x0: margin.left, x1: width - margin.right, y0: height - margin.bottom, y1: margin.top };
}

function axes(p, x, y, xTicks, yTicks, xText, yText, xName, yName) {
  for (const v of yTicks) {
    p.root.append(svg("line", { class: "grid", x1: p.x0, x2: p.x1, y1: y(v), y2: y(v) }),
      svg("text", { x: p.x0 - 6, y: y(v) + 4, "text-anchor": "end" }, yText(v)));
  }
  let end = -Infinity;
  for (const v of xTicks) {
    const text = xText(v), half = text.length * 3.6;
    const at = Math.min(Math.max(x(v), p.x0 + half - 8), p.x1 - half + 6);
    p.root.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: p.y0, y2: p.y1 }));
    if (at - half < end + 6) continue;
    end = at + half;
    p.root.append(svg("text", { x: at, y: p.y0 + 17, "text-anchor": "middle" }, text));
  }
  p.root.append(svg("line", { class: "axis", x1: p.x0, x2: p.x1, y1: p.y0, y2: p.y0 }),
    svg("text", { x: (p.x0 + p.x1) / 2, y: p.y0 + 34, "text-anchor": "middle" }, xName),
    svg("text", { x: 2, y: p.y1 - 9, "text-anchor": "start" }, yName));
}

/* ---- the tip */

function tip(event, title, rows) {
  const box = document.getElementById("tip");
  box.replaceChildren(el("b", {}, title), rows && rows.length
    ? el("table", {}, rows.map(([k, v]) => el("tr", {}, el("td", {}, k), el("td", {}, v)))) : "");
  box.hidden = false;
  let x = event.clientX, y = event.clientY;
  if (x === undefined || (x === 0 && y === 0)) { /* the keyboard's focus has no pointer */
    const r = event.target.getBoundingClientRect();
    x = r.left + r.width / 2;
    y = r.bottom;
  }
  const w = box.offsetWidth, h = box.offsetHeight;
  box.style.left = Math.max(8, Math.min(x + 14, innerWidth - w - 8)) + "px";
  box.style.top = (y + 18 + h > innerHeight ? Math.max(8, y - h - 12) : y + 18) + "px";
}

function untip() { document.getElementById("tip").hidden = true; }

function withTip(node, title, rows) {
  const show = (e) => tip(e, title, typeof rows === "function" ? rows() : rows);
  node.addEventListener("pointermove", show);
  node.addEventListener("pointerleave", untip);
  node.addEventListener("focus", show);
  node.addEventListener("blur", untip);
  return node;
}

/* ---- the theme: as the system says until the reader chooses */

function startTheme() {
  const button = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const store = (() => { try { return localStorage; } catch (e) { return null; } })(); /* a file: page may have none */
  let chosen = store && store.getItem("quern-theme");
  const apply = () => {
    const now = chosen || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now;
    button.textContent = now === "dark" ? "☾ dark" : "☀ light";
    button.setAttribute("aria-label", `Theme: ${now}. Press to change.`);
    for (const again of drawings) again();
  };
  button.onclick = () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { if (store) store.setItem("quern-theme", chosen); } catch (e) { /* full or forbidden: it holds for this view */ }
    apply();
  };
  dark.addEventListener("change", apply);
  document.addEventListener("keydown", (e) => {
    if (e.key === "t" && !e.ctrlKey && !e.metaKey && !e.altKey && !/INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) button.click();
  });
  apply();
}

/* ---- small parts of the page */

/* A row of buttons of which one holds; names: [[value, text]]. */
function choice(label, names, value, onchange) {
  const buttons = names.map(([v, text]) => el("button", { type: "button", "aria-pressed": v === value ? "true" : "false", onclick: () => {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", names[i][0] === v ? "true" : "false"));
    onchange(v);
  } }, text));
  return el("div", { class: "group", role: "group", "aria-label": label }, buttons);
}

function section(id, title, why, ...children) {
  return el("section", { id, "aria-labelledby": id + "-h" }, el("div", { class: "head" }, el("h2", { id: id + "-h" }, title)),
    why ? el("p", { class: "why" }, why) : "", children);
}

const none = (text) => el("p", { class: "none" }, text);
