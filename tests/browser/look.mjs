// look.mjs CONFIG - opens pages in chromium as readers do: two sizes, two themes, mouse and keyboard; prints what is wrong, as JSON.
// CONFIG: {"chromium": path, "playwright": folder, "pages": [{"name", "file", "kind": "report"|"compare", "rich": bool}], "shots": folder|null}
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(config.playwright + "/x.js")("playwright-core");
const SIZES = [["phone", 360, 740], ["desk", 1280, 900]];
const THEMES = ["light", "dark"];
const problems = [], facts = {};

// Everything a reader could see running out of its place. Boxes that scroll or cut on purpose say so in their style.
function findOverflow() {
  const out = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) out.push(`the page is ${page.scrollWidth} wide in ${page.clientWidth}`);
  for (const e of document.querySelectorAll("main *, header *")) {
    if (e.closest("svg") || e.closest("noscript") || !e.clientWidth) continue;
    const style = getComputedStyle(e);
    if (style.overflowX !== "visible" || style.display === "inline") continue;
    if (e.scrollWidth > e.clientWidth + 1 && !e.closest(".scroll") && !e.closest("nav"))
      out.push(`${e.tagName}.${e.className} holds ${e.scrollWidth} in ${e.clientWidth}: ${e.textContent.slice(0, 60)}`);
  }
  for (const t of document.querySelectorAll("svg text")) {
    const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
    if (a.left < b.left - 2 || a.right > b.right + 2 || a.top < b.top - 4 || a.bottom > b.bottom + 4) out.push(`a label leaves its drawing: ${t.textContent}`);
  }
  return out;
}

function describe() {
  const luminance = (text) => {
    const [r, g, b] = text.match(/[\d.]+/g).map(Number).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (e, ground) => {
    const a = luminance(getComputedStyle(e).color), b = luminance(getComputedStyle(ground).backgroundColor);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const shapes = [...document.querySelectorAll(".draw")].map((d) => [d.getAttribute("aria-label"), d.querySelectorAll("rect, circle, line, path").length]);
  const canvas = document.querySelector("canvas");
  let colors = 0;
  if (canvas) {
    const p = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
    for (let i = 0; i < p.length; i += 4) if (p[i + 3]) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]);
    colors = seen.size;
  }
  const card = document.querySelector("section") || document.body;
  return { theme: document.documentElement.dataset.theme, shapes, colors, sections: [...document.querySelectorAll("section")].map((s) => s.id),
    ink: contrast(document.body, document.body), soft: contrast(document.querySelector(".why, .none, .sub") || card, card),
    title: document.title, rows: document.querySelectorAll("#steps tbody tr").length, evil: window.evil === undefined ? null : window.evil };
}

async function useKeyboard(page, say) {
  await page.focus("canvas");
  await page.keyboard.press("ArrowRight");
  if (await page.isHidden("#tip")) say("an arrow key in the timeline names no step");
  const before = await page.textContent("#timeline .mono");
  await page.keyboard.press("+");
  if (await page.textContent("#timeline .mono") === before) say("+ does not zoom the timeline");
  await page.keyboard.press("0");
  if (await page.textContent("#timeline .mono") !== before) say("0 does not show all of the timeline");
  const crumb = await page.textContent("#icicle .crumbs");
  await page.locator("#icicle rect[tabindex]").nth(1).focus();
  await page.keyboard.press("Enter");
  if (await page.textContent("#icicle .crumbs") === crumb) say("Enter does not look into a bar of the icicle");
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press("t");
  if (await page.evaluate(() => document.documentElement.dataset.theme) === theme) say("t does not change the theme");
  await page.keyboard.press("t");
}

async function useTable(page, say) {
  const first = () => page.textContent("#steps tbody tr td"), rows = () => page.locator("#steps tbody tr").count();
  const all = await rows();
  await page.locator("#steps th button").first().click();
  const a = await first();
  await page.locator("#steps th button").first().click();
  if (all > 1 && await first() === a) say("a second press on a column does not turn its order");
  await page.fill("#steps input[type=search]", "attend");
  const some = await rows();
  if (some === 0 || some >= all) say(`the filter keeps ${some} of ${all} rows`);
  await page.fill("#steps input[type=search]", "no such step");
  if (await rows() !== 0) say("the filter keeps rows that do not match");
  await page.fill("#steps input[type=search]", "");
  for (const by of ["by op", "by role", "by layer"]) await page.locator("#steps").getByRole("button", { name: by }).click();
}

async function usePointer(page, say) {
  const box = await page.locator("canvas").boundingBox(), where = () => page.textContent("#timeline .mono");
  await page.locator("canvas").scrollIntoViewIfNeeded();
  const r = await page.locator("canvas").boundingBox();
  await page.mouse.move(r.x + r.width / 2, r.y + r.height - 20);
  if (await page.isHidden("#tip")) say("the pointer in the timeline names no step");
  await page.getByRole("button", { name: "Zoom in" }).click();
  const zoomed = await where();
  await page.mouse.move(r.x + r.width / 2, r.y + r.height - 20);
  await page.mouse.down();
  await page.mouse.move(r.x + r.width / 4, r.y + r.height - 20, { steps: 4 });
  await page.mouse.up();
  if (await where() === zoomed) say("dragging does not move the timeline");
  await page.locator("#timeline").getByRole("button", { name: "all" }).click();
  if (!box) say("the timeline has no size");
}

async function look(browser, it, [size, width, height], theme) {
  const say = (text) => problems.push(`${it.name}, ${size}, ${theme}: ${text}`);
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme, hasTouch: size === "phone" });
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") say(`console: ${m.text()}`); });
  page.on("pageerror", (e) => say(`error: ${e.message}`));
  page.on("request", (r) => { if (!r.url().startsWith("file:") || r.resourceType() !== "document") say(`asks for ${r.url()}`); });
  await page.goto("file://" + it.file);
  await page.waitForTimeout(150);
  const d = await page.evaluate(describe);
  facts[`${it.name} ${size} ${theme}`] = d;
  if (d.theme !== theme) say(`shows the ${d.theme} theme`);
  if (d.ink < 7 || d.soft < 4.5) say(`contrast ${d.ink.toFixed(1)} and ${d.soft.toFixed(1)}`);
  if (d.evil !== null) say("a text of the trace ran as a script");
  for (const text of await page.evaluate(findOverflow)) say(text);
  for (const [label, n] of d.shapes) if (n < 1 && !/Timeline/.test(label)) say(`nothing is drawn in: ${label}`);
  if (it.rich) {
    if (d.colors < 8) say(`the timeline has ${d.colors} colours`);
    await useKeyboard(page, say);
    await useTable(page, say);
    await usePointer(page, say);
    for (const text of await page.evaluate(findOverflow)) say("after use: " + text);
  }
  if (config.shots) await page.screenshot({ path: `${config.shots}/${it.name}-${size}-${theme}.png`, fullPage: true });
  await page.close();
}

const browser = await chromium.launch({ executablePath: config.chromium, args: ["--no-sandbox"] });
for (const it of config.pages) for (const size of SIZES) for (const theme of THEMES) await look(browser, it, size, theme);
await browser.close();
console.log(JSON.stringify({ problems, facts }));
