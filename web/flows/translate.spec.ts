import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";

import { NUMBER, WRITTEN, expect, field, opened, test, translation } from "./page";

test("a text is translated while one types, and asked for once", async ({ page }) => {
  await opened(page);
  const asked: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/api/v1/translate")) asked.push(request.postDataJSON().text);
  });
  await field(page).pressSequentially(NUMBER, { delay: 30 });
  await expect(translation(page)).toHaveText(WRITTEN);
  expect(asked).toEqual([NUMBER]);
});

test("typing on cancels the request under way", async ({ page }) => {
  await opened(page);
  let first = true;
  await page.route("**/api/v1/translate", async (route) => {
    if (!first) return route.continue();
    first = false; // the first answer never comes
  });
  await field(page).fill("seven");
  const failed = page.waitForEvent("requestfailed");
  await page.waitForRequest("**/api/v1/translate");
  await field(page).fill(NUMBER);
  expect((await failed).failure()?.errorText).toBe("net::ERR_ABORTED");
  await expect(translation(page)).toHaveText(WRITTEN);
});

test("Ctrl+Enter does not wait", async ({ page }) => {
  await page.route("**/frontend/settings", async (route) => {
    const settings = (await (await route.fetch()).json()) as object;
    await route.fulfill({ json: { ...settings, frontendTimeout: 3_600_000 } });
  });
  await opened(page);
  await field(page).fill(NUMBER);
  await field(page).press("Control+Enter");
  await expect(translation(page)).toHaveText(WRITTEN);
});

test("a link opens with its languages and text, and stops claiming them when they change", async ({ page }) => {
  await opened(page, `?source=en&target=de&q=${encodeURIComponent(NUMBER)}`);
  await expect(field(page)).toHaveValue(NUMBER);
  await expect(translation(page)).toHaveText(WRITTEN);
  await field(page).fill("seven");
  await expect(page).toHaveURL(/\/$/);
});

test("the link that is copied opens the same", async ({ page, context }) => {
  await opened(page, "?source=en&target=de&q=seven%20%26%20one");
  await page.getByRole("button", { name: "Copy a link" }).click();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await expect.poll(copied).toContain("seven"); // all pages share one clipboard, and copying takes its time
  const other = await context.newPage();
  await opened(other, await copied());
  await expect(field(other)).toHaveValue("seven & one");
});

test("words say how sure they are, not by colour alone, and can be told to keep quiet", async ({ page }) => {
  await opened(page, `?q=${encodeURIComponent("some words that it never saw, twelve")}`);
  const doubtful = translation(page).locator("[data-level=doubtful], [data-level=unsure]").first();
  await expect(doubtful).toHaveCSS("text-decoration-line", "underline");
  await expect(page.getByText("not calibrated")).toBeVisible();
  await page.getByRole("button", { name: /Confidence \d+ %/ }).click();
  await expect(doubtful).toHaveCSS("text-decoration-line", "none");
  await expect(page.getByText("not calibrated")).toBeHidden();
});

test("pointing at a word lights those that it belongs to, on both sides", async ({ page }) => {
  await opened(page, `?q=${encodeURIComponent("seven\ntwo three")}`);
  await expect(translation(page)).toContainText("sieben");
  const word = translation(page).getByRole("option").first();
  await word.hover();
  await expect(word).toHaveClass(/lit/);
  await expect(page.locator(".shadow .lit").first()).toBeVisible();
  await page.mouse.move(0, 0);
  await expect(word).not.toHaveClass(/lit/);

  const box = (await field(page).boundingBox())!;
  await page.mouse.move(box.x + 40, box.y + 30); // in "seven"
  await expect(page.locator(".shadow .lit").first()).toHaveText("seven");
  await expect(translation(page).locator(".lit").first()).toBeVisible();
});

test("the lit words stand exactly under those of the text area", async ({ page }) => {
  await opened(page);
  const text = "a long line that has to be broken somewhere because it is so very long, ".repeat(3) + "\n\nend";
  await field(page).fill(text);
  const [area, shadow] = [await field(page).boundingBox(), await page.locator(".shadow").boundingBox()];
  expect(area).toEqual(shadow);
  // The same lines: the area needs no more height than it was given by the words under it.
  const { scroll, client } = await field(page).evaluate((element) => ({
    scroll: element.scrollHeight,
    client: element.clientHeight,
  }));
  expect(scroll).toBe(client);
});

test("the keyboard goes from word to word, and each says where it comes from", async ({ page }) => {
  await opened(page, `?q=${encodeURIComponent("seven\ntwo")}`);
  await expect(translation(page)).toBeVisible();
  await page.getByRole("button", { name: "Clear the text" }).focus();
  await page.keyboard.press("Tab");
  await expect(translation(page)).toBeFocused();
  const active = translation(page).locator("[aria-selected=true]");
  await expect(active).toHaveCount(1);
  await expect(active).toHaveAccessibleName(/from|no word/);
  const first = await active.getAttribute("id");
  await page.keyboard.press("ArrowRight");
  await expect(active).not.toHaveAttribute("id", first!);
  await page.keyboard.press("Escape");
  await expect(active).toHaveCount(0);
});

test("another translation can be chosen, is shown and is what is copied", async ({ page }) => {
  await opened(page, `?q=${encodeURIComponent(NUMBER)}`);
  const ways = page.getByRole("group", { name: "Ways to say it" }); // matches of a memory may stand before them
  const choices = ways.getByRole("radio");
  await expect(choices.first()).toBeChecked();
  expect(await choices.count()).toBeGreaterThan(1);
  const other = (await ways.locator("label .text").nth(1).textContent())!;
  await choices.nth(1).check();
  await expect(translation(page)).toHaveText(other);
  await page.getByRole("button", { name: "Copy the translation" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(other);
});

test("a swap makes the translation the text, and is not offered without a model for the way back", async ({ page }) => {
  await opened(page, `?source=en&target=de&q=${encodeURIComponent(NUMBER)}`);
  await expect(translation(page)).toHaveText(WRITTEN);
  await page.getByRole("button", { name: "Swap languages" }).click();
  await expect(field(page)).toHaveValue(WRITTEN);
  await expect(page.getByRole("combobox", { name: "Translate from" })).toHaveValue("de");
  await page.getByRole("combobox", { name: "Translate from" }).selectOption("en");
  await page.getByRole("combobox", { name: "Translate into" }).selectOption("ar");
  await expect(page.getByRole("button", { name: "Swap languages" })).toBeDisabled();
});

test("a language is detected and said with how sure that is", async ({ page }) => {
  await opened(page, "?source=auto&target=de&q=This%20is%20certainly%20a%20sentence%20in%20English.");
  await expect(page.getByText(/English, \d\d % sure/)).toBeVisible();
  await field(page).fill("Ceci est une phrase en français, sans aucun doute possible.");
  await expect(page.getByText(/This looks like French \(\d\d %\)/)).toBeVisible();
});

test("languages written from right to left are shown so", async ({ page }) => {
  await opened(page, `?source=en&target=ar&q=${encodeURIComponent(NUMBER)}`);
  await expect(translation(page)).toHaveAttribute("dir", "rtl");
  await expect(translation(page)).toHaveAttribute("lang", "ar");
  await expect(translation(page)).toHaveCSS("direction", "rtl");
  await field(page).fill("שלום");
  await page.getByRole("combobox", { name: "Translate from" }).selectOption("auto");
  await expect(field(page)).toHaveAttribute("dir", "auto");
});

test("the request on show, pasted into a shell, gives the response on show", async ({ page }) => {
  await opened(page, `?q=${encodeURIComponent("it's seven")}`);
  await expect(translation(page)).toBeVisible();
  await page.getByText("Call it from a program").click();
  await expect(page.getByRole("region", { name: "Request" })).toContainText('"nbest": 4');
  const response = JSON.parse((await page.getByRole("region", { name: "Response" }).textContent())!);
  await page.getByRole("button", { name: "curl" }).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  const answer = JSON.parse(execFileSync("sh", ["-c", command.replace("curl ", "curl -s ")]).toString());
  expect(answer.results).toEqual(response.results);
});

test("a dropped file is translated and can be fetched", async ({ page }) => {
  await opened(page, "?source=en&target=de");
  const data = await page.evaluateHandle(() => {
    const carried = new DataTransfer();
    carried.items.add(new File(["seven\none two three\n"], "numbers.txt", { type: "text/plain" }));
    return carried;
  });
  await page.dispatchEvent("main", "drop", { dataTransfer: data });
  const link = page.getByRole("link", { name: "Download" });
  await expect(link).toBeVisible();
  const download = page.waitForEvent("download");
  await link.click();
  expect(await readFile((await (await download).path())!, "utf8")).toBe("sieben\neins zwei drei\n");
  await expect(page.getByText("Fetched")).toBeVisible();
});

test("a file that the server cannot read is not sent", async ({ page }) => {
  await opened(page);
  await page.locator("input[type=file]").setInputFiles({ name: "a.pdf", mimeType: "application/pdf", buffer: Buffer.from("x") });
  await expect(page.getByText(/it cannot read \.pdf/)).toBeVisible();
});

test("too long a text is counted and not sent", async ({ page }) => {
  await opened(page);
  await field(page).fill("😀".repeat(5001));
  await expect(page.getByText("5,001 / 5,000")).toBeVisible();
  await expect(page.getByText("1 characters too many")).toBeVisible();
});

test("a busy server is asked again by itself", async ({ page }) => {
  await opened(page);
  let times = 0;
  await page.route("**/api/v1/translate", async (route) => {
    if (++times > 1) return route.continue();
    await route.fulfill({ status: 503, headers: { "Retry-After": "2" }, json: { error: { code: "busy", message: "full", hint: null } } });
  });
  await field(page).fill(NUMBER);
  await expect(page.getByRole("alert")).toContainText("The server is busy");
  await expect(translation(page)).toHaveText(WRITTEN);
  await expect(page.getByRole("alert")).toBeHidden();
  expect(times).toBe(2);
});

test("a server that went away is said to be gone, and the text stays", async ({ page }) => {
  await opened(page);
  await page.route("**/api/v1/translate", (route) => route.abort("connectionrefused"));
  await field(page).fill(NUMBER);
  await expect(page.getByRole("alert")).toContainText("does not answer");
  await page.unroute("**/api/v1/translate");
  await page.getByRole("button", { name: "Try now" }).click();
  await expect(translation(page)).toHaveText(WRITTEN);
});

test("single keys work where nobody writes, and can be turned off", async ({ page }) => {
  await opened(page, `?source=en&target=de&q=${encodeURIComponent(NUMBER)}`);
  await expect(translation(page)).toBeVisible();
  await translation(page).focus();
  await page.keyboard.press("2");
  await expect(page.getByRole("group", { name: "Ways to say it" }).getByRole("radio").nth(1)).toBeChecked();
  await page.keyboard.press("?");
  await page.getByLabel("Single keys work").uncheck();
  await page.keyboard.press("Escape");
  await translation(page).focus();
  await page.keyboard.press("1");
  await expect(page.getByRole("group", { name: "Ways to say it" }).getByRole("radio").nth(1)).toBeChecked();
});
