import type { Page } from "@playwright/test";

import { expect, field, opened, test, translation } from "./page";

const CAT = "the cat sat on the mat";

/** For those who want to look: SHOTS is a folder. */
async function shot(page: Page, name: string): Promise<void> {
  if (process.env["SHOTS"]) await page.screenshot({ path: `${process.env["SHOTS"]}/${name}.png`, fullPage: true });
}

test("a model of several languages is in the menus, swaps inside, and is told tags", async ({ page }) => {
  await opened(page, `?source=sv&target=nl&q=${encodeURIComponent(CAT)}`);
  const [from, into] = [page.getByRole("combobox", { name: "Translate from" }), page.getByRole("combobox", { name: "Translate into" })];
  await expect(from).toHaveValue("sv");
  await expect(into.locator("option")).toHaveText(["Danish", "Dutch"]);
  await expect(translation(page)).not.toBeEmpty();
  const dutch = await translation(page).textContent();
  await into.selectOption("da");
  await expect(translation(page)).not.toHaveText(dutch!);
  const danish = await translation(page).textContent();

  const asked = page.waitForRequest("**/api/v1/translate");
  await page.getByText("Tags", { exact: true }).first().click();
  await page.getByRole("checkbox", { name: "informal", exact: true }).check();
  expect((await asked).postDataJSON()).toMatchObject({ source: "sv", target: "da", tags: ["informal"] });
  await expect(translation(page)).not.toHaveText(danish!);
  await shot(page, "tags-menu");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("checkbox", { name: "informal", exact: true })).toBeHidden();

  await page.getByRole("button", { name: "Swap languages" }).click();
  await expect(from).toHaveValue("da");
  await expect(into).toHaveValue("sv");
  await expect(field(page)).not.toHaveValue(CAT);
  await expect(translation(page)).not.toBeEmpty();
});

test("the desk shows tags as pieces of the source, dims them, and compares two languages", async ({ page }) => {
  await page.goto(`#/x?m=multi&s=${encodeURIComponent(CAT)}`);
  const stage = page.locator(".stage"); // its pieces were learnt for other languages than serve.py says
  await expect(stage.getByText("<2de>").first()).toBeVisible();
  await page.getByRole("button", { name: "formal", exact: true }).click();
  await expect(stage.getByText("<formal>").first()).toBeVisible();
  await page.getByRole("combobox", { name: "Into" }).selectOption("da");
  await expect(stage.getByText("<2fr>").first()).toBeVisible();
  await expect(page).toHaveURL(/m=multi:sv-da.*tag=formal/);

  await page.getByRole("button", { name: "hide <formal>" }).click();
  await expect(page).toHaveURL(/hide=1(&|$)/);
  await page.getByRole("tab", { name: "Compare" }).click();
  await page.getByRole("radio", { name: "another language" }).check();
  const panel = page.getByRole("tabpanel");
  await expect(panel.getByRole("heading", { name: "Danish" })).toBeVisible();
  await expect(panel.getByRole("heading", { name: "Dutch" })).toBeVisible();
  await shot(page, "desk-compare");
});
