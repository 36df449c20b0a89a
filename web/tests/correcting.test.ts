import { describe, expect, test } from "vitest";

import { Api } from "../src/api";
import { actionOf } from "../src/lib/keys";
import { Correcting } from "../src/state/correcting.svelte";
import { Translating } from "../src/state/translating.svelte";

const MODEL = { id: "en-de", source: "en", target: "de", names: { source: "English", target: "German" }, calibrated: false, reverse: null };
const LIMITS = { characters: 100, texts: 2, alternatives: 8, beam: 16, file_bytes: 1000 };

/** A page with a translation on show, and what its server was asked. */
async function opened(corrections: boolean, refusal?: { status: number; body: unknown }) {
  const asked: { path: string; body: Record<string, unknown> }[] = [];
  const api = new Api(async (path, init) => {
    const body = typeof init?.body === "string" ? (JSON.parse(init.body) as Record<string, unknown>) : {};
    asked.push({ path, body });
    if (path === "api/v1/models") return Response.json({ models: [MODEL], limits: LIMITS, corrections });
    if (path === "frontend/settings") return Response.json({});
    if (path === "api/v1/corrections") return refusal ? Response.json(refusal.body, { status: refusal.status }) : Response.json({ id: 7 });
    const text = `${(body["prefix"] as string | undefined) ?? ""}Katze`;
    return Response.json({ model: "en-de", source: "en", target: "de", took_ms: 1, results: [{ text, confidence: null, alternatives: [], finish: "eos", warnings: [] }] });
  });
  const translating = new Translating(api);
  await translating.open({ source: "en", target: "de", text: "A cat" });
  return { asked, translating, correcting: new Correcting(api, translating) };
}

describe("a correction", () => {
  test("is sent with what it corrects, and thanked for", async () => {
    const { asked, correcting } = await opened(true);
    correcting.open();
    expect(correcting.text).toBe("Katze");
    expect(correcting.changed).toBe(false);
    correcting.text = " Eine Katze ";
    await correcting.send();
    expect(asked.at(-1)).toEqual({ path: "api/v1/corrections", body: { text: "A cat", translation: "Katze", correction: "Eine Katze", model: "en-de" } });
    expect([correcting.kept, correcting.of]).toEqual([true, null]);
  });

  test("that changes nothing is not sent", async () => {
    const { asked, correcting } = await opened(true);
    correcting.open();
    for (const text of ["Katze", " Katze ", "", "  "]) {
      correcting.text = text;
      await correcting.send();
    }
    expect(asked.filter(({ path }) => path === "api/v1/corrections")).toEqual([]);
  });

  test("that is being written stays, however often it is begun, and thanks are for the translation on show alone", async () => {
    const { translating, correcting } = await opened(true);
    correcting.open();
    correcting.text = "Eine Katze";
    correcting.open();
    expect(correcting.text).toBe("Eine Katze");
    await correcting.send();
    expect(correcting.kept).toBe(true);
    translating.text = "A dog";
    await translating.now();
    expect(correcting.kept).toBe(false);
  });

  test("is not offered where none are kept, nor of a text that has changed", async () => {
    const none = await opened(false);
    none.correcting.open();
    expect([none.correcting.possible, none.correcting.of]).toEqual([false, null]);
    const { translating, correcting } = await opened(true);
    translating.write("A dog");
    expect(correcting.possible).toBe(false);
  });

  test("that is refused stays on the page, with the reason", async () => {
    const { correcting } = await opened(true, { status: 403, body: { error: { code: "not_kept", message: "corrections are not kept" } } });
    correcting.open();
    correcting.text = "Eine Katze";
    await correcting.send();
    expect(correcting.trouble).not.toBeNull();
    expect([correcting.text, correcting.kept, correcting.busy]).toEqual(["Eine Katze", false, false]);
  });

  test("is completed after what stands before the cursor", async () => {
    const { asked, correcting } = await opened(true);
    correcting.open();
    correcting.text = "Eine Hauskatze";
    await correcting.complete(5);
    expect(asked.at(-1)!.body["prefix"]).toBe("Eine ");
    expect(correcting.text).toBe("Eine Katze");
  });

  test("begins with a key, where nobody writes", () => {
    const press = (target: unknown) => actionOf({ key: "e", ctrlKey: false, metaKey: false, altKey: false, target }, true);
    expect(press({ tagName: "BODY" })).toEqual({ do: "correct" });
    expect(press({ tagName: "TEXTAREA" })).toBeNull();
  });
});
