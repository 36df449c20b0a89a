import AxeBuilder from "@axe-core/playwright";

import { NUMBER, WRITTEN, expect, field, opened, test, translation } from "./page";

for (const colorScheme of ["light", "dark"] as const)
  test(`a translation is corrected, completed and sent by keyboard alone: ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await opened(page);
    await field(page).fill(NUMBER);
    await expect(translation(page)).toHaveText(WRITTEN);
    await field(page).blur();
    await page.keyboard.press("e");
    const correction = page.getByRole("textbox", { name: "How it should be translated" });
    await expect(correction).toBeFocused();
    await expect(correction).toHaveValue(WRITTEN);
    expect((await new AxeBuilder({ page }).analyze()).violations.map(({ id, impact }) => `${impact} ${id}`)).toEqual([]);
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("acht ");
    await page.keyboard.press("Control+Space");
    await expect(correction).toHaveValue(/^acht zwei/);
    const sent = page.waitForRequest("**/api/v1/corrections");
    await page.keyboard.press("Control+Enter");
    expect((await sent).postDataJSON()).toMatchObject({ text: NUMBER, translation: WRITTEN, model: "en-de" });
    await expect(page.getByText("Thank you: your correction is kept.")).toBeVisible();
    await expect(page.getByRole("button", { name: "Correct the translation" })).toBeFocused();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await expect(correction).toBeHidden();
  });

test("where no corrections are kept, none are asked for", async ({ page }) => {
  await page.route("**/api/v1/models", async (route) => {
    const known = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...known, corrections: false } });
  });
  await opened(page);
  await field(page).fill(NUMBER);
  await expect(translation(page)).toHaveText(WRITTEN);
  await expect(page.getByRole("button", { name: "Correct the translation" })).toBeHidden();
});
