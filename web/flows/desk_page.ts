/** What the flows of the lighting desk share. */

import { readFile } from "node:fs/promises";

import { expect, type Download, type Locator, type Page } from "@playwright/test";

export const source = (page: Page): Locator => page.getByRole("textbox", { name: "Source" });
export const verdict = (page: Page): Locator => page.getByRole("region", { name: "Verdict" });
export const spot = (page: Page): Locator => page.getByRole("region", { name: "Spot" });
export const spoken = (page: Page): Locator => page.locator("p.spoken[role=status]").first();

/** The desk, open with a text and whatever else its address says. */
export async function atDesk(page: Page, text: string, more = ""): Promise<void> {
  await page.goto(`#/x?m=en-de&s=${encodeURIComponent(text)}${more}`);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await page.getByRole("heading", { name: "Spot" }).waitFor();
  await expect(page.locator("form.busy")).toHaveCount(0);
}

/** The numbers in the spot, row by row, from its table; null where it is masked. */
export async function table(page: Page): Promise<(number | null)[][]> {
  const texts = await spot(page).locator("table tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent!)));
  return texts.map((row) => row.map((text) => (text === "masked" ? null : Number(text.replace("−", "-")))));
}

/** Pixels of the picture in the spot, as the canvas has them. */
export function pixels(page: Page): Promise<number[]> {
  return spot(page).locator("canvas").evaluate((canvas: HTMLCanvasElement) => [...canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data]);
}

export async function textOf(download: Download): Promise<string> {
  return (await readFile(await download.path())).toString();
}

/** What a button in the export menu saves; `name` as it is spoken, such as "SVG of Spot". */
export async function taken(page: Page, name: string): Promise<Download> {
  const saving = page.waitForEvent("download");
  await page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
  return saving;
}
