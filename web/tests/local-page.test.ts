/** The page that translates by itself, around its search: choosing, loading, cancelling, and what is kept of a text. */
import { readFileSync } from "node:fs";

import { afterEach, describe, expect, test, vi } from "vitest";

import type { Config, Listed, Models, SearchSettings } from "../src/local/config";
import { base } from "../src/local/config";
import { wordsOf } from "../src/local/confidence";
import { judge } from "../src/local/guards";
import { load, readModels, sha256 } from "../src/local/files";
import { LocalState, LONGEST, textOf } from "../src/local/local.svelte";
import type { Model } from "../src/local/model";
import type { Pieces } from "../src/local/pieces";
import { search, type Steppable } from "../src/local/search";
import { cut } from "../src/local/sentences";
import { Translating } from "../src/local/translating";
import { choose, Translator } from "../src/local/translator";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const SEARCH: SearchSettings = {
  beam: 2, nbest: 2, length_penalty: 1, length_norm: "power", patience: 1, min_length: 0, max_length: 20, max_ratio: 2, max_extra: 10, no_repeat_ngram: null,
}; // prettier-ignore

/** A model whose next piece depends on the last one alone: probabilities of `next` by the last piece, each a word of `vocabulary`. */
function translating(vocabulary: string[], next: Record<number, Record<number, number>>, more: Partial<Config> = {}): Translating {
  const size = vocabulary.length;
  const state: Steppable = {
    step: (tokens) => {
      const logProbs = new Float32Array(tokens.length * size).fill(-30);
      tokens.forEach((token, row) => Object.entries(next[token] ?? { 3: 1 }).forEach(([id, p]) => (logProbs[row * size + Number(id)] = Math.log(p))));
      return Promise.resolve({ logProbs, vocabulary: size, looks: [] });
    },
    reorder: () => {},
  };
  const pieces = { vocabulary, encode: (text: string) => (text ? [4] : []), decode: (ids: number[]) => ids.map((id) => vocabulary[id]).join(" ") };
  const config = {
    normalization: [], by_words: false, source_begin: [], target_begin: [], source_ends: true, special: { pad: 0, start: 2, end: 3, unknown: 1 },
    never: [0, 1, 2], marks: 0, taught: null, search: SEARCH, confidence: null, layers: 0, heads: 0, longest: 64, ...more,
  }; // prettier-ignore
  const model = { start: () => Promise.resolve(state) } as unknown as Model;
  return new Translating(model, config as unknown as Config, { source: pieces as unknown as Pieces, target: pieces as unknown as Pieces });
}
const WORDS = ["<pad>", "<unk>", "<s>", "</s>", "eins", "zwei", "drei"];
const asked = { source: "en", target: "de", nbest: 2 };

describe("a translation", () => {
  test("has alternatives with the white space around them", async () => {
    const made = await translating(WORDS, { 2: { 4: 0.6, 5: 0.4 } }).translate("  one \n", asked, () => false);
    expect([made.text, ...made.alternatives.map(({ text }) => text)]).toEqual(["  eins \n", "  zwei \n"]);
  });

  test("has no two alternatives that look the same", async () => {
    const marks = [...WORDS.slice(0, 5), "⟦0⟧", "⟦1⟧"]; // two things that are the same stand for each other
    const next = { 2: { 5: 0.6, 6: 0.4 }, 5: { 6: 0.9, 3: 0.1 }, 6: { 5: 0.9, 3: 0.1 } };
    const model = translating(marks, next, { marks: 4, search: { ...SEARCH, max_length: 2, patience: 20 } });
    const made = await model.translate("{a} {a}", asked, () => false);
    expect([made.text, made.alternatives]).toEqual(["{a} {a}", []]);
  });

  test("that looped is searched again with at least one piece, also where the first was not empty", async () => {
    // Without repeats of three pieces nothing at all would be the best, which the remedy before forbids.
    const next = { 2: { 4: 0.6, 3: 0.3 }, 4: { 4: 0.999, 3: 1e-5 } };
    const made = await translating(WORDS, next, { search: { ...SEARCH, patience: 20 } }).translate("one", { ...asked, nbest: 1 }, () => false);
    expect(made.text).toBe("eins eins eins");
    expect(made.warnings.map(({ code }) => code)).toContain("redecoded");
  });

  test("that is gone while it waits ends, also in its second search", async () => {
    let steps = 0;
    const loop = translating(WORDS, { 2: { 4: 1 }, 4: { 4: 1 } }, { search: { ...SEARCH, beam: 1, nbest: 1, max_extra: 40, max_length: 60 } });
    const gone = (): Promise<boolean> => new Promise((resolve) => setTimeout(() => resolve(++steps > 45), 0)); // 42 are of the first
    await expect(loop.translate("one", { source: "en", target: "de" }, gone)).rejects.toMatchObject({ name: "AbortError" });
    expect(steps).toBe(46);
  });

  test("of more things to keep than marks is cut, and none of them is", () => {
    const few = (text: string): boolean => (text.match(/%s|<b title="[^"]*">/g) ?? []).length <= 2;
    const text = '%s %s <b title="a, b, c, d, e"> %s %s %s';
    const { parts } = cut(text, "en", few);
    expect(parts.map((part) => part.text + part.after).join("")).toBe(text);
    expect(parts.every((part) => few(part.text)) && parts.some((part) => part.text.includes('<b title="a, b, c, d, e">'))).toBe(true);
    expect(cut('<b title="a, b, c, d, e">', "en", (part) => part.length < 5).parts).toHaveLength(1);
  });
});

test("a text of many lines has one segmenter, and blank lines none", () => {
  const segment = vi.spyOn(Intl.Segmenter.prototype, "segment");
  const { parts } = cut("one\n\n \n\ntwo", "en", () => true);
  expect(parts).toEqual([{ text: "one", after: "\n\n \n\n" }, { text: "two", after: "" }]);
  expect([new Set(segment.mock.contexts).size, segment.mock.calls.length]).toEqual([1, 2]);
});

test("an answer that comes later ends a search too", async () => {
  const rules = { start: 2, end: 3, never: [], longest: 255 };
  let steps = 0;
  const state: Steppable = { step: () => Promise.resolve({ logProbs: new Float32Array(10).fill(-1), vocabulary: 5, looks: [] }), reorder: () => steps++ };
  const gone = (): Promise<boolean> => Promise.resolve(steps === 2);
  await expect(search(state, { pieces: 3, begin: [], allowed: [] }, { ...SEARCH, min_length: 9 }, rules, gone)).rejects.toThrow("nobody waits");
});

test("letters and their marks are words as Python has them", () => {
  const words = wordsOf([["ကို", 0.5], ["ွ", 0.5]], 1, { confidence: null } as Config); // prettier-ignore
  expect(words.map(({ text }) => text)).toEqual(["ကိုွ"]);
  expect([base("pt_BR"), base("x-klingon"), base("X-A")]).toEqual(["pt", "x-klingon", "x-a"]);
  expect(judge("a b c d e f g h i j k l", "a? b? c? d? e? f? g? h? i? j? k? l?", "en", "de")).toEqual([]); // the cheap look comes first
});

const listed = (id: string, ...directions: [string, string][]): Listed => ({
  id, directions, names: [], numbers: ["uint8"], graphs: { uint8: [] }, pieces: [], files: { "config.json": { bytes: 2, sha256: "" } },
}); // prettier-ignore

test("a model of the very languages comes before one of their bases", () => {
  const models = { format: 1, shell: {}, models: [listed("brazil", ["en", "pt-BR"]), listed("portugal", ["en", "pt-PT"]), listed("own", ["x-a", "en"])] } as Models;
  const found = (sourceLanguage: string, targetLanguage: string, model?: string): unknown =>
    choose(models, { sourceLanguage, targetLanguage, ...(model ? { model } : {}) })?.listed.id;
  expect([found("en", "pt_pt"), found("en", "pt"), found("en", "pt", "portugal"), found("x-b", "en")]).toEqual(["portugal", "brazil", "portugal", undefined]);
});

/** What a browser keeps, by address. */
function keeping(content: Record<string, string>): { kept: Map<string, Uint8Array>; fetch: ReturnType<typeof vi.fn> } {
  const kept = new Map<string, Uint8Array>();
  const cache = {
    match: (url: string) => Promise.resolve(kept.has(url) ? new Response(kept.get(url)! as Uint8Array<ArrayBuffer>) : undefined),
    put: async (url: string, answer: Response) => void kept.set(url, new Uint8Array(await answer.arrayBuffer())),
    keys: (url: string) => Promise.resolve([...kept.keys()].filter((key) => key.split("?")[0] === url.split("?")[0]).map((key) => ({ url: key }))),
    delete: (which: string | { url: string }) => Promise.resolve(kept.delete(typeof which === "string" ? which : which.url)),
  };
  const fetch = vi.fn((url: string) => Promise.resolve(new Response(content[new URL(url, "https://a.test/").pathname])));
  vi.stubGlobal("document", { baseURI: "https://a.test/", getElementById: () => null });
  vi.stubGlobal("caches", { open: () => Promise.resolve(cache), match: cache.match });
  vi.stubGlobal("fetch", fetch);
  return { kept, fetch };
}
const factsOf = async (text: string): Promise<{ bytes: number; sha256: string }> => {
  const bytes = new TextEncoder().encode(text);
  return { bytes: bytes.length, sha256: await sha256(bytes) };
};

describe("files", () => {
  test("are hashed once, kept once, and never where they are wrong", async () => {
    const content = { "/a": "old" };
    const { kept, fetch } = keeping(content);
    await load("a", await factsOf("old"));
    content["/a"] = "new";
    const facts = await factsOf("new");
    const digest = vi.spyOn(crypto.subtle, "digest");
    expect(new TextDecoder().decode(await load("a", facts))).toBe("new");
    expect(digest).toHaveBeenCalledTimes(1);
    expect([...kept.keys()]).toEqual([`https://a.test/a?v=${facts.sha256.slice(0, 16)}`]);
    await load("a", facts);
    expect(fetch).toHaveBeenCalledTimes(2);
    await expect(load("a", await factsOf("bad"))).rejects.toThrow("its checksum is another");
    kept.set([...kept.keys()][0]!, new Uint8Array(3));
    await expect(load("a", facts)).rejects.toThrow("its checksum is another");
    expect(kept.size).toBe(0);
  });

  test("and the list of models is asked for anew", async () => {
    const { fetch } = keeping({ "/models.json": '{"format": 1, "shell": {}, "models": []}' });
    await readModels();
    expect(fetch.mock.calls[0]![1]).toMatchObject({ cache: "no-cache" });
  });

  test("are all there, those of every model too, before a translator is available", async () => {
    const models = { format: 1, shell: { "worker.js": await factsOf("w") }, models: [listed("first", ["en", "de"]), listed("second", ["en", "de"])] };
    for (const each of models.models) each.files["config.json"] = await factsOf(each.id);
    keeping({ "/models.json": JSON.stringify(models), "/worker.js": "w", "/models/first/config.json": "first", "/models/second/config.json": "second" });
    const options = { sourceLanguage: "en", targetLanguage: "de", model: "second" };
    await load("models/second/config.json", models.models[1]!.files["config.json"]!);
    expect(await Translator.availability(options)).toBe("downloadable");
    await load("worker.js", models.shell["worker.js"]);
    expect(await Translator.availability(options)).toBe("available");
    expect(await Translator.availability({ ...options, model: "first" })).toBe("downloadable");
  });
});

/** A translator whose worker is only heard. */
function heard(): { translator: Translator; asked: Record<string, unknown>[]; tell: (answer: object) => void } {
  const asked: Record<string, unknown>[] = [];
  const worker = { postMessage: (question: Record<string, unknown>) => asked.push(question), terminate: () => {}, onmessage: (_: unknown) => {} };
  const make = Translator as unknown as new (...given: unknown[]) => Translator;
  const translator = new make(worker, "en", "de", listed("a", ["en", "de"]), {});
  return { translator, asked, tell: (answer) => worker.onmessage({ data: answer }) };
}

describe("a stream", () => {
  test("that nobody reads any more is left, and what comes late is no error", async () => {
    const { translator, asked, tell } = heard();
    const reader = translator.translateStreaming("one").getReader();
    tell({ number: 1, part: "eins" });
    expect((await reader.read()).value).toBe("eins");
    await reader.cancel();
    expect(asked.at(-1)).toMatchObject({ kind: "gone", of: 1 });
    tell({ number: 1, part: "zwei" });
    tell({ number: 1, done: {} });
    translator.destroy();
  });

  test("ends with its signal, which keeps no listener of what is done", async () => {
    const { translator, tell } = heard();
    const turn = new AbortController();
    const [add, remove] = [vi.spyOn(turn.signal, "addEventListener"), vi.spyOn(turn.signal, "removeEventListener")];
    const done = translator.explain("one", {}, turn.signal);
    const reader = translator.translateStreaming("one", { signal: turn.signal }).getReader();
    tell({ number: 1, done: { text: "eins" } });
    await done;
    tell({ number: 2, done: {} });
    expect((await reader.read()).done).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(add.mock.calls.map(([, listener]) => listener)).toEqual(remove.mock.calls.map(([, listener]) => listener));
    const other = translator.translateStreaming("two", { signal: turn.signal }).getReader();
    turn.abort();
    await expect(other.read()).rejects.toMatchObject({ name: "AbortError" });
  });
});

test("another model ends the loading of the one before, and what arrives late is destroyed", async () => {
  const models = { format: 1, shell: {}, models: [listed("a", ["en", "de"]), listed("b", ["en", "fr"])] };
  keeping({ "/models.json": JSON.stringify(models) });
  vi.spyOn(Translator, "availability").mockResolvedValue("available");
  const made = new Map<string, { destroy: ReturnType<typeof vi.fn>; arrive: () => void; signal: AbortSignal }>();
  vi.spyOn(Translator, "create").mockImplementation(({ model, signal }) =>
    new Promise((resolve) => {
      const destroy = vi.fn();
      made.set(model!, { destroy, signal: signal!, arrive: () => resolve({ destroy, config: { layers: 1, heads: 2 } } as unknown as Translator) });
    }),
  ); // prettier-ignore
  const local = new LocalState();
  const wait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
  void local.begin();
  await vi.waitFor(() => expect(made.has("a")).toBe(true));
  void local.choose("b en fr");
  await vi.waitFor(() => expect(made.has("b")).toBe(true));
  expect(made.get("a")!.signal.aborted).toBe(true);
  made.get("b")!.arrive();
  await wait();
  made.get("a")!.arrive();
  await wait();
  expect([local.phase, local.gates.length, local.trouble]).toEqual(["ready", 2, ""]);
  expect([made.get("a")!.destroy.mock.calls.length, made.get("b")!.destroy.mock.calls.length]).toEqual([1, 0]);
});

test("the page is kept under its plain address, and stands in for every other when there is no network", async () => {
  const kept = new Map([["https://a.test/t/", "page"]]);
  const cache = {
    match: (url: string) => Promise.resolve(kept.get(new URL(url, "https://a.test/t/sw.js").href)),
    put: (url: string, answer: { text: string }) => Promise.resolve(void kept.set(url, answer.text)),
  };
  const hears: Record<string, (event: unknown) => void> = {};
  const self = { addEventListener: (name: string, hear: (event: unknown) => void) => (hears[name] = hear), location: { origin: "https://a.test" } };
  let fetch: () => Promise<unknown> = () => Promise.resolve({ ok: true, text: "newer", clone: () => ({ text: "newer" }) });
  const script = readFileSync("src/local/static/sw.js", "utf8");
  const run = (await import("node:vm")).runInNewContext;
  run(script, { self, caches: { open: () => Promise.resolve(cache) }, fetch: () => fetch(), URL, Request });
  const ask = (url: string, mode: string): Promise<unknown> =>
    new Promise((resolve) => hears["fetch"]!({ request: { url, method: "GET", mode }, respondWith: (answer: Promise<unknown>) => resolve(answer) }));
  await ask("https://a.test/t/?text=secret", "navigate");
  expect([...kept]).toEqual([["https://a.test/t/", "newer"]]);
  fetch = () => Promise.reject(new Error("no network"));
  expect(await ask("https://a.test/t/index.html", "navigate")).toBe("newer");
  await expect(ask("https://a.test/t/x.png", "no-cors")).rejects.toThrow("no network");
});

test("an address may bring a text, and one that is none brings nothing", () => {
  expect([textOf(""), textOf("#"), textOf("#twenty%20one#2"), textOf("#%E0%A4%A")]).toEqual(["", "", "twenty one#2", ""]);
  expect(textOf("#" + "a".repeat(LONGEST + 5))).toHaveLength(LONGEST);
  vi.stubGlobal("location", { hash: "#f%C3%BCnf" });
  expect(new LocalState().text).toBe("fünf");
});

test("a folder that is opened from a disk says what to do, and other failures stay what they are", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  vi.stubGlobal("document", { baseURI: "file:///home/a/index.html", getElementById: () => null });
  await expect(readModels()).rejects.toThrow("serve it (python -m http.server -d FOLDER), or export with --single-file");
  vi.stubGlobal("document", { baseURI: "https://a.test/", getElementById: () => null });
  await expect(readModels()).rejects.toThrow("Failed to fetch");
});
