import AxeBuilder from "@axe-core/playwright";

import { NUMBER, WRITTEN, expect, field, opened, test, translation } from "./page";

for (const colorScheme of ["light", "dark"] as const)
  for (const width of [1280, 390])
    test(`nothing serious is in the way of anybody: ${colorScheme}, ${width} wide`, async ({ page }) => {
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await opened(page);
      const found = async () => (await new AxeBuilder({ page }).analyze()).violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html}`);
      expect(await found()).toEqual([]);
      await field(page).fill(`${NUMBER} never seen`);
      await translation(page).hover();
      await page.getByText("Call it from a program").click();
      await page.locator("input[type=file]").setInputFiles({ name: "a.pdf", mimeType: "x/y", buffer: Buffer.from("x") });
      expect(await found()).toEqual([]);
      await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
      expect(await found()).toEqual([]);
    });

test("nothing is wider than a phone, also with long words", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await opened(page, `?source=en&target=de&q=${encodeURIComponent(`${"x".repeat(200)} ${NUMBER}`)}`);
  await expect(translation(page)).toBeVisible();
  await page.getByText("Call it from a program").click();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});

test("a tap on a word lights what it belongs to", async ({ browser, baseURL }) => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await opened(page, `${baseURL}?source=en&target=de&q=${encodeURIComponent(NUMBER)}`);
  await translation(page).getByRole("option").nth(1).tap();
  await expect(page.locator(".shadow .lit").first()).toBeVisible();
  await expect(page.locator(".told")).toContainText("zwei");
  await context.close();
});

test("at twice the size nothing is lost", async ({ page }) => {
  await page.setViewportSize({ width: 640, height: 430 }); // 1280 at 200 %
  await opened(page, `?q=${encodeURIComponent(NUMBER)}`);
  await expect(translation(page)).toHaveText(WRITTEN);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(640);
});

test("what is new is spoken", async ({ page }) => {
  await opened(page);
  await field(page).fill(NUMBER);
  await expect(page.locator("p.spoken[role=status]")).toHaveText(WRITTEN);
  await page.getByRole("button", { name: "Copy the translation" }).click();
  await expect(page.locator("p.spoken[role=status]")).toHaveText("Copied");
});

test("every control has a name and is reached by Tab", async ({ page }) => {
  await opened(page, `?source=en&target=de&q=${encodeURIComponent(NUMBER)}`);
  await expect(translation(page)).toBeVisible();
  await page.getByRole("button", { name: "Keyboard shortcuts" }).focus();
  const reached = ["Keyboard shortcuts"];
  for (let i = 0; i < 12; i++) {
    await page.keyboard.press("Tab");
    reached.push(
      await page.evaluate(() => {
        const at = document.activeElement!;
        return at.getAttribute("aria-label") ?? at.textContent!.trim() ?? "";
      }),
    );
  }
  expect(reached).toEqual([
    "Keyboard shortcuts",
    "Dark theme",
    "Translate from",
    "Swap languages",
    "Translate into",
    "Text to translate",
    "File",
    "Clear the text",
    "Translation, word by word",
    expect.stringMatching(/^Confidence \d+ %$/),
    "Copy a link to this text",
    "Copy the translation",
    expect.any(String), // the translations to choose from
  ]);
});

test("the theme follows the system, and only a choice that differs is remembered", async ({ page }) => {
  const remembered = () => page.evaluate(() => localStorage.getItem("limelight.theme"));
  await page.emulateMedia({ colorScheme: "dark" });
  await opened(page);
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.emulateMedia({ colorScheme: "light" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  expect(await remembered()).toBeNull();
  await page.getByRole("button", { name: "Dark theme" }).click();
  expect(await remembered()).toBe("dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.getByRole("button", { name: "Light theme" }).click();
  expect(await remembered()).toBeNull();
});

// 12 of them in each of the places where text of others comes in: nothing runs, nothing becomes an element.
const HOSTILE = [
  "<img src=x onerror=window.hit=1>",
  "<script>window.hit=1</script>",
  "<svg onload=window.hit=1>",
  '"><iframe srcdoc="<script>parent.hit=1</script>">',
  "{@html '<b>x</b>'}",
  "{{constructor.constructor('window.hit=1')()}}",
  "javascript:window.hit=1",
  "</textarea><script>window.hit=1</script>",
  "</style><script>window.hit=1</script>",
  "\u2028<b onclick=window.hit=1>x</b>",
  "<math><mtext></table></math><img src onerror=window.hit=1>",
  "&lt;img src=x onerror=window.hit=1&gt;",
];

test("what others write is never more than text", async ({ page }) => {
  await opened(page);
  let at = 0;
  const text = () => HOSTILE[at % HOSTILE.length]!;
  await page.route("**/api/v1/translate", (route) => {
    const words = [{ text: text(), confidence: 0.1 }];
    const alternative = { text: `${text()} 2`, score: 0, confidence: 0.1, words, alignment: { words: [[0, 0]] } };
    const result = { ...alternative, text: text(), finish: "eos", alternatives: [alternative], protected: true, degenerate: false, warnings: [{ code: "x", message: text() }] };
    return at % 4 === 3
      ? route.fulfill({ status: 400, json: { error: { code: text(), message: text(), hint: text() } } })
      : route.fulfill({ json: { model: text(), source: "en", target: text(), took_ms: 1, results: [result] } });
  });
  await page.getByText("Call it from a program").click();
  for (at = 0; at < HOSTILE.length; at++) {
    const answered = page.waitForResponse("**/api/v1/translate");
    await field(page).fill(text());
    await field(page).press("Control+Enter");
    await answered;
    await page.locator("input[type=file]").setInputFiles({ name: `${text().replaceAll("/", "_")}.pdf`, mimeType: "x/y", buffer: Buffer.from("x") });
    await expect(page.locator("main")).toContainText(text().slice(0, 20).trim());
  }
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
  expect(await page.locator("main img, main iframe, main script, main b[onclick], main math").count()).toBe(0);
});

test("the policy of the page forbids inline scripts and styles", async ({ page }) => {
  const answer = (await page.goto(""))!;
  const policy = answer.headers()["content-security-policy"]!;
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toContain("unsafe");
});
