// From the key y to the answer on the desk of a running server, in milliseconds, one number for each piece asked about:
// node measure/why_speed.mjs http://127.0.0.1:5867/ MODEL "a source" "a translation" 23 22 21
import { chromium } from "@playwright/test";

const [address, model, source, target, ...pieces] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const desk = new URLSearchParams({ m: model, s: source, y: target });
const times = [];
for (const piece of pieces) {
  await page.goto(`${address}#/x?${desk}&q=${piece}`);
  await page.getByRole("heading", { name: "Spot" }).waitFor();
  await page.waitForFunction(() => !document.querySelector("form.busy") && document.querySelector("#why") && !document.querySelector("#why [role=status]")?.textContent.trim());
  await page.evaluate(() => {
    let began = 0;
    addEventListener("keydown", () => (began = performance.now()), { once: true, capture: true });
    globalThis.told = new Promise((resolve) => {
      const look = () => (/followed/.test(document.querySelector("#why [role=status]")?.textContent ?? "") ? resolve(performance.now() - began) : requestAnimationFrame(look));
      look();
    });
  });
  await page.keyboard.press("y");
  times.push(await page.evaluate(() => globalThis.told));
}
await browser.close();
console.log(JSON.stringify(times));
