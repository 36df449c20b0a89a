/** Names and directions of languages, and which of them a server can translate between. */

export const AUTO = "auto";

// Languages that are written from right to left where no script is named, and scripts that are.
const RIGHT_TO_LEFT = new Set(
  "ar arb arz ary aeb acm acq ajp apc ars ckb dv fa glk he khw ks lrc mzn nqo pes pnb ps sd syr ug ur yi".split(" "),
);
const RIGHT_TO_LEFT_SCRIPTS = new Set(["arab", "hebr", "thaa", "syrc", "nkoo", "adlm", "rohg"]);

/** base("pt-BR") -> "pt" */
export function base(code: string): string {
  return code.replace("_", "-").split("-")[0]!.toLowerCase();
}

/** directionOf("ar") -> "rtl"; directionOf("az-Arab") -> "rtl"; any other -> "auto": the first strong letter decides. */
export function directionOf(code: string): "rtl" | "auto" {
  const script = code
    .replaceAll("_", "-")
    .split("-")
    .slice(1)
    .find((part) => part.length === 4);
  if (script) return RIGHT_TO_LEFT_SCRIPTS.has(script.toLowerCase()) ? "rtl" : "auto";
  return RIGHT_TO_LEFT.has(base(code)) ? "rtl" : "auto";
}

let inEnglish: Intl.DisplayNames | undefined; // made once: a menu may have hundreds

/** nameOf("de") -> "German"; a code that the browser does not know stays as it is. */
export function nameOf(code: string, named: Readonly<Record<string, string>> = {}): string {
  if (named[code]) return named[code];
  try {
    inEnglish ??= new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
    return inEnglish.of(code.replaceAll("_", "-")) ?? code;
  } catch {
    return code; // RangeError: not shaped as a code
  }
}

/** Menus list languages by name, so that whoever types its first letters comes to it: byName(["de", "cs"]) -> ["cs", "de"]. */
export function byName(codes: readonly string[], named: Readonly<Record<string, string>> = {}): string[] {
  const names = new Map(codes.map((code) => [code, nameOf(code, named)]));
  return [...codes].sort((one, other) => names.get(one)!.localeCompare(names.get(other)!, "en"));
}

/** All that models call their languages. The 40,000 directions of a model of 200 share one table, which is read once. */
export function namesOf(models: readonly { names: Record<string, string> }[]): Record<string, string> {
  return Object.assign({}, ...new Set(models.map(({ names }) => names))) as Record<string, string>;
}

/** For the attribute `lang`: "" means that nobody knows. */
export function tagOf(code: string): string {
  return code === AUTO ? "" : code.replaceAll("_", "-");
}

export interface Way {
  id: string;
  source: string;
  target: string;
}

export function sourcesOf(ways: readonly Way[]): string[] {
  return unique(ways.map((way) => way.source));
}

/** The languages into which `source` can be translated; with AUTO those that any can. */
export function targetsOf(ways: readonly Way[], source: string): string[] {
  return unique(ways.filter((way) => source === AUTO || way.source === source).map((way) => way.target));
}

/** All models for a pair; several, and a person may choose. */
export function waysOf<T extends Way>(ways: readonly T[], source: string, target: string): T[] {
  return ways.filter((way) => (source === AUTO || way.source === source) && way.target === target);
}

/** The pair after `source` was chosen: the target stays if it can. Nothing can be chosen when there is no model at all. */
export function fitting(ways: readonly Way[], source: string, target: string): { source: string; target: string } | null {
  const from = source === AUTO || ways.some((way) => way.source === source) ? source : match(source, sourcesOf(ways));
  const first = from ?? ways[0]?.source;
  if (first === undefined) return null;
  const targets = targetsOf(ways, first);
  return { source: first, target: match(target, targets) ?? targets[0]! };
}

/** The code itself, or one of the same language: match("en-GB", ["de", "en"]) -> "en". */
export function match(code: string, codes: readonly string[]): string | undefined {
  return codes.find((each) => each === code) ?? codes.find((each) => base(each) === base(code));
}

function unique(codes: readonly string[]): string[] {
  return [...new Set(codes)];
}
