/**
 * Pictures as SVG text, for papers and slides: vectors, text that stays text, a title for those who do not see them, and a line that says
 * what they show. They are always drawn on white, whatever the theme of the page.
 */

import { wellFormed } from "../lib/counting";

export const INK = "#1c1f17";
export const FAINT = "#575b4c";
export const LINE = "#dcdacd";
export const ACCENT = "#4b6100";
export const WARM = "#b3440a"; // the second colour where two must differ
const FACE = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif";
const MARGIN = 16;

export type Attributes = Record<string, string | number | undefined>;

export interface Picture {
  title: string;
  description: string;
  citation: string;
  width: number;
  height: number;
  body: string; // elements, drawn from (0, 0)
}

/** escaped('a<b & "c"') -> 'a&lt;b &amp; &quot;c&quot;'. What XML cannot hold (control characters, halves of pairs) becomes U+FFFD. */
export function escaped(text: string): string {
  return wellFormed(text)
    .replace(/[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** element("rect", {x: 1.23456}) -> '<rect x="1.23"/>'; an attribute that is undefined is left out. `inner` is markup. */
export function element(name: string, attributes: Attributes, inner = ""): string {
  const given = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${escaped(typeof value === "number" ? number(value) : value!)}"`)
    .join("");
  return inner ? `<${name}${given}>${inner}</${name}>` : `<${name}${given}/>`;
}

/** Text at its baseline. Spaces in it are kept: pieces may be nothing else. */
export function words(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return element("text", { x, y, "xml:space": "preserve", ...attributes }, escaped(text) || " ");
}

export function group(attributes: Attributes, ...inner: string[]): string {
  return element("g", attributes, inner.join(""));
}

/** A mark over a cell that may not be looked at: hatched, for a colour would be read as a number. The pattern is in every picture. */
export function hatched(x: number, y: number, width: number, height: number): string {
  return element("rect", { x, y, width, height, fill: "url(#masked)" });
}

/** How broad a text is about, in px: nothing measures it where there is no page. Wide characters count twice. */
export function breadth(text: string, size: number): number {
  let units = 0;
  for (const character of text) units += /[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60\u{1f000}-\u{3ffff}]/u.test(character) ? 1 : 0.58;
  return units * size;
}

/** The whole file. */
export function picture({ title, description, citation, width, height, body }: Picture): string {
  const lines = wrapped(citation, 11, Math.max(width, 240));
  const across = Math.ceil(Math.max(width, 1.1 * breadth(title, 14), ...lines.map((line) => breadth(line, 11))) + 2 * MARGIN);
  const down = Math.ceil(height + 2 * MARGIN + 34 + 15 * lines.length);
  const stripes = element("path", { d: "M0 6 6 0M-1.500 1.500 1.500-1.500M4.500 7.500 7.500 4.500", stroke: FAINT, "stroke-width": 1 });
  const pattern = element("pattern", { id: "masked", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, element("rect", { width: 6, height: 6, fill: "#ffffff" }) + stripes);
  const inner = [
    element("title", { id: "title" }, escaped(title)),
    element("desc", { id: "desc" }, escaped(description)),
    element("defs", {}, pattern),
    element("rect", { width: across, height: down, fill: "#ffffff" }),
    words(MARGIN, MARGIN + 14, title, { "font-size": 14, "font-weight": 600 }),
    group({ transform: `translate(${MARGIN} ${MARGIN + 26})` }, body),
    ...lines.map((line, at) => words(MARGIN, MARGIN + 26 + height + 20 + 15 * at, line, { "font-size": 11, fill: FAINT })),
  ];
  const opening = {
    xmlns: "http://www.w3.org/2000/svg",
    width: across,
    height: down,
    viewBox: `0 0 ${across} ${down}`,
    role: "img",
    "aria-labelledby": "title desc",
    "font-family": FACE,
    "font-size": 13,
    fill: INK,
  };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element("svg", opening, inner.join("\n"))}\n`;
}

/** Lines of at most `width` px, cut between words; a word that is longer has a line of its own. */
export function wrapped(text: string, size: number, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line && breadth(`${line} ${word}`, size) > width) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return line ? [...lines, line] : lines;
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}
