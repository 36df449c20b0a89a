import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Api } from "../src/api";
import { AUTO } from "../src/lib/languages";
import { Files } from "../src/state/files.svelte";
import { Translating } from "../src/state/translating.svelte";

const MODELS = {
  models: [
    { id: "en-de", source: "en", target: "de", names: { source: "English", target: "German" }, calibrated: true, reverse: "de-en" },
    { id: "de-en", source: "de", target: "en", names: { source: "German", target: "English" }, calibrated: false, reverse: "en-de" },
    { id: "en-fr", source: "en", target: "fr", names: { source: "English", target: "French" }, calibrated: false, reverse: null },
  ],
  limits: { characters: 100, texts: 2, alternatives: 8, beam: 16, file_bytes: 1000 },
};
const SETTINGS = { frontendTimeout: 500, keyRequired: false, filesTranslation: true, supportedFilesFormat: [".txt"] };
const MULTI = {
  ...{ id: "multi", source: "en", target: "de", names: { source: "English", target: "German" }, calibrated: false, reverse: "multi:de-en" },
  ...{ directions: { en: ["de", "sv"], de: ["en"], sv: ["en"] }, languages: { en: "English", de: "German", sv: "Swedish" }, tags: ["formal", "ui"] },
};
const NOTHING = { source: null, target: null, text: null };

/** A server of a few lines: answers in upper case after `delay` ms, and remembers what it was asked. */
class Server {
  asked: { path: string; body: Record<string, unknown> }[] = [];
  left = 0; // requests that nobody waited for
  delay = 10;
  refusals: { status: number; headers?: Record<string, string>; body?: unknown }[] = [];
  limits = MODELS.limits;
  models: unknown[] = MODELS.models;
  guesses: unknown = [{ language: "de", confidence: 90 }];

  readonly api = new Api((path, init) => this.answer(path, init));

  get texts(): unknown[] {
    return this.asked.filter(({ path }) => path === "api/v1/translate").map(({ body }) => body["text"]);
  }

  private async answer(path: string, init?: RequestInit): Promise<Response> {
    const body = typeof init?.body === "string" ? (JSON.parse(init.body) as Record<string, unknown>) : {};
    this.asked.push({ path, body });
    await new Promise<void>((resolve, reject) => {
      let waiting = true;
      setTimeout(() => {
        waiting = false;
        resolve();
      }, this.delay);
      init?.signal?.addEventListener("abort", () => {
        if (waiting) this.left++;
        reject(new DOMException("left", "AbortError"));
      });
    });
    if (path === "api/v1/models") return Response.json({ models: this.models, limits: this.limits });
    if (path === "frontend/settings") return Response.json(SETTINGS);
    if (path === "detect") return Response.json(this.guesses);
    const refusal = this.refusals.shift();
    if (refusal?.status === 0) throw new TypeError("fetch failed");
    if (refusal) return Response.json(refusal.body ?? {}, refusal);
    if (path === "translate_file") return Response.json({ translatedFileUrl: "http://inside:1/download_file/k.a.txt" });
    return Response.json({ model: "en-de", source: body["source"], target: body["target"], took_ms: 1, results: [made(String(body["text"]))] });
  }
}

function made(text: string): Record<string, unknown> {
  const other = { text: `${text.toUpperCase()}!`, confidence: 0.5 };
  const same = { text: text.toUpperCase(), confidence: 0.4 };
  return { text: text.toUpperCase(), confidence: 0.9, words: [], alternatives: [same, other, other], warnings: [] };
}

let server: Server;
let page: Translating;

beforeEach(async () => {
  vi.useFakeTimers();
  server = new Server();
  page = new Translating(server.api);
  const opened = page.open(NOTHING);
  await vi.advanceTimersByTimeAsync(50);
  await opened;
});

afterEach(() => vi.useRealTimers());

test("it opens with the first model", () => {
  expect([page.source, page.target, page.sources, page.targets]).toEqual(["en", "de", ["en", "de"], ["fr", "de"]]);
  expect(page.name("fr")).toBe("French");
  expect(page.limits.characters).toBe(100);
});

test("what is typed before the models are known is translated when they are", async () => {
  server = new Server();
  server.delay = 300;
  page = new Translating(server.api);
  const opening = page.open(NOTHING);
  await vi.advanceTimersByTimeAsync(100);
  page.write("hello");
  await vi.advanceTimersByTimeAsync(2000);
  await opening;
  expect([page.models.length, page.target, page.shown?.result.text]).toEqual([3, "de", "HELLO"]);
});

test("a model that nobody should use is known where it is asked, and only there", async () => {
  expect(page.wanted?.verdict).toBeUndefined();
  server.models = [{ ...MODELS.models[0], verdict: "NOT USABLE: it says nothing" }, ...MODELS.models.slice(1)];
  const opened = page.open(NOTHING);
  await vi.advanceTimersByTimeAsync(50);
  await opened;
  expect(page.wanted?.verdict).toBe("NOT USABLE: it says nothing");
  page.swap();
  expect(page.wanted?.verdict).toBeUndefined();
});

test("a text is translated when nobody has typed for a while, once", async () => {
  for (const text of ["o", "on", "one"]) {
    page.write(text);
    await vi.advanceTimersByTimeAsync(400);
  }
  expect(server.texts).toEqual([]);
  await vi.advanceTimersByTimeAsync(150);
  expect(server.texts).toEqual(["one"]);
  expect(page.current?.text).toBe("ONE");
  expect(page.status.kind).toBe("done");
  expect(page.fresh).toBe(true);
});

test("who types on cancels what is under way, and never sees its answer", async () => {
  server.delay = 1000;
  page.write("one");
  await vi.advanceTimersByTimeAsync(600);
  expect(page.status.kind).toBe("translating");
  page.write("one two");
  expect(server.left).toBe(1);
  await vi.advanceTimersByTimeAsync(1400);
  expect(page.shown).toBeNull();
  await vi.advanceTimersByTimeAsync(200);
  expect(page.current?.text).toBe("ONE TWO");
});

test("an old translation stays and is known to be old", async () => {
  page.write("one");
  await vi.advanceTimersByTimeAsync(600);
  page.write("one t");
  expect([page.current?.text, page.fresh]).toEqual(["ONE", false]);
});

test("what was translated into another language is old until the answer is there, and a swap does not take it", async () => {
  page.write("hello");
  await vi.advanceTimersByTimeAsync(600);
  expect([page.shown?.result.text, page.fresh]).toEqual(["HELLO", true]);
  page.chooseTarget("fr");
  expect(page.fresh).toBe(false);
  await vi.advanceTimersByTimeAsync(50);
  expect(page.fresh).toBe(true);
  server.refusals.push({ status: 400 });
  page.chooseTarget("de");
  await vi.advanceTimersByTimeAsync(50);
  expect([page.status.kind, page.fresh]).toEqual(["failed", false]);
  page.swap();
  expect([page.source, page.target, page.text]).toEqual(["de", "en", "hello"]);
});

test("who does not wait for an opening has one, with what the link asked for", async () => {
  const slow = new Server();
  page = new Translating(slow.api);
  slow.delay = 5000;
  const first = page.open({ source: "de", target: "en", text: "hallo" });
  await vi.advanceTimersByTimeAsync(10);
  slow.delay = 10;
  const second = page.again();
  await vi.advanceTimersByTimeAsync(200);
  await Promise.all([first, second]);
  expect([page.source, page.target, page.shown?.result.text]).toEqual(["de", "en", "HALLO"]);
  expect(slow.left).toBeGreaterThan(0);
});

test("nothing is left of a text that was cleared", async () => {
  page.write("one");
  await vi.advanceTimersByTimeAsync(600);
  page.write("  ");
  expect([page.shown, page.exchange, page.status.kind]).toEqual([null, null, "idle"]);
  page.write("two");
  page.clear();
  await vi.advanceTimersByTimeAsync(2000);
  expect(server.texts).toEqual(["one"]);
});

test("a text over the limit is not sent", async () => {
  page.write("😀".repeat(101));
  await vi.advanceTimersByTimeAsync(600);
  expect([page.over, server.texts]).toEqual([1, []]);
  page.write("😀".repeat(100));
  await vi.advanceTimersByTimeAsync(600);
  expect([page.over, server.texts.length]).toEqual([0, 1]);
});

test("alternatives that say the same are shown once, and one can be chosen", async () => {
  page.write("one");
  await vi.advanceTimersByTimeAsync(600);
  expect(page.choices.map((choice) => choice.text)).toEqual(["ONE", "ONE!"]);
  page.choose(1);
  expect(page.current?.text).toBe("ONE!");
  page.choose(7);
  expect(page.chosen).toBe(1);
  page.write("two");
  await vi.advanceTimersByTimeAsync(600);
  expect(page.chosen).toBe(0);
});

test("a swap needs a model for the way back, and the translation becomes the text", async () => {
  page.write("one");
  await vi.advanceTimersByTimeAsync(600);
  page.swap();
  await vi.advanceTimersByTimeAsync(50);
  expect([page.source, page.target, page.text, page.current?.text]).toEqual(["de", "en", "ONE", "ONE"]);
  page.chooseSource("en");
  page.chooseTarget("fr");
  await vi.advanceTimersByTimeAsync(50);
  expect(page.canSwap).toBe(false);
  page.swap();
  expect([page.source, page.target]).toEqual(["en", "fr"]);
});

describe("a model of several directions", () => {
  beforeEach(async () => {
    server.models = [MULTI];
    const opened = page.open({ ...NOTHING, tags: ["ui", "rude"] });
    await vi.advanceTimersByTimeAsync(50);
    await opened;
  });

  test("all its languages are in the menus, by name, and a swap stays inside", async () => {
    expect([page.sources, page.targets, page.name("sv")]).toEqual([["en", "de", "sv"], ["de", "sv"], "Swedish"]);
    page.chooseTarget("sv");
    page.write("hej");
    await vi.advanceTimersByTimeAsync(600);
    page.swap();
    expect([page.source, page.target, page.canSwap, page.fitting[0]?.id]).toEqual(["sv", "en", true, "multi:sv-en"]);
    page.chooseSource("de");
    expect([page.targets, page.target]).toEqual([["en"], "en"]);
  });

  test("tags that it knows are told, and stay on show with the translation", async () => {
    expect([page.tags, page.told]).toEqual([["formal", "ui"], ["ui"]]);
    page.write("one");
    await vi.advanceTimersByTimeAsync(600);
    page.toggleTag("formal");
    await vi.advanceTimersByTimeAsync(50);
    expect([server.asked.at(-1)?.body["tags"], page.shown?.tags]).toEqual([["formal", "ui"], ["formal", "ui"]]);
    page.toggleTag("formal");
    page.toggleTag("ui");
    await vi.advanceTimersByTimeAsync(50);
    expect(server.asked.at(-1)?.body).not.toHaveProperty("tags");
  });
});

test("the request on show is the one that was sent", async () => {
  page.write("it's");
  await vi.advanceTimersByTimeAsync(600);
  expect(page.exchange?.request).toEqual({ text: "it's", source: "en", target: "de", nbest: 4, align: true });
  expect(server.asked.at(-1)?.body).toEqual(page.exchange?.request);
  expect(page.exchange?.response).toMatchObject({ model: "en-de" });
});

test.each([
  [{ alternatives: 8, beam: 16 }, 4],
  [{ alternatives: 2, beam: 16 }, 3],
  [{ alternatives: 8, beam: 2 }, 2],
  [{ alternatives: 0, beam: 16 }, 1],
])("no more translations are asked for than a server with %o allows: %i", async (limits, nbest) => {
  server.limits = { ...MODELS.limits, ...limits };
  const opened = new Translating(server.api);
  const done = opened.open({ ...NOTHING, text: "one" });
  await vi.advanceTimersByTimeAsync(100);
  await done;
  expect(opened.exchange?.request.nbest).toBe(nbest);
});

describe("detection", () => {
  test("a detected language is translated from, where there is a way to the target", async () => {
    page.chooseSource(AUTO);
    page.chooseTarget("en");
    page.write("eins");
    await vi.advanceTimersByTimeAsync(600);
    expect(page.exchange?.request).toMatchObject({ source: "de", target: "en" });
    expect(page.detection).toMatchObject({ source: "de", certain: true });
  });

  test("one from which there is no way is not pretended", async () => {
    page.chooseSource(AUTO);
    page.chooseTarget("fr");
    page.write("eins zwei");
    await vi.advanceTimersByTimeAsync(600);
    expect(page.exchange?.request).toMatchObject({ source: "en", target: "fr" });
    expect(page.detection).toMatchObject({ certain: false, sentence: expect.stringContaining("looks like German") });
  });
});

describe("refusals", () => {
  const busy = { status: 503, headers: { "Retry-After": "3" }, body: { error: { code: "busy", message: "full", hint: null } } };

  test("a busy server is asked again after the time that it names", async () => {
    server.refusals = [busy, busy];
    page.write("one");
    await vi.advanceTimersByTimeAsync(520);
    expect(page.status).toMatchObject({ kind: "waiting", seconds: 3 });
    await vi.advanceTimersByTimeAsync(2000);
    expect([server.texts.length, page.status.kind]).toEqual([1, "waiting"]);
    await vi.advanceTimersByTimeAsync(5000);
    expect([server.texts.length, page.current?.text]).toEqual([3, "ONE"]);
  });

  test("who types on while the server is busy does not wait for the old text", async () => {
    server.refusals = [busy];
    page.write("one");
    await vi.advanceTimersByTimeAsync(600);
    page.write("two");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.texts).toEqual(["one", "two"]);
  });

  test("what asking again would not change is said at once", async () => {
    server.refusals = [{ status: 400, body: { error: { code: "bad_request", message: "no", hint: "do" } } }];
    page.write("one");
    await vi.advanceTimersByTimeAsync(600);
    expect(page.status).toMatchObject({ kind: "failed", trouble: { status: 400, hint: "do" } });
    expect(server.texts).toHaveLength(1);
  });

  test("a server that does not answer is asked again, for some time", async () => {
    server.refusals = Array(20).fill({ status: 0 });
    page.write("one");
    await vi.advanceTimersByTimeAsync(200_000);
    expect(page.status).toMatchObject({ kind: "failed", trouble: { code: "unreachable" } });
    expect(server.texts).toHaveLength(9);
    server.refusals = [];
    void page.again();
    await vi.advanceTimersByTimeAsync(50);
    expect(page.current?.text).toBe("ONE");
  });
});

describe("links into the page", () => {
  test("languages and text of a link are taken, and translated at once", async () => {
    const opened = new Translating(server.api);
    const done = opened.open({ source: "de-AT", target: "en", text: "eins" });
    await vi.advanceTimersByTimeAsync(100);
    await done;
    expect([opened.source, opened.target, opened.current?.text]).toEqual(["de", "en", "EINS"]);
  });

  test("languages that the server does not have become some that it has", async () => {
    const opened = new Translating(server.api);
    const done = opened.open({ source: "xx", target: "yy", text: null });
    await vi.advanceTimersByTimeAsync(100);
    await done;
    expect([opened.source, opened.target]).toEqual(["en", "de"]);
  });
});

describe("files", () => {
  test("a file is sent, and fetched from where the page came from", async () => {
    const files = new Files(server.api, () => "https://t.example/mt/");
    void files.send(new File(["one"], "a.txt"), "en", "de", page.settings, page.limits);
    expect(files.sent[0]).toMatchObject({ name: "a.txt", state: "translating" });
    await vi.advanceTimersByTimeAsync(50);
    expect(files.sent[0]).toMatchObject({ state: "done", url: "https://t.example/mt/download_file/k.a.txt" });
  });

  test("a file that cannot be translated is never sent, and a refusal is told", async () => {
    const files = new Files(server.api, () => "https://t.example/");
    await files.send(new File(["x"], "a.pdf"), "en", "de", page.settings, page.limits);
    expect(files.sent[0]).toMatchObject({ state: "failed", sentence: expect.stringContaining(".pdf") });
    expect(server.asked.some(({ path }) => path === "translate_file")).toBe(false);
    server.refusals = [{ status: 400, body: { error: "Invalid request: empty file" } }];
    void files.send(new File(["x"], "b.txt"), "en", "de", page.settings, page.limits);
    await vi.advanceTimersByTimeAsync(50);
    expect(files.sent[0]).toMatchObject({ state: "failed", sentence: expect.stringContaining("empty file") });
  });

  test("a file that is larger than the server takes is never sent", async () => {
    const files = new Files(server.api, () => "https://t.example/");
    await files.send(new File(["x".repeat(2000)], "b.txt"), "en", "de", page.settings, page.limits);
    expect(files.sent[0]).toMatchObject({ state: "failed", sentence: "The file has 2 kB; at most 1 kB are taken." });
    expect(server.asked.some(({ path }) => path === "translate_file")).toBe(false);
  });

  test("a file that was taken away is not waited for", async () => {
    const files = new Files(server.api, () => "https://t.example/");
    void files.send(new File(["x"], "b.txt"), "en", "de", page.settings, page.limits);
    files.remove(files.sent[0]!.id);
    expect(server.left).toBe(1);
    await vi.advanceTimersByTimeAsync(50);
    expect(files.sent).toEqual([]);
  });
});
