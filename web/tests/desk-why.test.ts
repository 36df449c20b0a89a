/** Why this piece: what is said of an attribution, how it is shaded, and which answer is shown. */
import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { Api } from "../src/api";
import { leastSure, shownStep } from "../src/desk/candidates";
import { deskAction } from "../src/desk/keys";
import type { Trace } from "../src/desk/trace";
import { sayUnmatched, sayWhy, shadesOf, WhyState, type Why } from "../src/desk/why.svelte";

const trace = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;
const WHY: Why = {
  word: "zwanzig",
  first: 2,
  method: "occlusion",
  logp: -0.08,
  source_share: 0.577,
  source: [
    { piece: "▁twenty", effect: 6, share: 0.55 },
    { piece: "-", effect: -0.3, share: -0.027 },
  ],
  prefix: [{ piece: "und", effect: 4.6, share: 0.423 }],
};
const named = (trace_id: string): Trace => ({ ...trace, trace_id });
const answering = (
  answer: (body: Record<string, unknown>) => Promise<Response>,
  renew: (trace: Trace) => Promise<Trace | null> = async () => null,
): WhyState => new WhyState(new Api((_, init) => answer(JSON.parse(String(init?.body)) as Record<string, unknown>)), renew);

describe("why this piece", () => {
  test("one sentence tells how far it followed the source, and what most of all", () => {
    expect(sayWhy(WHY)).toBe("“zwanzig” followed the source by 58 %, most of all “twenty”.");
    expect(sayWhy({ ...WHY, source: [{ piece: "a", effect: 0, share: 0 }], prefix: [], source_share: 0 })).toContain("followed nothing");
  });

  test("words left out and made up are named, and nothing is said where there are none", () => {
    expect([sayUnmatched(WHY), sayUnmatched({ ...WHY, unmatched: [] })]).toEqual(["", ""]);
    const unmatched = [{ kind: "addition", word: "eins" }, { kind: "omission", word: "six" }, { kind: "addition", word: "zwei" }] as const;
    expect(sayUnmatched({ ...WHY, unmatched: [...unmatched] })).toBe("Left out: “six”. Made up: “eins”, “zwei”.");
  });

  test("the strongest piece is lit whole, and what spoke against it not at all", () => {
    expect(shadesOf(WHY)).toEqual({ source: [1, 0], prefix: [0.423 / 0.55] });
    expect(shadesOf({ ...WHY, source: [], prefix: [] })).toEqual({ source: [], prefix: [] });
  });

  test("the key y asks for it, but not where somebody writes", () => {
    const pressed = (tagName: string) => deskAction({ key: "y", ctrlKey: false, metaKey: false, altKey: false, target: { tagName } });
    expect(pressed("BODY")).toEqual({ do: "why" });
    expect(pressed("TEXTAREA")).toBeNull();
  });

  test("the piece on show is the chosen one, else the least sure, and never one that is not there", () => {
    expect(shownStep(trace, 1)).toBe(1);
    expect(shownStep(trace, null)).toBe(leastSure(trace));
    expect(shownStep(trace, 999)).toBe(trace.target.tokens.length - 1);
  });

  test("it is asked once for each piece of a trace", async () => {
    const asked: unknown[] = [];
    const why = answering(async (body) => (asked.push(body), Response.json(WHY)));
    await why.ask(named("t_1"), 2);
    await why.ask(named("t_1"), 2);
    expect(asked).toEqual([{ trace_id: "t_1", piece: 2, check: true }]);
    expect(why.told).toEqual(WHY);
    expect([why.isOf(named("t_1"), 2), why.isOf(named("t_1"), 3), why.isOf(named("t_2"), 2), why.busy]).toEqual([true, false, false, false]);
  });

  test("an answer that comes late is dropped, and a refusal can be asked again", async () => {
    const waiting: ((answer: Response) => void)[] = [];
    const why = answering(() => new Promise((resolve) => waiting.push(resolve)));
    const [first, second] = [why.ask(named("t_1"), 0), why.ask(named("t_1"), 1)];
    waiting[1]!(Response.json({ ...WHY, first: 1 }));
    await second;
    waiting[0]!(Response.json({ ...WHY, first: 0 }));
    await first;
    expect(why.told?.first).toBe(1);
    const refused = why.ask(named("t_1"), 3);
    waiting[2]!(Response.json({ error: { code: "busy", message: "no" } }, { status: 400 }));
    await refused;
    expect([why.told, why.trouble?.code, why.busy]).toEqual([null, "busy", false]);
    const again = why.ask(named("t_1"), 3);
    waiting[3]!(Response.json(WHY));
    await again;
    expect([why.told, why.trouble]).toEqual([WHY, null]);
  });

  test("a trace that the server has forgotten is made again, once", async () => {
    const asked: unknown[] = [];
    const forgetful = (known: string) => async (body: Record<string, unknown>) => {
      asked.push(body["trace_id"]);
      return body["trace_id"] === known ? Response.json(WHY) : Response.json({ error: { code: "unknown_trace", message: "gone" } }, { status: 404 });
    };
    const why = answering(forgetful("t_2"), async () => named("t_2"));
    await why.ask(named("t_1"), 2);
    expect([why.told, why.trouble, why.busy, asked]).toEqual([WHY, null, false, ["t_1", "t_2"]]);
    expect([why.isOf(named("t_2"), 2), why.isOf(named("t_1"), 2)]).toEqual([true, false]);
    const lost = answering(forgetful("t_9"), async () => named("t_2"));
    await lost.ask(named("t_1"), 2);
    expect([lost.told, lost.trouble?.status, lost.busy]).toEqual([null, 404, false]);
    const unknown = answering(forgetful("t_9"));
    await unknown.ask(named("t_1"), 2);
    expect(unknown.trouble?.status).toBe(404);
  });
});
