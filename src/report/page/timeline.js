/* timeline.js - the steps of one pass, in order: a canvas with a lane of layers above a lane of steps. Ctrl-wheel, pinch, buttons or
 * keys zoom; dragging pans; the arrow keys walk from step to step, so that no pointer is needed. */
"use strict";

const LANE = { axis: 22, layer: 22, gap: 3, step: 58, wait: 0 };

function timeline(run) {
  const passes = run.spans;
  let pass = typicalPass(run, passes);
  let view = null, chosen = -1;
  const where = el("span", { class: "soft mono" });
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label":
    "Steps of one pass. Arrow keys walk through the steps, plus and minus zoom, 0 shows everything." });
  const heads = () => passes[pass];
  const length = () => Math.max(1, heads().ns, ...heads().steps.slice(-1).map((s) => s[0] + s[1]));

  const box = drawing((b, width) => {
    if (!canvas.isConnected) b.replaceChildren(canvas);
    draw(width);
  }, "Timeline of the steps of one pass");
  box.append(canvas);

  function draw(width) {
    const height = LANE.axis + LANE.layer + LANE.gap + LANE.step + 4, ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    if (!view) view = [0, length()];
    paint(c, width, linear(view[0], view[1], 0, width));
    where.textContent = `${time(view[0])} to ${time(view[1])} of ${time(length())}`;
  }

  function paint(c, width, x) {
    const ink = resolve("--soft"), on = resolve("--on"), grid = resolve("--grid"), edge = resolve("--ink");
    const colors = Array.from({ length: 8 }, (_, i) => resolve("--c" + i));
    const text = (s, x0, x1, y, fill) => {
      if (x1 - x0 < 16) return;
      c.fillStyle = fill;
      c.fillText(fit(s, x1 - x0 - 4), (x0 + x1) / 2, y);
    };
    c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const v of x.ticks(Math.max(2, width / 110))) {
      c.fillStyle = grid;
      c.fillRect(Math.round(x(v)), LANE.axis - 4, 1, LANE.layer + LANE.step + LANE.gap + 6);
      c.fillStyle = ink;
      c.fillText(shortTime(v), Math.min(Math.max(x(v), 24), width - 26), 9);
    }
    const y1 = LANE.axis, y2 = LANE.axis + LANE.layer + LANE.gap;
    for (const l of layersOf(heads(), run)) {
      const a = Math.max(0, x(l.t)), b = Math.min(width, x(l.end));
      if (b < 0 || a > width) continue;
      c.fillStyle = grid;
      c.fillRect(a, y1, Math.max(0.5, b - a - 0.5), LANE.layer);
      text(b - a > 64 && l.layer >= 0 ? "layer " + l.layer : l.name, a, b, y1 + LANE.layer / 2 + 1, ink);
    }
    heads().steps.forEach((s, i) => {
      const a = x(s[0]), b = x(s[0] + s[1]), info = run.series[s[2]] || [];
      if (b < 0 || a > width) return;
      c.fillStyle = colors[kindOfSeries(info) % 8];
      c.fillRect(a, y2, Math.max(0.4, b - a - (b - a > 3 ? 0.7 : 0)), LANE.step);
      if (b - a > 26) text(shortRole(info), Math.max(a, 0), Math.min(b, width), y2 + LANE.step / 2 - 8, on);
      if (b - a > 44) text(time(s[1]), Math.max(a, 0), Math.min(b, width), y2 + LANE.step / 2 + 9, on);
      if (i === chosen) {
        c.strokeStyle = edge;
        c.lineWidth = 2;
        c.strokeRect(a + 1, y2 + 1, Math.max(2, b - a - 2), LANE.step - 2);
      }
    });
  }

  /* ---- moving about */

  function zoom(factor, at) {
    const [a, b] = view, least = Math.min(200, length()), mid = at === undefined ? (a + b) / 2 : at;
    const span = Math.min(length(), Math.max(least, (b - a) * factor)), share = (mid - a) / (b - a);
    place(mid - share * span, span);
  }

  function place(from, span) {
    from = Math.max(0, Math.min(from, length() - span));
    view = [from, from + span];
    box.redraw();
  }

  const valueAt = (event) => {
    const r = canvas.getBoundingClientRect();
    return view[0] + (event.clientX - r.left) / r.width * (view[1] - view[0]);
  };

  function stepAt(event) {
    const t = valueAt(event), slack = (view[1] - view[0]) / Math.max(1, canvas.clientWidth) * 3;
    const list = heads().steps;
    let best = -1, gap = slack;
    for (let i = 0; i < list.length; i++) {
      const s = list[i], d = t < s[0] ? s[0] - t : t > s[0] + s[1] ? t - s[0] - s[1] : 0;
      if (d <= gap) best = i, gap = d;
      if (d === 0) break;
    }
    return best;
  }

  function describe(event, i) {
    const s = heads().steps[i], info = run.series[s[2]] || [];
    tip(event, info[3] || info[2] || info[1] || "step", [
      ["op", info[2] || "–"], ["kernel", info[1] || "–"], ["took", time(s[1])], ["of the pass", percent(s[1] / length())],
      ["began at", time(s[0])], ["usual (mean)", info[6] ? time(info[7] / info[6]) : "–"],
    ]);
  }

  function walk(event, by) {
    const list = heads().steps;
    if (!list.length) return;
    chosen = Math.max(0, Math.min(list.length - 1, chosen + by));
    const s = list[chosen], span = view[1] - view[0];
    if (s[0] < view[0] || s[0] + s[1] > view[1]) place(s[0] + s[1] / 2 - span / 2, span);
    else box.redraw();
    describe({ target: canvas }, chosen);
    event.preventDefault();
  }

  canvas.addEventListener("keydown", (e) => {
    if (e.key === "ArrowRight") walk(e, 1);
    else if (e.key === "ArrowLeft") walk(e, -1);
    else if (e.key === "+" || e.key === "=") zoom(0.6, chosen >= 0 ? heads().steps[chosen][0] : undefined);
    else if (e.key === "-") zoom(1 / 0.6);
    else if (e.key === "0" || e.key === "Home") place(0, length());
    else if (e.key === "Escape") untip();
  });
  canvas.addEventListener("blur", untip);
  canvas.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return; /* a plain wheel scrolls the page */
    e.preventDefault();
    zoom(Math.pow(1.002, e.deltaY), valueAt(e));
  }, { passive: false });
  canvas.addEventListener("dblclick", (e) => zoom(0.4, valueAt(e)));

  const held = new Map();
  canvas.addEventListener("pointerdown", (e) => { held.set(e.pointerId, e.clientX); canvas.classList.add("held"); canvas.setPointerCapture(e.pointerId); });
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, (e) => { held.delete(e.pointerId); if (!held.size) canvas.classList.remove("held"); });
  canvas.addEventListener("pointerleave", untip);
  canvas.addEventListener("pointermove", (e) => {
    const span = view[1] - view[0], width = Math.max(1, canvas.clientWidth);
    if (held.size === 2 && held.has(e.pointerId)) { /* a pinch */
      const other = [...held.entries()].find(([id]) => id !== e.pointerId)[1], before = Math.abs(held.get(e.pointerId) - other);
      const now = Math.abs(e.clientX - other);
      held.set(e.pointerId, e.clientX);
      if (before > 8 && now > 8) zoom(before / now, valueAt(e));
    } else if (held.has(e.pointerId)) {
      const moved = e.clientX - held.get(e.pointerId);
      held.set(e.pointerId, e.clientX);
      if (Math.abs(moved) > 0) place(view[0] - moved / width * span, span);
    } else {
      const i = stepAt(e);
      if (i < 0) untip();
      else describe(e, i);
    }
  });

  const pick = el("select", { "aria-label": "Which pass", onchange: () => { pass = Number(pick.value); view = null; chosen = -1; box.redraw(); } },
    passes.map((p, i) => el("option", { value: i, selected: i === pass },
      `${p.phase}, ${p.rows === 1 ? "1 token" : p.rows + " tokens"} at position ${p.pos}: ${time(p.ns)}`)));
  const kinds = passes.flatMap((p) => p.steps.map((s) => kindOfSeries(run.series[s[2]] || [])));
  return [el("div", { class: "tools" }, el("label", {}, "pass", pick),
    el("div", { class: "group", role: "group", "aria-label": "Zoom" },
      el("button", { type: "button", onclick: () => zoom(0.5), "aria-label": "Zoom in" }, "+"),
      el("button", { type: "button", onclick: () => zoom(2), "aria-label": "Zoom out" }, "−"),
      el("button", { type: "button", onclick: () => place(0, length()) }, "all")), where), box, legend(kinds)];
}

/* The decode pass whose time is nearest to the median: the first ones of a run are often those that found cold caches. */
function typicalPass(run, passes) {
  const times = run.passes.filter((p) => p[3] === "decode").map((p) => p[1]).sort((a, b) => a - b), middle = times[times.length >> 1] || 0;
  const off = (p) => p.phase === "decode" ? Math.abs(p.ns - middle) : Infinity;
  return passes.reduce((best, p, i) => off(p) < off(passes[best]) ? i : best, 0);
}

const shortRole = (info) => (info[3] || info[2] || info[1] || "").replace(/^blk\.\d+\./, "");

/* Steps that follow each other in one layer become one block of the upper lane. */
function layersOf(pass, run) {
  if (pass.layers) return pass.layers;
  const out = [];
  for (const s of pass.steps) {
    const info = run.series[s[2]] || [], layer = info[5] === undefined ? -1 : info[5], last = out[out.length - 1];
    if (!last || last.layer !== layer) out.push({ layer, name: layer < 0 ? shortRole(info) : String(layer), t: s[0], end: s[0] + s[1], most: s[1] });
    else {
      last.end = s[0] + s[1];
      if (layer < 0 && s[1] > last.most) last.name = shortRole(info), last.most = s[1];
    }
  }
  pass.layers = out;
  return out;
}
