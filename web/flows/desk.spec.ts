import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

import { atDesk, pixels, settled, source, spoken, spot, table, taken, textOf, verdict } from "./desk_page";
import { NUMBER, WRITTEN, expect, test } from "./page";

const PYTHON = process.env["PYTHON"] ?? (existsSync("../.venv/bin/python") ? "../.venv/bin/python" : "python3");

interface Numbers {
  text: string;
  logp: number;
  attention: Record<"enc" | "dec" | "cross", number[][][][]>;
  scores: number[][][];
  tokens: { piece: string; logp: number; entropy: number; rank: number; margin: number; topk: [number, string, number][] }[];
  heads: Record<string, [number, number, number]>;
  align: string;
  verdict: { text: string; delta: number; deltas: number[] } | null;
}

/** The same sentence and the same changes, in Python. */
function python(text: string, gates: Record<string, number>): Numbers {
  const told = execFileSync(PYTHON, ["flows/desk_numbers.py", text, JSON.stringify(gates)], { maxBuffer: 1 << 26, env: { ...process.env, OMP_NUM_THREADS: "1" } });
  return JSON.parse(told.toString()) as Numbers;
}

/** The number after `name` in a text, as it is written there. */
function told(text: string, name: string): number {
  const found = new RegExp(`${name}\\s*([−+]?\\d+(?:\\.\\d+)?)`).exec(text);
  if (!found) throw new Error(`no ${name} in ${text}`);
  return Number(found[1]!.replace("−", "-"));
}

/** Rounded once to 4 digits by the server, and once more by the page. */
function near(shown: number, exact: number, digits: number): void {
  expect(Math.abs(shown - exact), `${shown} is ${exact}`).toBeLessThanOrEqual(0.5 * 10 ** -digits + 0.5e-4 + 1e-6);
}

test("without a mouse: translate, pick a head, mute it, read the verdict, undo, export", async ({ page }) => {
  await page.goto("#/x?m=en-de");
  await source(page).waitFor();
  await page.keyboard.press("/");
  await expect(source(page)).toBeFocused();
  await page.keyboard.type(NUMBER);
  await page.keyboard.press("Enter");
  await expect(spoken(page)).toHaveText(WRITTEN);
  await source(page).blur();

  await page.keyboard.press("1");
  await expect(spot(page)).toContainText("encoder · layer 0 · head 0");
  await page.keyboard.press("3");
  await page.keyboard.press("]");
  await page.keyboard.press(".");
  const head = (await spot(page).locator("header p").textContent())!;
  expect(head).toMatch(/cross · layer \d · head \d/);
  expect(await verdict(page).count()).toBe(0);

  await page.keyboard.press("m");
  const [, layer, number] = /layer (\d) · head (\d)/.exec(head)!;
  await expect(verdict(page)).toContainText(`muted: cross ${layer}·${number}`);
  await expect(verdict(page)).toContainText("Δ log p");
  await expect(spoken(page)).toContainText("Log-probability of the first translation");
  expect(page.url()).toContain(`off=c${layer}.${number}`);

  await page.keyboard.press("z");
  await expect(verdict(page)).toBeHidden();
  await expect(spoken(page)).toHaveText(WRITTEN);
  expect(page.url()).not.toContain("off=");

  await page.keyboard.press("e");
  const menu = page.getByRole("dialog", { name: "Export" });
  await expect(menu).toBeVisible();
  const saving = page.waitForEvent("download");
  for (let presses = 0; presses < 30; presses++) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(() => document.activeElement?.textContent?.trim())) === "SVG of Spot") break;
  }
  await page.keyboard.press("Enter");
  const svg = await textOf(await saving);
  expect(svg).toContain("<title");
  for (const piece of ["▁seven", "▁sieben"]) expect(svg).toContain(`>${piece}</text>`);
  await expect(menu.getByRole("status")).toContainText("Saved limelight-seven-two-five");
  await page.keyboard.press("Escape");
  await expect(menu).toBeHidden();
});

test("every number on the page is the number that Python has", async ({ page }) => {
  test.slow(); // a process that loads torch, and some thirty views: 10 s on a quiet machine, minutes on a busy one
  const gates = { "cross.1.1": 0 };
  const expected = python(NUMBER, gates);
  await atDesk(page, NUMBER, "&off=c1.1&u=pieces");
  const stage = page.getByRole("region", { name: "Stage" });
  await expect(stage).toContainText(expected.text);
  near(told((await stage.textContent())!, "log p"), expected.logp, 2);
  const percents = await stage.locator(".percent").allTextContents();
  expect(percents).toHaveLength(expected.tokens.length);
  for (const [at, { logp }] of expected.tokens.entries()) expect(Math.abs(Number.parseInt(percents[at]!.replace("<", ""), 10) - 100 * Math.exp(logp))).toBeLessThanOrEqual(1);

  await expect(verdict(page)).toContainText("Δ log p");
  near(told((await verdict(page).textContent())!, "Δ log p"), expected.verdict!.delta, 2);
  await verdict(page).getByRole("button", { name: "By piece" }).click();
  const deltas = await verdict(page).locator(".delta").allTextContents();
  expect(deltas).toHaveLength(expected.verdict!.deltas.length);
  for (const [at, text] of deltas.entries()) near(Number(text.replace("−", "-")), expected.verdict!.deltas[at]!, 2);

  // All heads of all kinds, cell by cell. A byte holds a weight to half of 1/255; the table rounds to a thousandth.
  await spot(page).getByRole("button", { name: "Table" }).click();
  let cells = 0;
  for (const [key, kind] of [["1", "enc"], ["2", "dec"], ["3", "cross"]] as const)
    for (const [layer, heads] of expected.attention[kind].entries())
      for (const [head, wanted] of heads.entries()) {
        await page.goto(`#/x?m=en-de&s=${encodeURIComponent(NUMBER)}&off=c1.1&u=pieces&k=${kind}&l=${layer}&h=${head}`);
        await expect(spot(page).locator("caption")).toContainText(`layer ${layer}, head ${head}`);
        const [entropy, diagonal, end] = expected.heads[`${kind}.${layer}.${head}`]!;
        const stats = (await page.locator(".stats").textContent())!;
        near(told(stats, "spread"), entropy, 2);
        near(told(stats, "diagonal"), diagonal, 2);
        near(told(stats, "on the end mark"), end, 2);
        for (const [row, values] of (await table(page)).entries())
          for (const [column, value] of values.entries()) {
            const exact = wanted[row]![column]!;
            cells++;
            if (kind === "dec" && column > row) expect([value, exact]).toEqual([null, 0]);
            else expect(Math.abs(value! - exact), `${kind}.${layer}.${head} ${row} ${column} (${key})`).toBeLessThanOrEqual(0.5 / 255 + 0.0005 + 1e-6);
          }
      }
  expect(cells).toBe(Object.values(expected.attention).flat(4).length);

  // Scores come as halves: 11 bits.
  await page.goto(`#/x?m=en-de&s=${encodeURIComponent(NUMBER)}&off=c1.1&u=pieces&k=enc&l=0&h=2&st=scores`);
  await expect(spot(page).locator("caption")).toContainText("head 2, scores"); // the table stays open
  for (const [row, values] of (await table(page)).entries())
    for (const [column, value] of values.entries()) {
      const exact = expected.scores[2]![row]![column]!;
      expect(Math.abs(value! - exact)).toBeLessThanOrEqual(0.0006 + Math.abs(exact) / 1024);
    }

  const token = page.getByRole("region", { name: "Token" });
  for (const [at, each] of expected.tokens.entries()) {
    await page.goto(`#/x?m=en-de&s=${encodeURIComponent(NUMBER)}&off=c1.1&u=pieces&q=${at}`);
    await expect(token.locator("header")).toContainText(`step ${at}`);
    const figures = (await token.locator("dl").textContent())!;
    near(told(figures, "entropy"), each.entropy, 2);
    near(told(figures, "margin"), each.margin, 2);
    near(told(figures, "log p"), each.logp, 3);
    expect(told(figures, "rank")).toBe(each.rank + 1);
    const listed = await token.locator(".chances li").evaluateAll((items) => items.map((item) => [item.querySelector(".piece")!.textContent!.trim(), item.querySelector(".number")!.textContent!.trim()]));
    expect(listed.map(([piece]) => piece)).toEqual(each.topk.map(([, piece]) => piece));
    for (const [rank, [, , logp]] of each.topk.entries()) expect(Math.abs(Number.parseFloat(listed[rank]![1]!.replace("<", "")) - 100 * Math.exp(logp))).toBeLessThanOrEqual(0.06);
  }
});

test("an exported file opens with the network off and shows the same picture", async ({ page, browser }, info) => {
  await atDesk(page, `${NUMBER} <b>&</b>`, "&k=dec&l=1&h=3&off=c0.2:0.4&pa=viridis");
  const before = await pixels(page);
  const words = await page.getByRole("toolbar", { name: "Target pieces" }).getByRole("button").allTextContents();
  await page.keyboard.press("e");
  const file = info.outputPath("desk.html");
  const html = await taken(page, "HTML");
  expect(html.suggestedFilename()).toBe("limelight-seven-two-five-b-b.html");
  await html.saveAs(file);

  const context = await browser.newContext({ offline: true, viewport: { width: 1280, height: 860 } });
  const alone = await context.newPage();
  const wrong: string[] = [];
  alone.on("pageerror", (error) => wrong.push(error.message));
  alone.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  alone.on("request", (request) => /^(file|data|blob):/.test(request.url()) || wrong.push(request.url()));
  await alone.goto(`file://${file}`);
  await alone.getByRole("heading", { name: "Spot" }).waitFor();
  await expect(spot(alone)).toContainText("decoder · layer 1 · head 3");
  expect(await pixels(alone)).toEqual(before);
  expect(await alone.getByRole("toolbar", { name: "Target pieces" }).getByRole("button").allTextContents()).toEqual(words);
  await expect(source(alone)).toHaveValue(`${NUMBER} <b>&</b>`);

  // What needs a model is there, and says so.
  await expect(alone.getByRole("button", { name: "Mute", exact: true })).toBeDisabled();
  await expect(alone.getByText("needed")).not.toHaveCount(0);
  await alone.keyboard.press(".");
  await expect(spot(alone)).toContainText("head 0");

  // It can be exported again, and that file again shows the same.
  await alone.keyboard.press("e");
  const again = await taken(alone, "HTML");
  const second = info.outputPath("again.html");
  await again.saveAs(second);
  await alone.goto(`file://${second}`);
  await alone.getByRole("heading", { name: "Spot" }).waitFor();
  await expect(spot(alone)).toContainText("decoder · layer 1 · head 0");
  await alone.keyboard.press(",");
  await expect(spot(alone)).toContainText("head 3");
  expect(await pixels(alone)).toEqual(before);
  // Not even if it tries: the policy in the file forbids it.
  expect(await alone.evaluate(() => fetch("http://127.0.0.1:1/").then(() => "sent", () => "refused"))).toBe("refused");
  expect(wrong.filter((text) => !/127\.0\.0\.1:1|Content Security Policy/.test(text))).toEqual([]);
  expect(wrong.some((text) => /Content Security Policy/.test(text))).toBe(true);
  await context.close();
});

test("pictures, tables and numbers are saved as what they are", async ({ page, context }) => {
  await atDesk(page, NUMBER, "&k=dec&l=0&h=1&off=c1.0");
  await page.keyboard.press("e");
  const png = await taken(page, "PNG 2× of Spot");
  const svg = await taken(page, "SVG of Spot");
  const [width, height] = /width="(\d+)" height="(\d+)"/.exec(await textOf(svg))!.slice(1).map(Number) as [number, number];
  const { readFile } = await import("node:fs/promises");
  const bytes = await readFile(await png.path());
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([2 * width, 2 * height]);
  const rows = (await textOf(await taken(page, "CSV"))).trimEnd().split("\r\n").map((line) => line.split(","));
  expect(rows[0]!.slice(0, 3)).toEqual(["", "<s>", "▁sieben"]);
  expect(rows[1]!.slice(1)).toEqual(["1", ...rows[0]!.slice(2).map(() => "")]);
  const trace = JSON.parse(await textOf(await taken(page, "JSON"))) as { target: { text: string }; attn: { dec: { causal: boolean } } };
  expect(trace.attn.dec.causal).toBe(true);
  expect((await readFile(await (await taken(page, "NPZ")).path())).subarray(0, 2).toString()).toBe("PK");
  await expect(page.getByRole("dialog").getByRole("listitem").filter({ hasText: "Verdict" })).toBeVisible();

  await page.getByRole("button", { name: "Copy the link" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await context.newPage();
  await other.goto(link);
  await settled(other);
  await expect(spot(other)).toContainText("decoder · layer 0 · head 1");
  await expect(verdict(other)).toContainText("muted: cross 1·0");
  await expect(other.getByRole("region", { name: "Stage" })).toContainText(trace.target.text);
});

test("the address brings back all that was chosen, and the way back is undo", async ({ page }) => {
  await atDesk(page, NUMBER, "&k=enc&l=1&h=2&off=c0.*:0.4,e1.1&solo=c1.3&sc=sqrt&pa=greys&p=positions&so=entropy&q=1&hide=1");
  const canvas = await pixels(page);
  await expect(spot(page)).toContainText("encoder · layer 1 · head 2");
  await expect(verdict(page)).toContainText("muted: enc 1·1");
  await expect(verdict(page)).toContainText("cross layer 0 at 40 %");
  await expect(verdict(page)).toContainText("solo: cross 1·3");
  await expect(page.getByRole("tab", { name: "Positions" })).toHaveAttribute("aria-selected", "true");
  await page.reload();
  await settled(page);
  expect(await pixels(page)).toEqual(canvas);
  await page.keyboard.press("m");
  await expect(verdict(page)).toContainText("enc 1·2");
  await page.goBack();
  await expect(verdict(page)).not.toContainText("enc 1·2");
  await page.goForward();
  await expect(verdict(page)).toContainText("enc 1·2");
});

test("a dimmer that was dragged over a head is undone in one step", async ({ page }) => {
  await atDesk(page, NUMBER);
  const head = page.getByRole("button", { name: /^cross 0·1/ });
  await head.hover(); // brings it into the window too
  const { x, y, width, height } = (await head.boundingBox())!;
  await page.mouse.down();
  for (const by of [10, 20, 40]) {
    await page.mouse.move(x + width / 2 - by, y + height / 2);
    await page.waitForTimeout(200); // longer than a held dimmer waits to be asked for
  }
  await page.mouse.up();
  await expect(verdict(page)).toContainText("dimmed: cross 0·1 at 50 %");
  await expect(spot(page)).toContainText("cross · layer 0 · head 1");
  await settled(page);
  await page.keyboard.press("z");
  await expect(verdict(page)).toBeHidden();
  expect(page.url()).not.toContain("off=");
});

test("the verdict covers nothing at the end of the page, and nothing that the focus goes to", async ({ page }) => {
  await atDesk(page, NUMBER, "&off=c1.1&p=positions");
  await expect(verdict(page)).toBeVisible();
  await expect(async () => { // the page grows while the panel gets its numbers
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
    const [end, bar] = [await page.locator("#below").boundingBox(), await verdict(page).boundingBox()];
    expect(end!.y + end!.height).toBeLessThanOrEqual(bar!.y);
  }).toPass();
  await page.evaluate(() => window.scrollTo(0, 0));
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const hidden = await page.evaluate(() => {
      const [at, bar] = [document.activeElement!, document.querySelector("section[aria-labelledby=verdict-title]")!];
      if (bar.contains(at) || at === document.body) return null;
      const [own, cover] = [at.getBoundingClientRect(), bar.getBoundingClientRect()];
      return own.top >= cover.top && own.height > 0 ? at.outerHTML.slice(0, 80) : null;
    });
    expect(hidden).toBeNull();
  }
});

test("a text too long for a link is sent as a file instead", async ({ page }) => {
  await atDesk(page, "seven");
  await source(page).fill(Array.from({ length: 220 }, () => "fünf").join(" ")); // 220 pieces, and 2200 characters of an address
  await source(page).press("Enter");
  await expect(page).toHaveURL(/[?&]t=/);
  await settled(page);
  await source(page).blur();
  await page.keyboard.press("e");
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByText("too long for a link")).toBeVisible();
  await expect(dialog.getByRole("button", { name: "Copy the link" })).toHaveCount(0);
  await expect(dialog.getByRole("button", { name: "HTML" })).toBeVisible();
});

test("a tour ticks what was done on the desk, and says what there was to see", async ({ page }) => {
  await atDesk(page, NUMBER);
  await page.getByRole("button", { name: "Is attention an explanation?" }).click();
  const drawer = page.getByRole("complementary", { name: "Is attention an explanation?" });
  await expect(drawer.getByRole("listitem").first()).toContainText("Go to the cross head with the sharpest light");
  const [, layer, head] = /cross (\d)·(\d)/.exec((await drawer.getByRole("listitem").first().textContent())!)!;
  await page.goto(`#/x?m=en-de&s=${encodeURIComponent(NUMBER)}&k=cross&l=${layer}&h=${head}`);
  await expect(drawer.locator("li.done")).toHaveCount(1);
  await page.keyboard.press("m");
  await expect(drawer.locator("li.done")).not.toHaveCount(1);
  await expect(drawer.locator("li.done em").first()).toContainText("The log-probability of the first one changes by");
  await page.getByRole("button", { name: "Reset desk" }).click();
  await page.goto(`#/x?m=en-de&s=${encodeURIComponent(NUMBER)}&off=c*.*`);
  await page.keyboard.press("Escape");
  await expect(drawer).toBeHidden();
  await page.getByRole("button", { name: "Learn" }).click();
  await expect(page.getByRole("complementary")).toBeVisible();
});

test("the key y asks why, brings the answer into view, and a forgotten trace is made again", async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 420 });
  let forgotten = 1;
  await page.route("**/api/v1/why", async (route) => {
    if (forgotten-- > 0) await route.fulfill({ status: 404, json: { error: { code: "not_found", message: "there is no such trace" } } });
    else await route.continue();
  });
  await atDesk(page, NUMBER);
  await page.evaluate(() => scrollTo(0, 0));
  await page.keyboard.press("y");
  const answer = page.locator("#why");
  await expect(answer.getByRole("status")).toContainText("followed the source by");
  await expect(answer.locator(".shaded").first()).toBeInViewport();
  expect(forgotten).toBeLessThan(0);
});

test("words left out of a translation are named with the answer", async ({ page }) => {
  await atDesk(page, "four nine six", "&y=vier%20neun");
  await page.keyboard.press("y");
  await expect(page.locator("#why")).toContainText("Left out: “six”.");
});
