/** JSON as lines for people, cut into tokens that a page can colour without parsing HTML. */

export type Kind = "key" | "string" | "number" | "word" | "mark";

export interface Token {
  text: string;
  kind: Kind;
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([^"\d\-tfn]+|.)/gs;

/** Two spaces a level; short lists and objects without anything nested stand on one line: [0, 1], {"text": "Ein", "confidence": 0.93}. */
export function pretty(value: unknown, width = 76, indent = ""): string {
  const flat = oneLine(value);
  if (value === null || typeof value !== "object" || indent.length + flat.length <= width) return flat;
  const deeper = `${indent}  `;
  const inner = Array.isArray(value)
    ? value.map((each) => deeper + pretty(each, width, deeper))
    : Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([key, each]) => `${deeper}${JSON.stringify(key)}: ${pretty(each, width, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${inner.join(",\n")}\n${indent}${close}`;
}

/** The tokens of JSON text; joined they are the text. */
export function tokensOf(json: string): Token[] {
  const tokens: Token[] = [];
  for (const match of json.matchAll(TOKEN)) {
    const [all, string, colon, number, word] = match;
    if (string !== undefined && colon !== undefined) tokens.push({ text: string, kind: "key" }, { text: colon, kind: "mark" });
    else if (string !== undefined) tokens.push({ text: string, kind: "string" });
    else tokens.push({ text: all, kind: number !== undefined ? "number" : word !== undefined ? "word" : "mark" });
  }
  return tokens;
}

function oneLine(value: unknown): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  const inner = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .map(([key, each]) => `${JSON.stringify(key)}: ${oneLine(each)}`);
  return inner.length ? `{${inner.join(", ")}}` : "{}";
}
