/* report.js - the page of one or more runs: puts the parts in order, leaves out what a log cannot say, and says so where a reader
 * would look for it. */
"use strict";

const PHASE_COLORS = { load: "var(--c6)", tokenize: "var(--c4)", prefill: "var(--c3)", decode: "var(--c0)", sample: "var(--c1)", other: "var(--c7)" };

function tiles(run) {
  const phase = (name) => run.phases.find((p) => p.phase === name) || {}, decode = phase("decode"), prefill = phase("prefill");
  const out = [], add = (value, unit, text) => out.push(el("div", { class: "tile" }, el("b", {}, value, " ", el("small", {}, unit)), el("span", {}, text)));
  if (decode.tok_s) add(digits(decode.tok_s, 3), "tok/s", `decode, ${grouped(decode.tokens)} tokens` + (decode.token_ns ? `, p95 ${time(decode.token_ns.p95)}` : ""));
  else if (run.implied && run.implied.tok_s) add(digits(run.implied.tok_s, 3), "tok/s", "decode, put together from kernel averages");
  if (prefill.tok_s) add(rate(prefill.tok_s), "tok/s", `prefill, ${grouped(prefill.tokens)} tokens`);
  if (run.first_ns) add(...time(run.first_ns).split(" "), "to the first token");
  if (decode.bytes && decode.steps_ns) {
    const gbs = decode.bytes / decode.steps_ns, roof = run.ceilings.read_gbs;
    add(digits(gbs, 3), "GB/s", "moved while decoding" + (roof ? `, ${percent(gbs / roof, 0)} of what memory gives` : ""));
  } else if (run.implied && run.implied.of_roof) add(percent(run.implied.of_roof, 0), "", `of ${digits(run.implied.bandwidth_gbs, 3)} GB/s, from averages`);
  const peak = Math.max(0, ...run.memory.map((m) => m.peak || m.resident));
  if (peak) add(...bytes(peak).split(" "), "peak memory");
  if (run.wall_ns) add(...time(run.wall_ns).split(" "), run.source === "mlc" ? "of kernels in the table" : "wall time of the trace");
  return el("div", { class: "tiles" }, out);
}

function damage(run) {
  const words = [];
  if (run.lost) words.push(`${grouped(run.lost)} events could not be written while it ran`);
  if (run.bad) words.push(`${grouped(run.bad)} lines of the file are damaged`);
  if (run.ignored) words.push(`${grouped(run.ignored)} values made no sense and are in no sum`);
  if (run.unknown) words.push(`${grouped(run.unknown)} records are of kinds this version does not know`);
  if (run.source === "quern" && !run.ended) words.push("the trace has no end record: the run was cut, or still goes on");
  return words.length ? el("p", { class: "alert" }, words.join("; ") + ".") : "";
}

function intro(run) {
  const f = run.facts, machine = [f.cpu, f.threads ? `${f.threads} ${f.threads === 1 ? "thread" : "threads"}` : "", f.isa,
    f.device && f.device !== "cpu" ? f.device : "", f.host].filter(Boolean).join(" · ");
  const what = [f.arch, f.type, f.params ? big(f.params).replace(" G", " B") + " weights" : "", f.model_bytes ? bytes(f.model_bytes) : "",
    f.layers ? f.layers + " layers" : ""].filter(Boolean).join(" · ");
  return el("div", { class: "intro" }, el("h1", {}, f.model || run.name || "a run"), what ? el("p", { class: "sub" }, what) : "",
    machine ? el("p", { class: "sub" }, machine) : "", f.started ? el("p", { class: "sub" }, f.started.replace("T", " ").replace("Z", " UTC")) : "",
    tiles(run), damage(run));
}

function advice(run) {
  if (!run.advice.length) return [none("Nothing stands out.")];
  return [el("ol", { class: "advice" }, run.advice.map((a) => el("li", {}, el("b", {}, a.what, a.cost_ns ? el("span", { class: "soft" },
    ` (${time(a.cost_ns)})`) : ""), a.try_this ? el("span", {}, a.try_this) : "")))];
}

function phases(run) {
  const used = run.phases.filter((p) => p.ns > 0);
  if (!used.length) return [none("The log does not say when anything happened, so there are no phases.")];
  const spread = (q) => (p) => p.token_ns ? digits(p.token_ns[q] / 1e6, 3) : "–";
  const all = [["time", (p) => time(p.ns)], ["of wall", (p) => percent(p.share)], ["tokens", (p) => p.tokens ? grouped(p.tokens) : "–"],
    ["tok/s", (p) => p.tok_s ? rate(p.tok_s) : "–"], ["ms a token, p50", spread("p50")], ["p95", spread("p95")], ["p99", spread("p99")],
    ["in no step", (p) => p.steps_ns && p.passes ? time(p.between_ns) : "–"]];
  const columns = all.filter(([, show]) => used.some((p) => show(p) !== "–"));
  const rows = used.map((p) => el("tr", {}, el("td", {}, dot(PHASE_COLORS[p.phase]), p.phase), columns.map(([, show]) => el("td", {}, show(p)))));
  const loads = run.loads.filter((l) => l.ns);
  return [...stackBar(used.map((p) => [p.phase, p.ns, PHASE_COLORS[p.phase]]), time),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["phase", ...columns.map((c) => c[0])].map((t) => el("th", {}, t)))), el("tbody", {}, rows))),
    loads.length ? el("p", { class: "why below" }, "Loading: ", loads.map((l) => `${l.phase} ${time(l.ns)}${l.bytes ? " (" + bytes(l.bytes) + ")" : ""}`).join(", "), ".") : ""];
}

function facts(run) {
  const f = run.facts, rows = [["file", run.path], ["model", f.model_path], ["program", [f.program, f.commit].filter(Boolean).join(", ")], ["command", f.command],
    ["system", f.os], ["cores", f.cores || ""], ["trace level", f.level], ["seed", run.source === "quern" ? f.seed : ""], ["status", f.status], ["model hash", f.hash], ["plan hash", f.plan_hash],
    ["settings", f.settings ? Object.entries(f.settings).filter(([, v]) => v !== null && !(Array.isArray(v) && !v.length)).map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ") : ""],
    ["ceilings", ceilingWords(run.ceilings)]];
  const shown = rows.filter(([, v]) => v !== "" && v !== undefined && v !== null);
  return [el("dl", {}, shown.map(([k, v]) => [el("dt", {}, k), el("dd", { class: /hash|command|file|model/.test(k) ? "mono" : null }, String(v))])),
    run.notes.length ? [el("h3", {}, "Notes"), el("ul", { class: "notes" }, run.notes.map((n) => el("li", {}, n)))] : ""];
}

function ceilingWords(c) {
  const words = [];
  if (c.read_gbs) words.push(`memory ${digits(c.read_gbs, 3)} GB/s` + (c.read_small_gbs ? ` (${digits(c.read_small_gbs, 3)} through 4 KiB pages)` : ""));
  if (c.f32_gflops) words.push(`f32 ${digits(c.f32_gflops, 3)} GFLOP/s`);
  if (c.bf16_gflops) words.push(`bf16 ${digits(c.bf16_gflops, 3)} GFLOP/s`);
  if (c.int8_gops) words.push(`int8 ${digits(c.int8_gops, 3)} GOP/s`);
  if (c.barrier_us) words.push(`barrier ${digits(c.barrier_us, 2)} µs`);
  return words.join(", ");
}

/* [id, name in the navigation, title, why, body, half: may stand beside the next one] */
function parts(run) {
  const steps = run.series.some((s) => s[7]);
  const list = [
    ["advice", "advice", "What to look at", "The things that cost most, and what to try.", advice],
    ["phases", "phases", "Phases", "Every part of the wall time once: the phases add up to it.", phases],
    run.spans.length ? ["timeline", "timeline", "One token, step by step", "Each bar is one step of the plan as it ran. Ctrl and the wheel zoom, dragging moves, the arrow keys walk.", timeline] : null,
    steps ? ["icicle", "icicle", "Where the time is", "Widths are times. Press a bar to look inside it.", icicle] : null,
    steps ? ["roofline", "roofline", "Against the machine's limits", "On the slope a kernel waits for memory, under the flat lines for arithmetic; the nearer to the line, the less is left to gain.", roofline] : null,
    ["latency", "latency", "Time of each token", "Dots far above the line were disturbed from outside, or something rare happened.", latency, true],
    ["growth", "growth", "Growth with position", "What a token costs as the context gets longer, kernel by kernel.", growth, true],
    ["memory", "memory", "Memory", "", memory],
    ["steps", "steps", "Steps", "Press a column's name to sort by it.", stepTable],
    run.choices.length ? ["choices", "choices", "Kernel choices", "Which kernel each step uses, and why.", choiceTable] : null,
    ["run", "run", "The run", "", facts],
  ];
  return list.filter(Boolean);
}

function showRun(run, page) {
  const list = parts(run), nodes = [];
  drawings.length = 0;
  for (let i = 0; i < list.length; i++) {
    const make = ([id, , title, why, body]) => section(id, title, why, body(run));
    if (list[i][5] && list[i + 1] && list[i + 1][5]) nodes.push(el("div", { class: "pair" }, make(list[i]), make(list[++i])));
    else nodes.push(make(list[i]));
  }
  page.replaceChildren(intro(run), ...nodes);
  document.getElementById("nav").replaceChildren(...list.map(([id, name]) => el("a", { href: "#" + id }, name)));
}

function showReport(data, page) {
  const runs = data.runs, hold = el("div");
  const names = runs.map((r, i) => [i, r.name || r.facts.model || "run " + (i + 1)]);
  if (runs.length > 1) page.append(el("div", { class: "tools" }, choice("Run", names, 0, (i) => showRun(runs[i], hold))));
  page.append(hold);
  if (runs.length) showRun(runs[0], hold);
  else hold.append(none("There is no run in this file."));
}
