import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { begins, type Config, type SearchSettings } from "../src/local/config";
import { at, wordsOf } from "../src/local/confidence";
import { digestSlowly } from "../src/local/files";
import { findLooping, judge } from "../src/local/guards";
import { normalize, type Step } from "../src/local/normalize";
import { Pieces } from "../src/local/pieces";
import { faultOf, protect, restore } from "../src/local/protect";
import { search, type Steppable } from "../src/local/search";
import { cut } from "../src/local/sentences";

interface Case {
  table: number[][];
  settings: SearchSettings;
  begin: number[];
  found: { ids: number[]; score: number; finish: string }[];
}
const cases = JSON.parse(readFileSync("tests/local/cases.json", "utf8")) as {
  searches: Case[];
  normalization: Step[];
  pieces: { by_words: boolean; texts: string[]; ids: number[][]; again: string[] };
};

/** The next piece depends on the last one alone. */
function tableOf(rows: number[][]): Steppable {
  const size = rows.length;
  return {
    step: (tokens) => {
      const logProbs = new Float32Array(tokens.length * size);
      tokens.forEach((token, row) => logProbs.set(rows[token]!, row * size));
      return Promise.resolve({ logProbs, vocabulary: size, looks: [] });
    },
    reorder: () => {},
  };
}

describe("the search finds what limelight.decoding finds", () => {
  test.each(cases.searches.map((each, number) => [number, each] as const))("table %i", async (_, { table, settings, begin, found }) => {
    const rules = { start: 2, end: 3, never: [0, 1, 2], longest: 255 };
    const made = await search(tableOf(table), { pieces: 3, begin, allowed: [] }, settings, rules);
    expect(made.map(({ ids, finish }) => ({ ids, finish }))).toEqual(found.map(({ ids, finish }) => ({ ids, finish })));
    made.forEach(({ score }, number) => expect(score).toBeCloseTo(found[number]!.score, 4));
  });

  test("a search that nobody waits for ends", async () => {
    const { table, settings } = cases.searches[2]!;
    const rules = { start: 2, end: 3, never: [], longest: 255 };
    await expect(search(tableOf(table), { pieces: 3, begin: [], allowed: [] }, settings, rules, () => true)).rejects.toThrow("nobody waits");
  });

  test("scores that are no numbers are told", async () => {
    const rules = { start: 2, end: 3, never: [], longest: 255 };
    const broken = tableOf(cases.searches[2]!.table.map((row) => row.map(() => NaN)));
    await expect(search(broken, { pieces: 3, begin: [], allowed: [] }, cases.searches[2]!.settings, rules)).rejects.toThrow("no numbers");
  });
});

describe("pieces", () => {
  const model = new Uint8Array(readFileSync("../tests/bundles/format-1/pieces.model"));
  const pieces = Pieces.read(model);

  test("ids and texts are Python's", () => {
    const { texts, ids, again, by_words } = cases.pieces;
    const made = texts.map((text) => pieces.encode(normalize(text, cases.normalization), by_words));
    expect(made).toEqual(ids);
    expect(made.map((row) => pieces.decode(row))).toEqual(again);
  });

  test("a word of 50,000 letters takes less than a second", () => {
    const began = performance.now();
    expect(pieces.encode("seventyseven".repeat(4200)).length).toBeGreaterThan(1000);
    expect(performance.now() - began).toBeLessThan(1000);
  });

  test("half a file and half a character are refused", () => {
    expect(() => Pieces.read(model.subarray(0, 200))).toThrow("too early");
    expect(() => Pieces.read(new Uint8Array(0))).toThrow("no SentencePiece model");
    expect(() => pieces.encode("a\ud800")).toThrow("half a character");
  });
});

test("the checksum without crypto.subtle is SHA-256", () => {
  for (const size of [0, 1, 55, 56, 63, 64, 65, 1000]) {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31) & 255);
    expect(Buffer.from(digestSlowly(bytes)).toString("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
  }
});

test("what must survive becomes marks and comes back; what is lost is told", () => {
  const kept = protect("Open <b>%s</b> at https://a.org/x, {name}", 16);
  expect(kept.text).toBe("Open ⟦0⟧⟦1⟧⟦2⟧ at ⟦3⟧, ⟦4⟧");
  expect(restore(kept, "⟦3⟧ ⟦0⟧⟦1⟧⟦2⟧ ⟦4⟧")).toBe("https://a.org/x <b>%s</b> {name}");
  expect(faultOf(kept, "⟦3⟧ ⟦0⟧⟦1⟧⟦2⟧ ⟦4⟧")).toBeNull();
  expect(faultOf(kept, "⟦3⟧ ⟦0⟧⟦2⟧ ⟦4⟧")).toContain("1 are missing");
  expect(faultOf(protect("%s of %d", 16), "⟦1⟧ von ⟦0⟧")).toContain("another order");
  expect(protect("%#@files@ of $t(menu.all), %arg", 16).spans).toEqual(["%#@files@", "$t(menu.all)", "%arg"]);
  expect(protect("5 % of it, 100 % sure", 16).spans).toEqual([]);
  expect(protect("a %s", 0)).toEqual({ text: "a %s", spans: ["%s"], marked: false });
  expect(faultOf(protect("a %s", 0), "ein")).toContain("missing");
});

test("guards see loops, copies and odd lengths", () => {
  expect(findLooping("Yes.", "Ja ja ja ja ja ja ja.")).toBe("4 words occur 3 times, in the source once");
  expect(findLooping("so", "a" + "ha".repeat(12))).toContain("characters in a row");
  expect(judge("the cat sat on it", "The cat sat on it.", "en", "de").map(({ code }) => code)).toEqual(["copied"]);
  expect(judge("One two.", "", "en", "de")[0]!.code).toBe("empty");
  expect(judge("OK", "In Ordnung", "en", "de")).toEqual([]);
});

test("cut texts are the text again, in parts that fit", () => {
  const text = "  One two. Three four, five six seven eight nine ten eleven.\n\n\tTwelve";
  const { lead, parts } = cut(text, "en", (part) => part.length <= 20);
  expect(lead + parts.map((part) => part.text + part.after).join("")).toBe(text);
  expect(Math.max(...parts.map((part) => part.text.length))).toBeLessThanOrEqual(20);
  expect(cut("a. b.", "en", () => true).parts).toEqual([{ text: "a. b.", after: "" }]);
});

test("confidence of words", () => {
  const config = { confidence: null } as Config;
  const [word] = wordsOf([["▁Kat", 0.5], ["ze", 0.8], [".", 0.9]], 1, config); // prettier-ignore
  expect(word!.text).toBe("Katze.");
  expect(word!.confidence).toBeCloseTo(0.4 ** (2 / 3), 6);
  const curve = { knots: [[0.2, 0.1], [0.6, 0.5], [0.9, 0.8]] as [number, number][] }; // prettier-ignore
  expect([0, 0.75, 1].map((claimed) => at(curve, claimed))).toEqual([0.1, expect.closeTo(0.65, 6), 0.8]);
});

test("tags stand before a source in their order", () => {
  const tags = { source: {}, target: { de: 4, fr: 5 }, target_begin: { de: 7, fr: 8 }, names: { formal: 9, ui: 10 } };
  const config = { tags, source_begin: [], target_begin: [] } as unknown as Config;
  expect(begins(config, "en", "fr", ["ui", "formal"])).toEqual({ before: [5, 9, 10], begin: [8] });
  expect(() => begins(config, "en", "it", [])).toThrow("not taught it");
});
