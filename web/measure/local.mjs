// Visits an exported page with Chromium as a person would, and prints what was found as JSON:
// node measure/local.mjs FOLDER SINGLE.html "a sentence" "its translation" [PICTURES]
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";

import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "@playwright/test";

const [folder, single, sentence, wanted, pictures] = process.argv.slice(2);
const KINDS = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".json": "application/json" };
let changed = null; // a file of which one byte is another
const server = createServer((request, response) => {
  const name = normalize(decodeURIComponent(new URL(request.url, "http://host").pathname)).replace(/\/$/, "/index.html");
  try {
    const bytes = readFileSync(join(folder, name));
    if (changed && name.endsWith(changed)) bytes[bytes.length >> 1] ^= 1;
    response.writeHead(200, { "Content-Type": KINDS[extname(name)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const found = { errors: [] };

async function open(context, url) {
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(error.message));
  await page.goto(url);
  return page;
}

async function translate(page) {
  await page.getByLabel("Text to translate").fill(sentence);
  await page.locator(".words span[data-level]").first().waitFor({ timeout: 60_000 });
  return (await page.locator(".words").innerText()).trim();
}

const context = await browser.newContext();
let page = await open(context, address);
const download = page.getByRole("button", { name: /Download/ });
await download.waitFor();
const began = Date.now();
await download.click();
await page.getByText("The translation appears here.").waitFor({ timeout: 60_000 });
found.ready_seconds = (Date.now() - began) / 1000;
found.online = (await translate(page)) === wanted;
found.alternatives = await page.locator("fieldset label").count();
found.heat_maps = await page.locator("canvas").count();
// A dark house: every head of the cross-attentions dimmed, so the model no longer sees the source.
for (let at = 0, many = await page.locator("section select option").count(); at < many; at++) {
  await page.locator("section select").selectOption(String(at));
  await page.locator("input[type=range]").evaluate((input) => ((input.value = "0"), input.dispatchEvent(new Event("change", { bubbles: true }))));
}
await page.waitForFunction((bright) => document.querySelector(".words").innerText.trim() !== bright, wanted, { timeout: 30_000 }).catch(() => {});
found.dark_differs = (await page.locator(".words").innerText()).trim() !== wanted;
await page.getByRole("button", { name: "All lights on" }).click();
await page.evaluate(() => navigator.serviceWorker.ready);
await page.waitForTimeout(500);
await page.close();

server.closeAllConnections();
await new Promise((resolve) => server.close(resolve));
page = await open(context, address);
found.offline = (await translate(page)) === wanted;
await context.close();

await new Promise((resolve) => server.listen(Number(new URL(address).port), "127.0.0.1", resolve));
for (const name of [".uint8.onnx", "worker.js", "ort.wasm", "pieces.model"]) {
  changed = name;
  const fresh = await browser.newContext();
  page = await open(fresh, address);
  await page.getByRole("button", { name: /Download/ }).click();
  const said = await page.getByRole("alert").innerText({ timeout: 60_000 });
  found.refused = (found.refused ?? 0) + Number(said.includes("was changed"));
  found.refusal = said;
  await fresh.close();
}
changed = null;
found.errors = [];

const alone = await browser.newContext();
page = await open(alone, pathToFileURL(single).href);
found.file = (await translate(page)) === wanted;
await alone.close();

found.serious = 0;
if (pictures) mkdirSync(pictures, { recursive: true });
for (const colorScheme of ["light", "dark"])
  for (const width of [390, 1280]) {
    const shown = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
    page = await open(shown, pathToFileURL(single).href);
    await translate(page);
    await page.waitForTimeout(300);
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    found.serious += serious.length;
    if (serious.length) found.axe = serious.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
    found.overflow = Math.max(found.overflow ?? 0, await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
    if (pictures) writeFileSync(join(pictures, `${width}-${colorScheme}.png`), await page.screenshot({ fullPage: true }));
    await shown.close();
  }
await browser.close();
server.close();
console.log(JSON.stringify(found));
