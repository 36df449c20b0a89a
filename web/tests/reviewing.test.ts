import { describe, expect, test } from "vitest";

import { Api } from "../src/api";
import { moveOf } from "../src/review/keys";
import { keepsTags, Reviewing } from "../src/review/reviewing.svelte";

const MODEL = { id: "en-de", source: "en", target: "de", names: { source: "English", target: "German" }, calibrated: true, reverse: null };
const LIMITS = { characters: 20, texts: 2, alternatives: 8, beam: 16, file_bytes: 10_000 };
const SEGMENT = { line: 1, confidence: 0.4, unedited: 0.2, from_memory: false, reasons: [{ code: "unsure", message: "unsure" }], terms: [] };
const SEGMENTS = ["A cat", "A dog", "A sentence that is too long to be asked about"].map((source, id) => ({ ...SEGMENT, id: String(id), source, text: source.toUpperCase() }));

async function opened(told: { corrections?: boolean; memory?: boolean } = {}, store_away = false) {
  const asked: { path: string; body: Record<string, any> }[] = [];
  const saved: string[] = [];
  let held: Promise<string> | null = null; // of the next translation, until somebody lets it go
  const api = new Api(async (path, init) => {
    const body = typeof init?.body === "string" ? (JSON.parse(init.body) as Record<string, any>) : {};
    asked.push({ path, body });
    if (path === "api/v1/models") return Response.json({ models: [MODEL], limits: LIMITS, ...told });
    if (path === "frontend/settings") return Response.json({ supportedFilesFormat: [".po"], filesTranslation: true });
    if (path === "api/v1/documents") return Response.json({ model: "en-de", source: "en", target: "de", left: 0, segments: SEGMENTS });
    if (path === "api/v1/documents/file") return Response.json({ data: "eA==", refused: [{ line: 3, code: "structure", message: "harm" }] });
    if (path === "api/v1/corrections") return Response.json({ id: 7 });
    if (store_away && body["matches"]) return Response.json({ error: { code: "store_away", message: "away" } }, { status: 503 });
    if (held) {
      const [waited] = [held, (held = null)];
      return Response.json({ results: [{ text: await waited, alternatives: [] }] });
    }
    const matches = body["matches"] ? [{ score: 0.9, source: "A cat!", target: "Eine Katze!", origin: "" }] : undefined;
    return Response.json({ results: [{ text: "KATZE", alternatives: [{ text: "A CAT" }, { text: " " }, { text: "KATZE " }, { text: "KATER" }], matches }] });
  });
  const reviewing = new Reviewing(api, (name, data) => saved.push(name, data));
  await reviewing.open();
  await reviewing.load("a.po", 100, async () => "data");
  await new Promise((resolve) => setTimeout(resolve, 20));
  const hold = () => {
    let release!: (text: string) => void;
    held = new Promise((resolve) => (release = resolve));
    return release;
  };
  return { asked, saved, reviewing, hold };
}

describe("a review", () => {
  test("shows what can be said instead, asked for when a segment is looked at", async () => {
    const { asked, reviewing } = await opened({ memory: true });
    expect(asked.find(({ path }) => path === "api/v1/documents")!.body).toEqual({ name: "a.po", data: "data", model: "en-de", memory: "use" });
    expect(reviewing.help["0"]!.alternatives).toEqual(["KATZE", "KATER"]);
    expect(reviewing.expected).toBe(1);
    reviewing.take(4);
    expect(reviewing.row!.text).toBe("Eine Katze!");
    reviewing.take(1);
    expect(reviewing.row!.text).toBe("KATER");
    reviewing.take(8);
    expect(reviewing.row!.text).toBe("KATER");
    reviewing.go(99);
    expect(reviewing.at).toBe(2);
    expect(asked.filter(({ path }) => path === "api/v1/translate").length, "what is too long is not asked about").toBe(1);
  });

  test("keeps what was said of another document away from this one", async () => {
    const { reviewing, hold } = await opened();
    const release = hold();
    reviewing.go(1);
    await reviewing.load("b.po", 100, async () => "other");
    reviewing.go(1);
    release("A's KATZE");
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(reviewing.file!.name).toBe("b.po");
    expect(reviewing.help["1"]!.alternatives).toEqual(["KATZE", "A CAT", "KATER"]);
  });

  test("takes nothing more for a document that another is about to replace", async () => {
    const { reviewing } = await opened();
    const loading = reviewing.load("b.po", 100, async () => "other");
    reviewing.write("lost");
    reviewing.accept();
    expect([reviewing.row!.text, reviewing.row!.done, reviewing.unsaved]).toEqual(["A CAT", false, false]);
    await loading;
    reviewing.write("kept");
    expect([reviewing.row!.text, reviewing.unsaved]).toEqual(["kept", true]);
  });

  test("goes on without a memory that does not answer", async () => {
    const { reviewing } = await opened({ memory: true }, true);
    expect(reviewing.help["0"]).toEqual({ matches: [], alternatives: ["KATZE", "KATER"] });
  });

  test("accepts, goes to the next that nobody has looked at, and keeps what was changed where corrections are", async () => {
    const { asked, reviewing } = await opened({ corrections: true });
    reviewing.go(1);
    reviewing.accept();
    reviewing.accept();
    expect(reviewing.at).toBe(0);
    expect(asked.some(({ path }) => path === "api/v1/corrections")).toBe(false);
    reviewing.write(" Katze ");
    reviewing.accept();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(asked.at(-1)!.body).toEqual({ text: "A cat", translation: "A CAT", correction: "Katze", model: "en-de" });
    expect([reviewing.done, reviewing.kept]).toEqual([3, 1]);
    const before = asked.length;
    reviewing.accept();
    expect(asked.length, "the same correction goes once").toBe(before);
    reviewing.write("");
    reviewing.accept();
    expect(reviewing.done, "nothing is no translation").toBe(2);
    expect(reviewing.problem).toContain("no translation to accept");
    reviewing.write("Hund");
    expect(reviewing.problem).toBe("");
  });

  test("gives the document back at any moment, with what nobody has looked at marked as before", async () => {
    const { asked, saved, reviewing } = await opened();
    reviewing.write("Katze");
    reviewing.accept();
    reviewing.go(2);
    reviewing.write("");
    expect(reviewing.unsaved).toBe(true);
    await reviewing.download();
    expect(asked.at(-1)!.body["segments"]).toEqual({ "0": { text: "Katze" }, "1": { text: "A DOG", confidence: 0.4, doubtful: true } });
    expect(saved).toEqual(["a.po", "eA=="]);
    expect([reviewing.unsaved, reviewing.refused[0]!.message]).toEqual([false, "harm"]);
    const downloading = reviewing.download();
    reviewing.write("Hund");
    await downloading;
    expect(reviewing.unsaved, "what was written meanwhile is in no file").toBe(true);
  });

  test("refuses what the server would", async () => {
    const { asked, reviewing } = await opened();
    const before = asked.length;
    await reviewing.load("a.pdf", 100, async () => "data");
    expect(reviewing.problem).toContain(".pdf");
    await reviewing.load("a.po", 9_000, async () => "data");
    expect(reviewing.problem).toContain("at most");
    expect(asked.length).toBe(before);
  });
});

test("tags are compared while one writes", () => {
  expect(keepsTags('<g id="1">a</g> b', '<g id="1">c</g>')).toBe(true);
  expect(keepsTags('<g id="1">a</g> b', "<g>c</g>")).toBe(false);
  expect(keepsTags("a < b", "c")).toBe(true);
});

test("keys move where nobody writes", () => {
  const key = (name: string, more: object = {}) => moveOf({ key: name, ctrlKey: false, metaKey: false, altKey: false, target: null, ...more });
  expect([key("j"), key("ArrowUp"), key("a"), key("3"), key("x")]).toEqual([{ do: "next" }, { do: "previous" }, { do: "accept" }, { do: "take", number: 2 }, null]);
  const writing = { target: { tagName: "TEXTAREA" } };
  expect([key("j", writing), key("Escape", writing), key("Enter", { ...writing, ctrlKey: true })]).toEqual([null, { do: "leave" }, { do: "accept" }]);
  expect(key("a", { isComposing: true })).toBeNull();
});
