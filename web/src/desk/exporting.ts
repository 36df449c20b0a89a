/** What can be taken away from the desk: names of files, what a picture says of itself, tables, links, and the page as one file. */

import { LONGEST_LINK } from "../lib/link";
import type { Label } from "./heat";
import { headName, type Matrix, type Trace } from "./trace";

const LONGEST_NAME = 40; // characters of the text in a file's name

/** fileName(trace, "cross.1.2", "svg") -> "limelight-twenty-one-cross.1.2.svg". Only characters that every system takes. */
export function fileName(trace: Trace, what: string, suffix: string): string {
  const text = trace.source.text
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .slice(0, LONGEST_NAME)
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
  return `${["limelight", text, what].filter(Boolean).join("-")}.${suffix}`;
}

/** What a picture shows, and of which model: the line under it. */
export function citation(trace: Trace, what: string): string {
  const { model, source, target, baseline } = trace;
  const step = model.step === null ? "" : `, step ${model.step.toLocaleString("en")}`;
  const dimmed = (trace.stats?.heads ?? []).filter((head) => head.gate < 1).length;
  const changed = baseline ? ` Changed inside: ${changes(trace, dimmed)}.` : "";
  return `Limelight, model ${model.id}${step}, ${model.src_lang} to ${model.tgt_lang}. “${source.text}” → “${target.text}”. ${what}.${changed}`;
}

function changes(trace: Trace, dimmed: number): string {
  const hidden = trace.source.masked?.length ?? 0;
  const parts = [
    dimmed ? `${dimmed} ${dimmed === 1 ? "head" : "heads"} dimmed` : "",
    hidden ? `${hidden} source ${hidden === 1 ? "piece" : "pieces"} hidden` : "",
  ].filter(Boolean);
  return parts.join(", ") || "see the link";
}

/** headSentence("cross.1.2") -> "cross 1·2: layer 1, head 2, counted from 0" */
export function headSentence(id: string): string {
  const [, layer, head] = id.split(".");
  return `${headName(id)}: layer ${layer}, head ${head}, counted from 0`;
}

/** A matrix as a table that spreadsheets read (RFC 4180). What is masked is empty: it is no number. */
export function csv(
  matrix: Matrix,
  rows: readonly Label[],
  columns: readonly Label[],
  masked?: (row: number, column: number) => boolean,
): string {
  const lines = [["", ...columns.map((label) => field(label.text))].join(",")];
  for (let row = 0; row < matrix.rows; row++) {
    const values = columns.map((_, column) => {
      const value = matrix.at(row, column);
      return masked?.(row, column) || !Number.isFinite(value) ? "" : String(Number(value.toPrecision(6)));
    });
    lines.push([field(rows[row]?.text ?? String(row)), ...values].join(","));
  }
  return lines.map((line) => `${line}\r\n`).join("");
}

function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The address of the page with everything that is chosen; null when it would be too long to be passed on, or leads nowhere. */
export function shareLink(page: string, hash: string): string | null {
  if (!/^https?:/.test(page)) return null;
  const link = page.split("#")[0] + hash;
  return link.length > LONGEST_LINK ? null : link;
}

/** JSON that may stand in a script element: nothing in it can end the element, or a line of script. */
export function inScript(value: unknown): string {
  return JSON.stringify(value).replace(/[<\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What an element needs to be written down. The DOM's own are such; tests make theirs. */
export interface Written {
  tagName: string;
  attributes: Iterable<{ name: string; value: string }>;
  textContent: string | null;
}

const EMPTY = new Set(["meta", "link"]);

/**
 * The page as a file, from what was in it before anything was shown: `head` and the scripts of `body`, and the trace with its view in the
 * element "trace". An exported file can so be exported again, although it can read nothing, not even itself.
 */
export function standalone(head: Iterable<Written>, body: Iterable<Written>, shown: object): string {
  const all = [...body].map((each) => element(each, idOf(each) === "trace" ? inScript(shown) : (each.textContent ?? "")));
  const top = [...head].map((each) => element(each, each.textContent ?? ""));
  return `<!doctype html>\n<html lang="en">\n<head>\n${top.join("\n")}\n</head>\n<body>\n${all.join("\n")}\n</body>\n</html>\n`;
}

function idOf(each: Written): string | null {
  for (const { name, value } of each.attributes) if (name === "id") return value;
  return null;
}

/** Style and script hold text as it is; a title holds it escaped. */
function element(each: Written, inner: string): string {
  const name = each.tagName.toLowerCase();
  const given = [...each.attributes].map(({ name: key, value }) => ` ${key}="${value.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"`).join("");
  if (EMPTY.has(name)) return `<${name}${given}>`;
  const text = name === "script" || name === "style" ? inner : inner.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<${name}${given}>${text}</${name}>`;
}
