/** What the token inspector tells and changes, on a real trace; and what the page says in Python. */
import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { chancesOf, isMark, isTag, leastSure, lookedAt, pinned, probabilityOf, toggled, whatIf, wordOf } from "../src/desk/candidates";
import { recipeOf, stagesOf } from "../src/desk/stages";
import { Matrix, weights, type Trace } from "../src/desk/trace";
import { asNumpy, imports, lookup, tracing } from "../src/desk/twin";
import { START } from "../src/desk/view";

const trace = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;
const { tokens } = trace.target;

describe("a predicted piece", () => {
  test("its chances are in order, with the taken one among them exactly once", () => {
    for (let step = 0; step < tokens.length; step++) {
      const chances = chancesOf(trace, step);
      expect(chances.map((chance) => chance.probability)).toEqual(chances.map((chance) => chance.probability).toSorted((a, b) => b - a));
      expect(chances.filter((chance) => chance.taken).map((chance) => chance.id)).toEqual([tokens[step]!.id]);
      expect(chances.reduce((sum, chance) => sum + chance.probability, 0)).toBeLessThanOrEqual(1.001);
    }
    const rare = structuredClone(trace);
    rare.target.tokens[0]!.id = 99999;
    rare.target.tokens[0]!.logp = -20;
    expect(chancesOf(rare, 0).at(-1)).toMatchObject({ id: 99999, taken: true });
    expect(chancesOf(trace, 999)).toEqual([]);
  });

  test("one begins where the model was least sure", () => {
    expect(tokens[leastSure(trace)]!.logp).toBe(Math.min(...tokens.map((token) => token.logp)));
  });

  test("what if: everything before stays, the other piece follows, and nothing after is forced", () => {
    expect(whatIf(trace, 2, 77)).toEqual({ prefix: [tokens[0]!.id, tokens[1]!.id, 77], target: null, query: 2 });
    expect(whatIf(trace, 0, 77).prefix).toEqual([77]);
  });

  test("marks cannot be forced, and a lone bracket is no mark", () => {
    expect(["<2de>", "<formal>", "</s>", "<unk>", "<0xF0>", "▁a"].map(isTag)).toEqual([true, true, false, false, false, false]);
    expect(["<s>", "</s>", "<unk>", "<", "<>", "a<b>", "<0xF0>", "<0xzz>"].map(isMark)).toEqual([true, true, true, false, false, false, false, true]);
    expect(chancesOf(trace, tokens.length - 1).find((chance) => chance.piece === "</s>")?.forcible).toBe(false);
  });

  test("it looks by the head on show, else by the one that aligns, else by the last layer's mean", () => {
    const shown = lookedAt(trace, 1, "cross.0.2");
    const row = weights(trace, "cross", 0, 2);
    expect(shown.head).toBe("cross.0.2");
    expect(shown.pieces.map((looked) => looked.weight)).toEqual(shown.pieces.map((looked) => looked.weight).toSorted((a, b) => b - a));
    for (const { source, weight, piece } of shown.pieces) {
      expect(weight).toBeCloseTo(row.at(1, source), 6);
      expect(piece).toBe(trace.source.tokens[source]!.piece);
    }
    expect(`head:${lookedAt(trace, 1, "enc.0.0").head}`).toBe(trace.align!.method);
    const { align: _, ...without } = trace;
    const mean = lookedAt(without as Trace, 1, "enc.0.0");
    expect(mean.head).toBe(`cross.${trace.model.dec_layers - 1}`);
    expect(mean.pieces.reduce((sum, looked) => sum + looked.weight, 0)).toBeCloseTo(1, 1);
  });

  test("a word is hidden whole and shown again whole; marks are words of their own", () => {
    const of = (pieces: string[], words: (number | null)[]): Trace => ({ source: { tokens: pieces.map((piece, i) => ({ piece, word: words[i] })) } }) as unknown as Trace;
    const two = of(["▁a", "▁b", "c", "</s>"], [0, 1, 1, 1]);
    expect(wordOf(two, 2)).toEqual([1, 2]);
    expect(wordOf(two, 3)).toEqual([3]);
    expect(wordOf(two, 9)).toEqual([]);
    expect(toggled([0], [1, 2])).toEqual([0, 1, 2]);
    expect(toggled([0, 1, 2], [1, 2])).toEqual([0]);
    expect(toggled([1], [1, 2])).toEqual([1, 2]);
  });

  test("a step has one pin, and letting it go leaves the others", () => {
    const one = pinned([], 3, 5);
    expect(one).toEqual([{ step: 3, source: 5, layers: "*", strength: 1 }]);
    expect(pinned(pinned(one, 1, 0), 3, 2).map(({ step, source }) => [step, source])).toEqual([[1, 0], [3, 2]]);
    expect(pinned(one, 3, null)).toEqual([]);
  });

  test("what is possible is never 0 %, and what is not certain never 100 %", () => {
    expect([1, 0.9999, 0.945, 0.0272, 0.001, 0.00001, 0].map(probabilityOf)).toEqual(["100 %", "> 99.9 %", "94.5 %", "2.72 %", "0.10 %", "< 0.01 %", "0 %"]);
  });
});

describe("the same in Python", () => {
  const stages = stagesOf(trace.model);
  const named = (name: string) => stages.find((stage) => stage.name === name)!;

  test("nothing is said that is as usual, and everything that is changed", () => {
    expect(tracing(trace, START)).toBe(`trace = Translator.load("${trace.model.id}").trace("${trace.source.text}")`);
    const view = { ...START, gates: [["cross.1.2", 0]] as const, hidden: [1], prefix: [7, 8], positions: "shuffle:3", temperature: 2, pins: [{ step: 1, source: 2, layers: [0] as const, strength: 0.5 }], mode: "mean" as const, beam: 1 };
    const turned = { ...trace, model: { ...trace.model, id: "multi:en-fr", src_lang: "en", tgt_lang: "fr" } };
    expect(tracing(turned, { ...START, tags: ["formal"] })).toContain('Translator.load("multi").towards(target="fr", source="en", tags=["formal"]).trace(');
    expect(tracing(trace, view)).toMatch(/^t = Translator\.load\("format-1"\)\ntrace = t\.trace\("/);
    expect(tracing(trace, view)).toContain(
      'prefix=[7, 8], gates={"cross.1.2": 0.0}, gate_mode="mean", mask_source=[1], pins=[Pin(step=1, source=2, layers=(0,), strength=0.5)], positions="shuffle:3", temperature=2.0, search=t.settings.search.changed(beam=1))',
    );
    expect(tracing(trace, { ...START, penalty: 0 })).toContain("search=t.settings.search.changed(length_penalty=0)");
    expect(imports(view)).toMatch(/Translator\n.*Pin$/);
    expect(imports(START)).toBe("from limelight import Translator");
  });

  test("a stage is looked up by its name, a head of it by its number", () => {
    expect(lookup(named("enc.0.scores"), 2)).toBe('trace["enc.0.scores"][2]');
    expect(lookup(named("memory"), 2)).toBe('trace["memory"]');
    expect(lookup(named("probs"), 2)).toBe('trace["probs"]');
    expect(lookup(named("beam"), 2)).toBe("trace.beam");
  });

  test("copied numbers say where they come from and how they are made", () => {
    const text = asNumpy(named("enc.0.add_norm"), new Matrix(1, 2, new Float32Array([1, -Infinity])), 0, trace, START);
    expect(text).toContain('# trace["enc.0.add_norm"]\n# made of: trace["enc.in"] + trace["enc.0.concat"]\nadd_norm = np.array([\n    [1, -np.inf],');
  });

  test("of a vocabulary the columns are named, for most of them are not there", () => {
    const columns = [{ id: 7, piece: "▁a" }, { id: 9, piece: '"' }];
    const text = asNumpy(named("logits"), new Matrix(1, 2, new Float32Array([1, 2])), 0, trace, { ...START, beam: 2 }, columns);
    expect(text).toContain('# trace["logits"][:, [7, 9]]\n# columns: "▁a", "\\""\nlogits = np.array');
    for (const line of text.split("\n").slice(2, 6)) expect(line).toMatch(/^# /); // two lines of code, both of them comments
  });

  test("what is changed inside stands in the line that makes the stage", () => {
    const changed = { ...START, temperature: 2, hidden: [1, 3], gates: [["enc.0.1", 0.5]] as const, pins: [{ step: 0, source: 1, layers: [1] as const, strength: 1 }] };
    const of = (view: typeof changed, name: string) => stagesOf(trace.model, view).find((stage) => stage.name === name)!.python!;
    expect(of(changed, "enc.0.scaled")).toMatch(/ \/ 2$/);
    expect(of(changed, "enc.0.masked")).toBe('np.where(~np.isin(np.arange(trace["enc.0.scaled"].shape[-1]), [1, 3]), trace["enc.0.scaled"], -np.inf)');
    expect(of(changed, "dec.0.self.masked")).toContain("np.tri");
    expect(of(changed, "enc.0.heads")).toBe('np.array([1, 0.5, 1, 1])[:, None, None] * (trace["enc.0.attn"] @ trace["enc.0.v"])');
    expect(of(changed, "enc.1.heads")).toBe('trace["enc.1.attn"] @ trace["enc.1.v"]');
    expect(of({ ...changed, mode: "mean" as never }, "enc.0.heads")).toMatch(/ \+ \(1 - np\.array.*isfinite.* @ trace\["enc\.0\.v"\]\)$/);
    expect([of(changed, "dec.0.cross.attn"), of(changed, "dec.1.cross.attn")].map((line) => line.includes("pinned"))).toEqual([false, true]);
    expect(named("enc.0.scaled").python).toMatch(/shape\[-1\]\)$/);
  });

  test("a cell is explained by the stages that it is made of", () => {
    expect(recipeOf(named("dec.1.cross.attn"))).toEqual({ do: "weigh", q: "dec.1.cross.q", k: "dec.1.cross.k", masked: "dec.1.cross.masked" });
    expect(recipeOf(named("enc.0.heads"))).toEqual({ do: "mix", attn: "enc.0.attn", v: "enc.0.v" });
    expect(recipeOf(named("dec.in"))).toEqual({ do: "add", a: "tgt.embed", b: "pos.dec" });
    expect(recipeOf(named("enc.0.q"))).toBeNull();
    expect(recipeOf(named("logits"))).toBeNull();
  });
});
