import AxeBuilder from "@axe-core/playwright";

import { atDesk, source, spot } from "./desk_page";
import { NUMBER, expect, test } from "./page";

for (const colorScheme of ["light", "dark"] as const)
  test(`the desk is in nobody's way: ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await atDesk(page, NUMBER, "&off=c0.1&q=1");
    const found = async () => (await new AxeBuilder({ page }).analyze()).violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
    expect(await found()).toEqual([]);
    await spot(page).getByRole("button", { name: "Table" }).click();
    await page.getByRole("button", { name: "Learn" }).click();
    for (const panel of ["Positions", "Trace stepper", "Compare", "Time-lapse"]) {
      await page.getByRole("tab", { name: panel }).click();
      await expect(page.getByRole("tabpanel")).toBeVisible();
      if (panel !== "Time-lapse") continue;
      expect(await found(), panel).toEqual([]);
    }
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^Export/ }).first().click();
    expect(await found()).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await expect(page.getByRole("dialog", { name: "Keyboard" })).toBeVisible();
    expect(await found()).toEqual([]);
  });

test("on a phone nothing is wider than the screen, whatever is open", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await atDesk(page, "three hundred forty-seven thousand nine hundred twelve", "&off=c0.1");
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  expect(await width()).toBe(390);
  for (const panel of ["Positions", "Trace stepper", "Time-lapse", "Compare", "Beam tree"]) {
    await page.getByRole("tab", { name: panel }).click();
    expect(await width(), panel).toBe(390);
  }
  await page.getByRole("button", { name: "Learn" }).click();
  await page.getByRole("button", { name: /^Heads/ }).click();
  expect(await width()).toBe(390);
  await page.getByRole("button", { name: "Close the tours" }).click();
  await page.getByRole("button", { name: /^Export/ }).first().click();
  expect(await width()).toBe(390);
});

test("keys do nothing while somebody writes", async ({ page }) => {
  await atDesk(page, NUMBER);
  await source(page).focus();
  await page.keyboard.press("End");
  await page.keyboard.type(" mse?");
  await expect(source(page)).toHaveValue(`${NUMBER} mse?`);
  await expect(page.locator("dialog[open]")).toHaveCount(0);
  expect(page.url()).not.toContain("off=");
});
