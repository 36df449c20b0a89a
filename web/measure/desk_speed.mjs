// How fast the desk is in a browser, beside the model: from an answer to its picture, and from the pointer to its cell.
//
//     node measure/desk_speed.mjs 48        48 x 48 pieces, 6 layers, 8 heads of made-up weights, on the page that was built
//
// Prints one JSON object. The times are this machine's; nothing else heavy should run.
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

import { chromium } from "@playwright/test";

const PIECES = Number(process.argv[2] ?? 48);
const [LAYERS, HEADS] = [6, 8];
const PAGE = new URL("../../src/limelight/serving/page", import.meta.url).pathname;
const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const TEXTS = ["two", "three", "four", "five", "six"];

const small = JSON.parse(readFileSync(new URL("../tests/traces/numbers.json", import.meta.url), "utf8"));
const each = (make) => Array.from({ length: PIECES }, (_, index) => make(index));
const again = (list, index) => ({ ...list[index % list.length], word: index });

function weights(more = {}) {
  const data = Buffer.alloc(LAYERS * HEADS * PIECES * PIECES);
  for (let index = 0; index < data.length; index++) data[index] = Math.random() ** 6 * 255;
  return { shape: [LAYERS, HEADS, PIECES, PIECES], enc: "u8", scale: 1 / 255, data: data.toString("base64"), ...more };
}

const trace = {
  ...small,
  model: { ...small.model, enc_layers: LAYERS, dec_layers: LAYERS, heads: HEADS },
  source: { text: "x", tokens: each((index) => again(small.source.tokens, index)), masked: [] },
  target: {
    ...small.target,
    inputs: each((index) => small.target.inputs[index % small.target.inputs.length]),
    tokens: each((index) => again(small.target.tokens, index)),
  },
  attn: { enc: weights(), dec: weights({ causal: true }), cross: weights() },
  stats: {
    ...small.stats,
    heads: ["enc", "dec", "cross"].flatMap((kind) =>
      Array.from({ length: LAYERS * HEADS }, (_, index) => ({
        ...small.stats.heads[0],
        id: `${kind}.${Math.floor(index / HEADS)}.${index % HEADS}`,
      })),
    ),
  },
  align: { ...small.align, method: "head:cross.5.2", head: "cross.5.2", links: [], words: [] },
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
let made = 0;
await page.route("**/*", (route) => {
  const { pathname } = new URL(route.request().url());
  if (pathname === "/api/v1/models")
    return route.fulfill({ json: { models: [{ id: "m", source: "en", target: "de", names: {} }], limits: { beam: 16 } } });
  if (pathname === "/api/v1/trace") {
    const { source } = route.request().postDataJSON();
    return route.fulfill({ json: { ...trace, trace_id: `t${++made}`, source: { ...trace.source, text: source } } });
  }
  const file = join(PAGE, pathname === "/" ? "index.html" : pathname);
  if (pathname.startsWith("/api/") || !existsSync(file)) return route.fulfill({ status: 404, json: {} });
  return route.fulfill({ body: readFileSync(file), contentType: KINDS[extname(file)] ?? "application/octet-stream" });
});
// From the last byte of an answer to the frame after the one in which the page has drawn it.
await page.addInitScript(() => {
  globalThis.paints = [];
  const real = window.fetch;
  window.fetch = async (path, init) => {
    const answer = await real(path, init);
    if (!String(path).includes("api/v1/trace")) return answer;
    const text = await answer.text();
    const began = performance.now();
    setTimeout(() => requestAnimationFrame(() => setTimeout(() => globalThis.paints.push(performance.now() - began), 0)), 0);
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
});
await page.goto("http://desk.test/#/x?s=one");
await page.getByRole("heading", { name: "Stage" }).waitFor();
for (const [number, text] of TEXTS.entries()) {
  await page.waitForFunction((count) => globalThis.paints.length >= count, number + 1);
  await page.getByRole("textbox", { name: "Source" }).fill(text);
  await page.keyboard.press("Enter");
}
await page.waitForFunction((count) => globalThis.paints.length >= count, TEXTS.length + 1);
const paints = await page.evaluate(() => globalThis.paints);
const hover = await page.evaluate(async () => {
  const grid = document.querySelector("[role=grid]");
  const box = grid.getBoundingClientRect();
  const times = [];
  for (let index = 0; index < 60; index++) {
    const began = performance.now();
    const [x, y] = [box.left + (index / 60) * box.width + 1, box.top + (((index * 7) % 60) / 60) * box.height + 1];
    grid.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
    await Promise.resolve();
    await Promise.resolve();
    void document.body.offsetHeight; // so that the layout is counted
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b);
});
await browser.close();
console.log(
  JSON.stringify({
    pieces: PIECES,
    first_ms: paints[0],
    answer_ms: [...paints.slice(1)].sort((a, b) => a - b),
    hover_median_ms: hover[30],
    hover_p95_ms: hover[57],
    problems,
  }),
);
