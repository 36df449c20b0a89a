import { readFile } from "node:fs/promises";

import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { expect, test } from "./page";

const PO = ["", "seven two four nine", "seven two five", "never seen %s"]
  .map((text) => (text ? `msgid "${text}"\nmsgstr ""\n` : 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'))
  .join("\n");

async function reviewed(page: Page, document = PO): Promise<void> {
  await page.goto("#/review");
  await page.getByRole("combobox", { name: "Translate into" }).waitFor();
  await page.locator("input[type=file]").setInputFiles({ name: "menu.po", mimeType: "text/plain", buffer: Buffer.from(document) });
  await expect(page.getByText("0 of 3 reviewed")).toBeVisible();
}

const downloaded = async (page: Page): Promise<string> => {
  const [file] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("d")]);
  expect(file.suggestedFilename()).toBe("menu.po");
  return readFile(await file.path(), "utf8");
};

for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]] as const)
  test(`a document is reviewed by keyboard alone, the worst first: ${width} wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await reviewed(page);
    const segment = page.getByRole("region", { name: "Segment" });
    const field = page.getByRole("textbox", { name: "Translation" });
    await expect(segment.locator("p.source")).toHaveText("never seen %s");
    await expect(segment.getByText("Ways to say it")).toBeVisible();
    expect((await new AxeBuilder({ page }).analyze()).violations.map(({ id, impact, nodes }) => `${impact} ${id} ${nodes[0]?.html}`)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.screenshot({ path: `${process.env["SHOTS"] ?? "test-results"}/review-${width}.png`, fullPage: true });
    // Nobody has looked at anything: what is unsure is marked, and the rest is the machine's.
    expect(await downloaded(page)).toMatch(/#, fuzzy\nmsgid "never seen %s"/);
    await page.keyboard.press("e");
    await expect(field).toBeFocused();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("nie gesehen: %s");
    const sent = page.waitForRequest("**/api/v1/corrections");
    await page.keyboard.press("Control+Enter");
    expect((await sent).postDataJSON()).toMatchObject({ text: "never seen %s", correction: "nie gesehen: %s", model: "en-de" });
    await expect(page.getByText("1 of 3 reviewed")).toBeVisible();
    await expect(page.getByText("1 kept as corrections")).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(segment.locator("p.source")).toHaveText("seven two five");
    await page.keyboard.press("j");
    await expect(segment.locator("p.source")).toHaveText("seven two four nine");
    await expect(segment.locator(".place")).toContainText("from the memory");
    await expect(segment.getByText(/90 % the same/)).toBeVisible();
    await page.keyboard.press("6");
    await expect(field).toHaveValue("sieben zwei vier neun eins, wie je");
    await page.screenshot({ path: `${process.env["SHOTS"] ?? "test-results"}/review-match-${width}.png`, fullPage: true });
    await page.keyboard.press("a");
    await expect(page.getByText("2 of 3 reviewed")).toBeVisible();
    await page.keyboard.press("k");
    const made = await downloaded(page);
    expect(made).not.toContain("fuzzy");
    expect(made).toContain('msgid "never seen %s"\nmsgstr "nie gesehen: %s"');
    expect(made).toContain('msgstr "sieben zwei vier neun eins, wie je"');
    expect(made).toContain('msgid "seven two five"\nmsgstr "sieben zwei fünf"');
  });

test("what would harm the document is told, and the rest is there", async ({ page }) => {
  await reviewed(page, PO.replace('msgid "never', '#, c-format\nmsgid "never'));
  await page.getByRole("textbox", { name: "Translation" }).fill("nie gesehen");
  await page.keyboard.press("Control+Enter");
  await page.keyboard.press("Escape");
  const made = await downloaded(page);
  await expect(page.getByRole("alert")).toContainText("stays as it was: its translation would have harmed the document");
  expect(made).toContain('#, c-format\nmsgid "never seen %s"\nmsgstr ""');
  expect(made).toContain('msgid "seven two five"\nmsgstr "sieben zwei fünf"');
});

test("a file that nobody can read is refused with the reason", async ({ page }) => {
  await page.goto("#/review");
  await page.getByRole("combobox", { name: "Translate into" }).waitFor();
  await page.locator("input[type=file]").setInputFiles({ name: "a.pdf", mimeType: "x/y", buffer: Buffer.from("x") });
  await expect(page.getByRole("alert")).toContainText(".pdf");
  await page.locator("input[type=file]").setInputFiles({ name: "a.docx", mimeType: "x/y", buffer: Buffer.from("no archive") });
  await expect(page.getByRole("alert")).toContainText("cannot be translated");
});
