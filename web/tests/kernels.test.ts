import { execFileSync } from "node:child_process";

import { describe, expect, test } from "vitest";

import { LEVELS, levelOf, order, percent } from "../src/lib/confidence";
import { charactersOf, wellFormed } from "../src/lib/counting";
import { curlOf, quoted } from "../src/lib/curl";
import { detected } from "../src/lib/detection";
import { bothSides, changes, differences } from "../src/lib/differences";
import { pretty, tokensOf } from "../src/lib/json";
import { actionOf } from "../src/lib/keys";
import { AUTO, byName, directionOf, fitting, match, nameOf, namesOf, sourcesOf, targetsOf, waysOf } from "../src/lib/languages";
import { linkTo, routeOf, wantedBy } from "../src/lib/link";
import { isolated, readout } from "../src/lib/readout";
import { themeOf, toRemember } from "../src/lib/theme";
import { RETRIES, advice, troubleOf, unreachable, waitFor } from "../src/lib/trouble";
import { here, refusalOf, sizeOf } from "../src/lib/uploads";
import { plain } from "../src/lib/warnings";
import { Links } from "../src/lib/words";

describe("confidence", () => {
  test("steps meet without a gap, and nothing is known of nothing", () => {
    expect([1, 0.8, 0.79, 0.6, 0.59, 0.4, 0.39, 0].map(levelOf)).toEqual(
      ["sure", "sure", "likely", "likely", "unsure", "unsure", "doubtful", "doubtful"],
    );
    expect([null, undefined, Number.NaN].map(levelOf)).toEqual([null, null, null]);
    expect(LEVELS.at(-1)!.from).toBe(0);
  });

  test("what is not certain is never called certain", () => {
    expect([1, 0.999, 0.846, 0.004, 0].map(percent)).toEqual(["100 %", "99 %", "85 %", "1 %", "0 %"]);
  });
});

test("an order that is not that of the percentages is explained", () => {
  expect(order([{ confidence: 0.9 }, { confidence: 0.2 }])).toBe("");
  expect(order([{ confidence: 0.04 }, { confidence: 0.05 }])).toContain("by the probability of the whole");
  expect(order([{}, {}])).toBe("");
});

describe("differences", () => {
  test("the same words are kept on both sides", () => {
    const [before, after] = bothSides("drei sieben eins", "eins drei");
    const kept = (told: { text: string; changed: boolean }[]) => told.filter(({ changed, text }) => !changed && text.trim()).map(({ text }) => text.trim());
    expect(kept(before)).toEqual(kept(after));
    expect(kept(before)).toHaveLength(1);
    expect(before.map(({ text }) => text).join("")).toBe("drei sieben eins");
  });

  const marked = (best: string, other: string): string =>
    differences(best, other).map((part) => (part.changed ? `[${part.text}]` : part.text)).join("");

  test("only the words that differ are marked", () => {
    expect(marked("Leiter und reinigt ein Fenster.", "Leiter und putzt ein Fenster.")).toBe("Leiter und [putzt] ein Fenster.");
    expect(marked("a b c", "a c")).toBe("a c");
    expect(marked("a c", "a b c")).toBe("a [b] c");
    expect(marked("x y", "y x")).toMatch(/^\[y\] x$|^y \[x\]$/);
    expect(marked("", "a")).toBe("[a]");
    expect(marked("a", "")).toBe("");
  });

  test("the parts joined are the alternative, spaces and line breaks included", () => {
    const other = " Ein  Haus\nund ein Boot ";
    expect(differences("Ein Boot", other).map((part) => part.text).join("")).toBe(other);
  });

  test("very long texts are shown unmarked instead of slowly", () => {
    const long = Array.from({ length: 3000 }, (_, number) => `w${number}`).join(" ");
    expect(differences(long, `${long} more`)).toEqual([{ text: `${long} more`, changed: false }]);
  });
});

describe("languages", () => {
  const ways = [
    { id: "a", source: "en", target: "de" },
    { id: "b", source: "en", target: "fr" },
    { id: "c", source: "de", target: "en" },
    { id: "d", source: "en", target: "de" },
  ];

  test("right to left is known by language or script, else the text decides", () => {
    expect(["ar", "he", "fa-IR", "ur", "az-Arab", "uz_Arab"].map(directionOf)).toEqual(Array(6).fill("rtl"));
    expect(["en", "de", AUTO, "ar-Latn", "pt-BR"].map(directionOf)).toEqual(Array(5).fill("auto"));
  });

  test("a name is the server's, else the browser's, else the code", () => {
    expect(nameOf("de", { de: "Deutsch" })).toBe("Deutsch");
    expect(nameOf("de")).toBe("German");
    expect(nameOf("not a code")).toBe("not a code");
  });

  test("menus are by name, and what 40,000 directions call their languages is read once", () => {
    expect(byName(["de", "en", "cs", "yy"], { yy: "Ægean" })).toEqual(["yy", "cs", "en", "de"]);
    let reads = 0;
    const names = Object.defineProperty({}, "de", { enumerable: true, get: () => (reads++, "Deutsch") }) as Record<string, string>;
    const others = { names: { fr: "Französisch" } };
    expect(namesOf([...Array.from({ length: 40_000 }, () => ({ names })), others])).toEqual({ de: "Deutsch", fr: "Französisch" });
    expect(reads).toBe(1);
  });

  test("targets are those that there are models for", () => {
    expect(sourcesOf(ways)).toEqual(["en", "de"]);
    expect(targetsOf(ways, "en")).toEqual(["de", "fr"]);
    expect(targetsOf(ways, "de")).toEqual(["en"]);
    expect(targetsOf(ways, AUTO)).toEqual(["de", "fr", "en"]);
    expect(waysOf(ways, "en", "de").map((way) => way.id)).toEqual(["a", "d"]);
  });

  test("the target stays when it can, and is one that fits when it cannot", () => {
    expect(fitting(ways, "en", "fr")).toEqual({ source: "en", target: "fr" });
    expect(fitting(ways, "de", "fr")).toEqual({ source: "de", target: "en" });
    expect(fitting(ways, "en-GB", "de-AT")).toEqual({ source: "en", target: "de" });
    expect(fitting(ways, "xx", "")).toEqual({ source: "en", target: "de" });
    expect(fitting([], "en", "de")).toBeNull();
  });

  test("an exact code is preferred to another region", () => {
    expect(match("pt-BR", ["pt", "pt-BR"])).toBe("pt-BR");
    expect(match("ja", ["en"])).toBeUndefined();
  });
});

describe("detection", () => {
  const said = (...guesses: [string, number][]): string | undefined =>
    detected(guesses.map(([language, confidence]) => ({ language, confidence })), ["en", "de"])?.sentence;

  test("a sure guess is said with its share", () => {
    expect(said(["de", 92.4])).toBe("German, 92 % sure");
    expect(said(["de", 99.9])).toBe("German, 99 % sure");
    expect(detected([{ language: "de", confidence: 92 }], ["en", "de"])).toMatchObject({ source: "de", certain: true });
  });

  test("an unsure guess is said to be one", () => {
    expect(said(["de", 31])).toBe("Perhaps German, only 31 % sure");
    expect(detected([{ language: "de", confidence: 31 }], ["en"])).toMatchObject({ certain: false });
  });

  test("a language that cannot be translated is named, and what was done instead", () => {
    expect(said(["fr", 94], ["de", 3])).toBe("This looks like French (94 %). It is translated as if it were German.");
  });

  test("nothing is claimed of too little text", () => {
    expect(said(["en", 0])).toBe("Too little text to tell. Taken for English.");
    expect(said()).toBe("Too little text to tell. Taken for English.");
    expect(detected([], [])).toBeNull();
  });
});

describe("trouble", () => {
  test("both dialects are understood, and pages of proxies", () => {
    const ours = { error: { code: "busy", message: "full", hint: "wait" } };
    expect(troubleOf(503, "3", ours)).toEqual({ status: 503, code: "busy", message: "full", hint: "wait", retryAfter: 3 });
    expect(troubleOf(400, null, { error: "zz is not supported" })).toMatchObject({ message: "zz is not supported", code: "" });
    expect(troubleOf(502, null, null).message).toBe("The server answered with status 502.");
    expect(troubleOf(503, "soon", null).retryAfter).toBeNull();
  });

  test("what passes is tried again after the time that the server names, and not for ever", () => {
    expect(waitFor(troubleOf(503, "7", null), 0)).toBe(7);
    expect(waitFor(troubleOf(429, "0", null), 0)).toBe(1);
    expect(waitFor(troubleOf(503, "86400", null), 0)).toBe(60);
    expect([0, 1, 2, 5].map((tries) => waitFor(unreachable(), tries))).toEqual([1, 2, 4, 15]);
    expect(waitFor(unreachable(), RETRIES)).toBeNull();
    expect([400, 401, 403, 404, 413, 456, 500, 504].map((status) => waitFor(troubleOf(status, "1", null), 0))).toEqual(
      Array(8).fill(null),
    );
  });

  test("every advice says what to do", () => {
    for (const status of [0, 401, 403, 413, 429, 456, 500, 503, 504]) {
      const { title, todo } = advice({ ...unreachable(), status }, null);
      expect(title.length).toBeGreaterThan(10);
      expect(todo.length).toBeGreaterThan(10);
    }
    expect(advice(troubleOf(403, null, { error: { code: "wrong_key", message: "no such key" } }), null).title).toContain("asks for a key");
    expect(advice(troubleOf(403, null, { error: { code: "foreign_origin", message: "another site asks", hint: "name its host" } }), null)).toEqual({ title: "another site asks", todo: "name its host" });
    expect(advice(troubleOf(503, "1", null), 1).todo).toContain("by itself");
    expect(advice(troubleOf(501, null, { error: { message: "no torch", hint: "install it" } }), null)).toEqual({ title: "This server cannot do that", todo: "no torch; install it" });
    expect(advice(troubleOf(503, null, { error: { code: "stopping" } }), null).title).toContain("restarted");
    expect(advice(troubleOf(400, null, { error: { message: "no model", hint: "there is en to de" } }), null)).toEqual({
      title: "no model",
      todo: "there is en to de",
    });
  });
});

describe("links", () => {
  test("a link opens what it was made of", () => {
    const text = "50 % & more: “ja” + 1\n😀";
    const link = linkTo("http://127.0.0.1:5000/mt/?q=old#/x", "en", "de", text)!;
    expect(link.startsWith("http://127.0.0.1:5000/mt/?")).toBe(true);
    expect(wantedBy(new URL(link).search)).toEqual({ source: "en", target: "de", text, tags: [] });
    expect(wantedBy(new URL(linkTo("http://a/", "en", "de", text, ["formal", "ui"])!).search).tags).toEqual(["formal", "ui"]);
    expect(wantedBy("")).toEqual({ source: null, target: null, text: null, tags: [] });
  });

  test("there is no link to a text that would not survive in one", () => {
    expect(linkTo("http://a/", "en", "de", "x".repeat(1950))).not.toBeNull();
    expect(linkTo("http://a/", "en", "de", "x".repeat(2000))).toBeNull();
  });

  test("views stand in the hash with their values", () => {
    expect(routeOf("").view).toBe("");
    expect(routeOf("#somewhere").view).toBe("");
    const route = routeOf("#/x?m=en-de&l=5");
    expect([route.view, route.values.get("m"), route.values.get("l")]).toEqual(["x", "en-de", "5"]);
  });
});

describe("curl", () => {
  test("no text leaves its quotes: a shell gives it back as it was", () => {
    for (const text of ["it's", "$(date) `id` \\ \"x\" !!", "a\nb", "'; rm x; '"])
      expect(execFileSync("sh", ["-c", `printf %s ${quoted(text)}`]).toString()).toBe(text);
  });

  test("a key is named by a variable, never shown", () => {
    expect(curlOf("http://a/api/v1/translate", { text: "it's" }, true).split(" \\\n  ")).toEqual([
      "curl 'http://a/api/v1/translate'",
      "-H 'Content-Type: application/json'",
      '-H "Authorization: Bearer $LIMELIGHT_KEY"',
      `--data-raw '{"text":"it'\\''s"}'`,
    ]);
    expect(curlOf("http://a", {})).not.toContain("Authorization");
  });
});

describe("json", () => {
  const value = { text: 'a "b": 1\n', words: [[0, 0], [1, 2]], none: null, yes: true, n: -1.5e-7, empty: {}, list: [] as string[] };

  test("what is shown is the value, also in narrow columns", () => {
    for (const width of [0, 20, 76, 500]) expect(JSON.parse(pretty(value, width))).toEqual(value);
    expect(pretty([[0, 1], [2, 3]], 4)).toBe("[\n  [\n    0,\n    1\n  ],\n  [\n    2,\n    3\n  ]\n]");
    expect(pretty([[0, 1], [2, 3]], 10)).toBe("[\n  [0, 1],\n  [2, 3]\n]");
    expect(pretty({ a: undefined, b: 1 })).toBe('{"b": 1}');
  });

  test("tokens joined are the text, and keys are told from strings", () => {
    const shown = pretty(value, 20);
    expect(tokensOf(shown).map((token) => token.text).join("")).toBe(shown);
    const kinds = tokensOf('{"a": "b: c", "d": -1.5, "e": null}').filter((token) => token.kind !== "mark");
    expect(kinds.map((token) => [token.text, token.kind])).toEqual([
      ['"a"', "key"],
      ['"b: c"', "string"],
      ['"d"', "key"],
      ["-1.5", "number"],
      ['"e"', "key"],
      ["null", "word"],
    ]);
  });
});

describe("counting", () => {
  test("characters are code points, as Python counts them", () => {
    expect(["", "abc", "a😀b", "é", "👨‍👩‍👧", "\ud800x", "x\udc00"].map(charactersOf)).toEqual([0, 3, 3, 1, 5, 2, 2]);
  });

  test("what is no text becomes the replacement character, and what is text stays", () => {
    expect(wellFormed("a\ud800b\udc00c\0d")).toBe("a\ufffdb\ufffdc\ufffdd");
    expect(wellFormed("😀é\n")).toBe("😀é\n");
  });
});

describe("theme", () => {
  test("the system decides unless a person chose the other", () => {
    expect([themeOf(null, true), themeOf(null, false), themeOf("light", true), themeOf("pink", true)]).toEqual(
      ["dark", "light", "light", "dark"],
    );
  });

  test("only what differs from the system is remembered", () => {
    expect([toRemember("dark", true), toRemember("dark", false), toRemember("light", true)]).toEqual([null, "dark", "light"]);
  });
});

describe("uploads", () => {
  test("a file that cannot be translated is refused before it is sent", () => {
    const formats = [".txt", ".html"];
    expect(refusalOf("a.TXT", 5, formats, 100)).toBeNull();
    expect(refusalOf("a.pdf", 5, formats, 100)).toBe("This server translates .txt .html; it cannot read .pdf.");
    expect(refusalOf("README", 5, formats, 100)).toContain("files without an ending");
    expect(refusalOf("a.txt", 0, formats, 100)).toBe("The file is empty.");
    expect(refusalOf("a.txt", 9_000_000, formats, 8 << 20)).toBe("The file has 9.0 MB; at most 8.4 MB are taken.");
  });

  test("the translated file is fetched from where the page came from", () => {
    expect(here("http://10.0.0.3:5000/download_file/x.a.txt", "https://t.example/mt/")).toBe(
      "https://t.example/mt/download_file/x.a.txt",
    );
    expect(here("http://evil.example/other", "https://t.example/")).toBeNull();
    expect(here("http://h/download_file/../../x", "https://t.example/")).toBeNull();
  });

  test("sizes are short", () => {
    expect([12, 1500, 999_499, 2_500_000].map(sizeOf)).toEqual(["12 B", "2 kB", "999 kB", "2.5 MB"]);
  });
});

describe("keys", () => {
  const pressed = (key: string, tagName = "BODY", ctrlKey = false) => ({
    key,
    ctrlKey,
    metaKey: false,
    altKey: false,
    target: { tagName },
  });

  test("letters are letters where somebody writes", () => {
    expect(actionOf(pressed("s"), true)).toEqual({ do: "swap" });
    for (const field of ["TEXTAREA", "INPUT", "SELECT"]) expect(actionOf(pressed("s", field), true)).toBeNull();
    expect(actionOf({ ...pressed("s"), target: { isContentEditable: true } }, true)).toBeNull();
  });

  test("Ctrl+Enter translates everywhere, and other combinations stay the browser's", () => {
    expect(actionOf(pressed("Enter", "TEXTAREA", true), false)).toEqual({ do: "translate" });
    expect(actionOf(pressed("c", "BODY", true), true)).toBeNull();
    expect(actionOf({ ...pressed("s"), altKey: true }, true)).toBeNull();
  });

  test("single keys can be turned off", () => {
    expect(actionOf(pressed("?"), false)).toBeNull();
    expect(actionOf(pressed("2"), true)).toEqual({ do: "choose", number: 1 });
  });
});

describe("warnings", () => {
  test("known ones are said plainly, others as the server says them, and each once", () => {
    const loop = { code: "loop", message: "two words 12 times" };
    expect(plain([loop, { code: "new", message: "something else" }, loop])).toEqual([
      "The translation repeats itself and is probably wrong.",
      "Something else.",
    ]);
    expect(plain([{ code: "engine", message: "searched by torch" }])).toEqual([]);
  });
});

describe("readout", () => {
  const texts = { source: "A man cleaning, now", target: "Ein Mann reinigt." };
  const links = new Links([
    [0, 0],
    [2, 2],
    [3, 2],
  ]);
  const words = [
    { text: "Ein", confidence: 0.93 },
    { text: "Mann", confidence: null },
    { text: "reinigt.", confidence: 0.54 },
  ];

  test("a word of the translation says how sure it is and where it comes from", () => {
    expect(readout("target", 2, texts, links, words)).toEqual({
      word: "reinigt",
      says: `54 %, unsure; from “${isolated("cleaning")}” and “${isolated("now")}”`,
    });
    expect(readout("target", 1, texts, links, words).says).toBe("no word of the source in particular");
  });

  test("a word of the source says what it became", () => {
    expect(readout("source", 0, texts, links)).toEqual({ word: "A", says: `became “${isolated("Ein")}”` });
    expect(readout("source", 1, texts, links).says).toBe("has no word of its own in the translation");
  });
});

describe("changes", () => {
  const told = (theirs: string, ours: string) =>
    changes(theirs, ours).map(({ text, of }) => (of === "theirs" ? `[-${text}-]` : of === "ours" ? `[+${text}+]` : text)).join("");

  test("say what the source of a match has and what the text has instead", () => {
    expect(told("Open file %s", "Open the file %s")).toBe("Open [+the +]file %s");
    expect(told("a red car", "a blue car")).toBe("a [-red -][+blue +]car");
    expect(told("one two", "one")).toBe("one [-two-]");
    expect(told("", "one")).toBe("[+one+]");
    expect(told("b a b", "a b a")).toMatch(/^(\[-b -\]a b\[\+a\+\]|\[\+a \+\]b a ?\[-b-\])$/);
  });

  test("are given up where comparing would take long, and nothing is lost", () => {
    const long = "word ".repeat(600).trim();
    expect(changes(long, `${long} more`)).toEqual([{ text: long, of: "theirs" }]);
  });
});
