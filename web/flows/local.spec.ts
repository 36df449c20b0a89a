/** The page that translates by itself, in a browser: parts as they come, several models at once, and what is cancelled. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";

import { expect, test, type Page } from "@playwright/test";

const PYTHON = process.env["PYTHON"] ?? (existsSync("../.venv/bin/python") ? "../.venv/bin/python" : "python3");
const KINDS: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".svg": "image/svg+xml" };
const MADE = process.env["LIMELIGHT_LOCAL_PAGE"]; // a folder with page/ and one.html that were made before
let work = "";
let server: Server;
let address = "";

interface Made {
  translate(text: string, options?: { signal?: AbortSignal }): Promise<string>;
  translateStreaming(text: string, options?: { signal?: AbortSignal }): ReadableStream<string>;
  destroy(): void;
}
interface Known {
  limelight: { Translator: { create(options: object): Promise<Made>; availability(options: object): Promise<string> } };
}

test.beforeAll(async () => {
  test.setTimeout(300_000);
  work = MADE ?? mkdtempSync(join(tmpdir(), "limelight-local-"));
  if (!MADE) execFileSync(PYTHON, ["flows/local_page.py", join(work, "page"), join(work, "one.html")]);
  server = createServer((request, response) => {
    const name = normalize(new URL(request.url!, "http://host").pathname).replace(/\/$/, "/index.html");
    const path = join(work, "page", name);
    if (!existsSync(path)) return void response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": KINDS[extname(name)] ?? "application/octet-stream" }).end(readFileSync(path));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});

test.afterAll(() => {
  server.close();
  if (!MADE) rmSync(work, { recursive: true, force: true });
});

const source = (page: Page) => page.getByLabel("Text to translate");
const words = (page: Page) => page.locator(".words");

test("parts of a translation come one after the other, and together are the whole", async ({ page }) => {
  await page.goto(address);
  const { parts, whole, early } = await page.evaluate(async () => {
    const { Translator } = (globalThis as unknown as Known).limelight;
    const translator = await Translator.create({ sourceLanguage: "en", targetLanguage: "de" });
    const text = " one two three\nseven eight\n\nnine\n";
    const parts: string[] = [];
    const reader = translator.translateStreaming(text).getReader();
    let over = false;
    const last = translator.translate("four").then(() => (over = true)); // asked later, so it is over later
    let early = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value);
      if (!over) early++;
    }
    await last;
    const whole = await translator.translate(text);
    translator.destroy();
    return { parts, whole, early };
  });
  expect(whole).toBe(" eins zwei drei\nsieben acht\n\nneun\n");
  expect(parts.join("")).toBe(whole);
  expect(parts.map((part) => part.trim()).filter(Boolean)).toEqual(["eins zwei drei", "sieben acht", "neun"]);
  expect(early).toBe(parts.length);
});

test("what is cancelled ends, before its text does, and the translator goes on", async ({ page }) => {
  await page.goto(address);
  const found = await page.evaluate(async () => {
    const { Translator } = (globalThis as unknown as Known).limelight;
    const translator = await Translator.create({ sourceLanguage: "en", targetLanguage: "de" });
    const long = Array.from({ length: 3000 }, () => "one two three four five").join("\n");
    const nameOf = (work: Promise<unknown>): Promise<string> => work.then(() => "done", (error: Error) => error.name);
    const ending = new AbortController();
    const signalled = nameOf(translator.translate(long, { signal: ending.signal }));
    setTimeout(() => ending.abort(), 50);
    const one = await signalled;
    const reader = translator.translateStreaming(long).getReader();
    const { value } = await reader.read();
    await reader.cancel();
    const after = await translator.translate("seven"); // 3,000 lines would hold it up for minutes
    const before = await nameOf(translator.translate("one", { signal: AbortSignal.abort() }));
    const destroyed = nameOf(translator.translate(long));
    translator.destroy();
    const gone = new AbortController();
    gone.abort();
    const never = await nameOf(Translator.create({ sourceLanguage: "en", targetLanguage: "de", signal: gone.signal }));
    return [one, value, after, before, await destroyed, await nameOf(translator.translate("one")), never];
  });
  expect(found).toEqual(["AbortError", "eins zwei drei vier fünf\n", "sieben", "AbortError", "AbortError", "AbortError", "AbortError"]);
});

test("two models of one page translate side by side, and each is fetched when it is asked for", async ({ page }) => {
  const fetched: string[] = [];
  page.on("request", (request) => request.url().includes("/models/") && fetched.push(new URL(request.url()).pathname.split("/")[2]!));
  await page.goto(address);
  const [from, into] = [page.getByLabel("Translate from"), page.getByLabel("Translate into")];
  await expect(from.locator("option")).toHaveText(["Dutch", "English"]);
  await expect(from).toHaveValue("en");
  await expect(into.locator("option")).toHaveText(["German"]);
  expect(fetched).toEqual([]);
  const told = await page.evaluate(async () => {
    const { Translator } = (globalThis as unknown as Known).limelight;
    const ways = [["en", "de"], ["nl", "sv"]].map(([sourceLanguage, targetLanguage]) => ({ sourceLanguage, targetLanguage }));
    const before = await Promise.all([...ways, { sourceLanguage: "de", targetLanguage: "en" }].map((way) => Translator.availability(way)));
    const [first, second] = await Promise.all(ways.map((way) => Translator.create(way)));
    const made = await Promise.all([first!.translate("one two"), second!.translate("three four"), first!.translate("five")]);
    first!.destroy(); // the other goes on
    return [...before, ...made, await second!.translate("six"), ...(await Promise.all(ways.map((way) => Translator.availability(way))))];
  });
  expect(told).toEqual(["downloadable", "downloadable", "unavailable", "eins zwei", "drei vier", "fünf", "sechs", "available", "available"]);
  expect(new Set(fetched).size).toBe(2);
  await page.reload(); // both are kept: neither is offered for download
  await source(page).fill("one two");
  await expect(words(page)).toHaveText("eins zwei");
  await from.selectOption({ label: "Dutch" });
  await expect(into).toHaveValue("sv");
  await expect(words(page)).toHaveAttribute("lang", "sv");
  await source(page).fill("seven");
  await expect(words(page)).toHaveText("sieben"); // its label is wrong, and the model is the second's
});

test("an address may bring the text, and a folder opened from a disk says what to do", async ({ page }) => {
  await page.goto(pathToFileURL(join(work, "one.html")).href + "#seven%20two");
  await expect(source(page)).toHaveValue("seven two");
  await expect(words(page)).toHaveText("sieben zwei");
  await page.goto(pathToFileURL(join(work, "one.html")).href + "#%E0%A4%A");
  await page.reload();
  await expect(source(page)).toHaveValue("");
  await page.goto(pathToFileURL(join(work, "page", "index.html")).href);
  await expect(page.getByRole("alert")).toContainText("--single-file");
});
