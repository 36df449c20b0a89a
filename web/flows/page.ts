/** What all flows share: a page that fails when anything is wrong that a person would not see. */

import { test as plain, type Locator, type Page } from "@playwright/test";

export { expect } from "@playwright/test";

export const NUMBER = "seven two five";
export const WRITTEN = "sieben zwei fünf";

/** Fails on errors in the page, refusals of the policy, and requests to any other host. */
export const test = plain.extend<{ watched: void }>({
  watched: [
    async ({ page, baseURL }, use) => {
      const wrong: string[] = [];
      page.on("pageerror", (error) => wrong.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error" && !/status of (4|5)\d\d|net::ERR/.test(message.text())) wrong.push(message.text());
      });
      page.on("request", (request) => {
        if (!request.url().startsWith(baseURL!) && !/^(blob|data):/.test(request.url())) wrong.push(`asked ${request.url()}`);
      });
      await use();
      if (wrong.length) throw new Error(wrong.join("\n"));
    },
    { auto: true },
  ],
});

export const field = (page: Page): Locator => page.getByRole("textbox", { name: "Text to translate" });
export const translation = (page: Page): Locator => page.getByRole("listbox", { name: "Translation, word by word" });

export async function opened(page: Page, search = ""): Promise<void> {
  await page.goto(search);
  await page.getByRole("combobox", { name: "Translate into" }).and(page.locator(":enabled")).waitFor();
}
