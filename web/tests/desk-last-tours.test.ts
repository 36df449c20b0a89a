/** The tours: their tasks are ticked by what is on show, and by nothing else. */

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { alignmentHead, brightest, crossing, shareOf, sharpest, signed, type Scene, type Tour } from "../src/desk/tour";
import { TOURS, advanced, remembered } from "../src/desk/tours";
import type { Trace } from "../src/desk/trace";
import { START, type View } from "../src/desk/view";

const numbers = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;

/** A moment: the trace with some heads dark, the view with some choices. */
function scene(view: Partial<View> = {}, more: { text?: string; dark?: string[]; delta?: number; hidden?: number[]; beam?: number; spot?: string } = {}): Scene {
  const trace = structuredClone(numbers);
  if (more.text !== undefined) trace.source.text = more.text;
  for (const head of trace.stats!.heads) if (more.dark?.some((id) => head.id === id || (id.endsWith("*") && head.id.startsWith(id.slice(0, -1))))) head.gate = 0;
  if (more.delta !== undefined) trace.baseline = { text: numbers.target.text, logp: -3.98, delta_logp: more.delta };
  if (more.hidden) trace.source.masked = more.hidden;
  if (more.beam) trace.beam!.size = more.beam;
  return { trace, view: { ...START, ...view }, spot: more.spot ?? "cross.0.1" };
}

const tour = (id: string): Tour => TOURS.find((each) => each.id === id)!;

/** How many tasks are done after each of these moments, one after the other. */
function course(id: string, ...moments: Scene[]): number[] {
  let done = 0;
  let before: Scene | null = null;
  return moments.map((now) => {
    done = advanced(tour(id), done, now, before);
    before = now;
    return done;
  });
}

describe("the eight tours", () => {
  test("they go through the model in the order of a reader, and each asks for something", () => {
    expect(TOURS.map((each) => each.id)).toEqual(["tokens", "positions", "vectors", "masks", "heads", "cross", "beam", "explanation"]);
    for (const each of TOURS) expect(each.tasks.length, each.id).toBeGreaterThanOrEqual(3);
  });

  test("a page that was just opened has done nothing that asks for an act", () => {
    for (const each of TOURS) {
      const start = scene({ kind: "enc", panel: "compare" }, { spot: "enc.0.0" });
      const { trace } = start;
      for (const token of trace.source.tokens) token.word = token.id; // no word in pieces
      trace.align!.links = [];
      expect(advanced(each, 0, start, null), each.id).toBe(0);
    }
  });

  test("their sentences are short, and every one that computes has something to say", () => {
    const now = scene({ query: 2 }, { dark: ["cross.1.1"], delta: -0.5, hidden: [1], spot: "cross.1.0" });
    for (const each of TOURS) {
      for (const sentence of each.text.join(" ").split(/(?<=[.?]) /)) expect(sentence.split(" ").length, sentence).toBeLessThanOrEqual(36);
      if (each.here) expect(each.here(numbers).length).toBeGreaterThan(10);
      for (const task of each.tasks) {
        const ask = typeof task.ask === "string" ? task.ask : task.ask(now);
        expect(ask).not.toMatch(/undefined|NaN|null/);
        if (task.told) expect(task.told(now), ask).not.toMatch(/undefined|NaN|null|^$/);
      }
    }
  });
});

describe("what ticks a task", () => {
  test("tokens: another text, a word in pieces, a chosen piece", () => {
    expect(course("tokens", scene(), scene(), scene({}, { text: "forty" }), scene({ query: 1 }, { text: "forty" }))).toEqual([0, 0, 2, 3]);
    expect(tour("tokens").tasks[1]!.told!(scene())).toBe("▁t w e n t <0x79> <0x2D> o ne is one word in 9 pieces.");
    expect(tour("tokens").tasks[2]!.told!(scene({ query: 0 }))).toBe("Most probable: “▁z” with 95 %; then “▁seven” with < 1 %.");
  });

  test("positions: a choice counts only when the answer to it is there", () => {
    const open = { panel: "positions" } as const;
    const moments = [scene(open), scene({ ...open, positions: "zero" }), scene({ ...open, positions: "zero" }, { delta: -9 }), scene({ ...open, positions: "shuffle:7" }, { delta: -8 }), scene(open)];
    expect(course("positions", ...moments)).toEqual([1, 1, 2, 3, 4]);
    expect(tour("positions").tasks[1]!.told!(moments[2]!)).toBe("The translation stays the same. The log-probability of the first one changes by −9.00.");
  });

  test("query, key, value: each stage in its turn", () => {
    expect(course("vectors", scene({ stage: "scaled" }), scene({ stage: "scores" }), scene({ stage: "scaled" }), scene({ query: 3 }), scene({ panel: "stepper" }))).toEqual([0, 1, 2, 3, 4]);
    expect(tour("vectors").here!(numbers)).toBe("Here d_k is 8, so each score is divided by 2.83.");
    expect(tour("vectors").tasks[2]!.told!(scene({ query: 3 }, { spot: "cross.1.0" }))).toMatch(/sum to (1\.00|0\.99|1\.01)\. The largest is 0\.\d\d\./);
  });

  test("masks: decoder, masked scores, a piece hidden, and shown again", () => {
    const dec = { kind: "dec" } as const;
    expect(course("masks", scene(dec), scene({ ...dec, stage: "masked" }), scene({ hidden: [2] }), scene({ hidden: [2] }, { hidden: [2], delta: -1 }), scene())).toEqual([1, 2, 2, 3, 4]);
    expect(tour("masks").tasks[0]!.told!(scene(dec))).toBe("36 of 81 cells are hatched: all that lie in the future.");
  });

  test("heads: another head, an order, one mute, one solo, all back", () => {
    const moments = [
      scene(), scene({}, { spot: "cross.0.2" }), scene({ sort: "entropy" }), scene({}, { dark: ["enc.0.1", "enc.0.2"], delta: -1 }),
      scene({}, { dark: ["enc.0.1"], delta: -1 }), scene({ solo: ["cross.0.1"] }, { dark: ["cross.1.*"], delta: -2 }), scene(),
    ];
    expect(course("heads", ...moments)).toEqual([0, 1, 2, 2, 3, 4, 5]);
    expect(tour("heads").here!(numbers)).toContain("24 heads");
  });

  test("cross attention: the head that aligns, where it looks, and ribbons that cross", () => {
    expect(alignmentHead(numbers)).toBe("cross.1.0");
    const enc = scene({ kind: "enc" }, { spot: "enc.0.0" });
    expect(course("cross", enc, scene(), scene({}, { spot: "cross.1.0" }), scene({ query: 4 }, { spot: "cross.1.0" }))).toEqual([0, 1, 2, 4]);
    const links = numbers.align!.links.filter((link) => link[1] === 4);
    expect(brightest(scene({}, { spot: "cross.1.0" }), 4)!.column).toBe(links[0]![0]);
  });

  test("beam: the answer must be of that width", () => {
    const panel = { panel: "beam" } as const;
    expect(course("beam", scene({ beam: 1 }), scene({ beam: 1 }, { beam: 1 }), scene({ beam: 4 }), scene({ ...panel, prefix: [278] }, { delta: -1 }))).toEqual([0, 1, 3, 4]);
    expect(tour("beam").tasks[3]!.told!(scene({ prefix: [278] }, { delta: -1 }))).toContain("By itself it had −3.98".replace("−", "-"));
  });

  test("explanation: it ends in the dark, with another text", () => {
    const best = sharpest(numbers, "cross")!.id;
    const all = { dark: ["cross.*"], delta: -20 };
    const moments = [
      scene(), scene({}, { spot: best }), scene({}, { spot: best, dark: ["enc.0.0"], delta: -1 }), scene({}, { spot: best, dark: [best], delta: -1 }),
      scene({}, { dark: ["enc.1.1"], delta: -0.2 }), scene({}, { dark: ["enc.1.1"], delta: 0.05 }), scene({}, all), scene({}, all), scene({}, { ...all, text: "forty" }),
    ];
    expect(course("explanation", ...moments)).toEqual([0, 1, 1, 2, 2, 3, 4, 4, 5]);
  });

  test("a model without a named head or statistics is no trouble", () => {
    const bare = scene({ query: 0 });
    delete bare.trace.stats;
    delete bare.trace.align;
    for (const each of TOURS)
      for (const task of each.tasks) {
        expect(() => (typeof task.ask === "string" ? task.ask : task.ask(bare))).not.toThrow();
        expect(() => task.done(bare, bare)).not.toThrow();
        expect(() => task.told?.(bare)).not.toThrow();
      }
  });
});

describe("facts", () => {
  const linked = (...links: [number, number, number][]): Trace => ({ ...numbers, align: { method: "mean", links, words: [] } });

  test("ribbons cross when the order is another, and the clearest pair is told", () => {
    expect(crossing(linked([0, 0, 0.9], [1, 1, 0.9]))).toBeNull();
    expect(crossing(linked([2, 0, 0.9], [2, 1, 0.8]))).toBeNull();
    expect(crossing(linked([3, 0, 0.9], [1, 1, 0.4], [0, 2, 0.8]))).toEqual([[3, 0], [0, 2]]);
    expect(crossing(linked([1, 0, 0.2], [3, 0, 0.9], [1, 1, 0.5]))).toEqual([[3, 0], [1, 1]]);
  });

  test("the end of a text crosses nothing", () => {
    const [end, last] = [numbers.source.tokens.length - 1, numbers.target.tokens.length - 1];
    expect(numbers.source.tokens[end]!.piece).toBe("</s>");
    expect(crossing(linked([end, 0, 0.9], [1, 1, 0.9], [0, last, 0.9]))).toBeNull();
  });

  test("numbers are said as they are", () => {
    expect([signed(-2.345), signed(0.5), signed(-0.001), signed(-0.0011, 3)]).toEqual(["−2.35", "+0.50", "0.00", "−0.001"]);
    expect([0, -0.001, -0.693, -9].map(shareOf)).toEqual(["100 %", "> 99 %", "50 %", "< 1 %"]);
  });

  test("what was stored is read with care", () => {
    expect(remembered('{"tokens": 2, "beam": 4, "heads": 99, "masks": -1, "cross": "x", "nobody": 1}')).toEqual({ tokens: 2, beam: 4 });
    for (const broken of [null, "", "{", "null", "[]", "3"]) expect(remembered(broken)).toEqual({});
  });
});
