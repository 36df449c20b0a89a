/** What must never be in the sources of the page: see what-is-typed become markup, or anything from another host. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "vitest";

const FORBIDDEN: [RegExp, string][] = [
  [/\{@html/, "@html parses text as markup"],
  [/\b(inner|outer)HTML\b|insertAdjacentHTML|document\.write|DOMParser/, "parses text as markup"],
  [/\beval\s*\(|new Function\b/, "runs text as code"],
  [/\sstyle=/, "an inline style, which the policy of the page forbids"],
  [/\s(in|out|transition|animate):[a-z]|svelte\/(transition|animate)/, "a transition of Svelte writes style elements"],
  [/(https?:)?\/\/(?!www\.w3\.org\/)[a-z0-9-]+\.[a-z]{2,}/i, "another host"],
];

function offences(text: string): string[] {
  const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, ""); // comments may name what they like
  return FORBIDDEN.filter(([pattern]) => pattern.test(code)).map(([, why]) => why);
}

const files = readdirSync("src", { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name));

test.each([...files, "index.html"])("%s keeps to the policy of the page", (file) => {
  expect(offences(readFileSync(file, "utf8"))).toEqual([]);
});

test.each([
  "<p>{@html text}</p>",
  "element.innerHTML = text",
  '<p style="color: red">',
  "<p transition:fade>",
  '<script src="https://cdn.example.com/x.js">',
  "@import url(//fonts.example.com/a)",
  "eval (text)",
])("%s is caught", (planted) => {
  expect(offences(planted)).not.toEqual([]);
});
