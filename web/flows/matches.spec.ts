import AxeBuilder from "@axe-core/playwright";

import { expect, field, opened, test, translation } from "./page";

const TEXT = "seven two four nine";

for (const width of [1280, 390])
  test(`a match of the memory is seen with its difference and taken by a key: ${width} wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 844 });
    await page.emulateMedia({ reducedMotion: "reduce" });
    await opened(page, `?source=en&target=de&q=${encodeURIComponent(TEXT)}`);
    const matches = page.getByRole("group", { name: "From the memory" });
    await expect(matches.getByText("the same text · numbers.tmx")).toBeVisible();
    await expect(matches.getByText(/90 % the same/)).toBeVisible();
    await expect(matches.locator("del")).toHaveText("one");
    expect((await new AxeBuilder({ page }).analyze()).violations.map(({ id, impact }) => `${impact} ${id}`)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.screenshot({ path: `${process.env["SHOTS"] ?? "test-results"}/matches-${width}.png`, fullPage: true });
    await field(page).blur();
    await page.keyboard.press("6");
    await expect(translation(page)).toHaveText("sieben zwei vier neun eins, wie je");
    await page.keyboard.press("e");
    const sent = page.waitForRequest("**/api/v1/corrections");
    await page.keyboard.press("Control+Enter");
    expect((await sent).postDataJSON()).toMatchObject({ text: TEXT, translation: "sieben zwei vier neun", correction: "sieben zwei vier neun eins, wie je" });
    await expect(page.getByText("Thank you: your correction is kept.")).toBeVisible();
  });

test("where the server has no memory, none is asked for", async ({ page }) => {
  await page.route("**/api/v1/models", async (route) => {
    const known = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...known, memory: false } });
  });
  await opened(page);
  const asked = page.waitForRequest("**/api/v1/translate");
  await field(page).fill(TEXT);
  expect((await asked).postDataJSON()).not.toHaveProperty("matches");
  await expect(translation(page)).toBeVisible();
  await expect(page.getByRole("group", { name: "From the memory" })).toBeHidden();
});
