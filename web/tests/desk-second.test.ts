/** Kernels of the panels around the desk: beam tree, stages and formulas, positions, time-lapse, compare. */
import { existsSync, readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { comparable, difference, locked, matchedBy, movedBy } from "../src/desk/compare";
import { mathml, termsOf } from "../src/desk/formulas";
import { expected, experimentOf, formulaOf, fourOf, likeness, lineOf, periodOf, rotations, sinusoids, written } from "../src/desk/positions";
import { columnOf, numpyOf, products, rowOf, statisticsOf, telling, weighing } from "../src/desk/products";
import { attentionOf, stageNamed, stagesOf } from "../src/desk/stages";
import { coursesOf, mostChanged, rangeOf, sparkline, stepName, type Moment } from "../src/desk/timelapse";
import { Matrix, type Trace } from "../src/desk/trace";
import { explains, grow, layoutTree, moved, normalized, pathTo, penaltyOf, textOf, widthOf, type Branch } from "../src/desk/tree";

/** branch(3, 1, "▁Katze", -0.2): number 3, child of 1. Kept unless it begins with "x". */
function branch(n: number, p: number, piece: string, lp: number, more: Partial<Branch> = {}): Branch {
  return { n, p, t: 0, id: n, piece, lp, cum: lp, kept: 1, done: 0, ...more };
}

/** A search of width 2: "Die Katze" wins over "Eine Katze"; at each step others are let go. */
const BEAM: Branch[] = [
  branch(0, -1, "<s>", 0),
  branch(1, 0, "▁Die", -0.4, { t: 1 }),
  branch(2, 0, "▁Eine", -0.3, { t: 1 }),
  branch(3, 0, "▁Das", -3, { t: 1, kept: 0 }),
  branch(4, 1, "▁Katze", -0.1, { t: 2, cum: -0.5 }),
  branch(5, 1, "▁Kat", -3, { t: 2, cum: -3.4, kept: 0 }),
  branch(6, 2, "▁Katze", -0.6, { t: 2, cum: -0.9 }),
  branch(7, 2, "▁Katzen", -3, { t: 2, cum: -3.3, kept: 0 }),
  branch(8, 4, "</s>", -0.1, { t: 3, cum: -0.6, done: 1 }),
  branch(9, 6, "</s>", -0.2, { t: 3, cum: -1.1, done: 1 }),
];

describe("the beam tree", () => {
  const tree = layoutTree(BEAM, { winner: 8 });
  const at = (n: number) => tree.nodes.find((node) => node.n === n)!;

  test("the winner is one straight line on top, and time goes to the right", () => {
    expect([1, 4, 8].map((n) => at(n).y)).toEqual(Array(3).fill(at(0).y));
    expect(Math.min(...tree.nodes.map((node) => node.y))).toBe(at(0).y);
    expect(new Set(tree.nodes.map((node) => `${node.twig.t} ${node.x}`)).size).toBe(4);
    expect(tree.columns.every((x, i) => i === 0 || x > tree.columns[i - 1]!)).toBe(true);
  });

  test("no two labels touch, and none reaches into the next column", () => {
    for (const a of tree.nodes) {
      for (const b of tree.nodes) if (a.n < b.n && a.x === b.x) expect(Math.abs(a.y - b.y)).toBeGreaterThanOrEqual(20);
      const next = tree.columns[a.twig.t + 1];
      if (next !== undefined) expect(a.x + a.width).toBeLessThan(next);
      expect(a.y).toBeLessThan(tree.height);
      expect(a.x + a.width).toBeLessThan(tree.width);
    }
  });

  test("branches never cross: whoever is above stays above, whatever the tree", () => {
    let seed = 7;
    const chance = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
    for (let round = 0; round < 20; round++) {
      const made: Branch[] = [branch(0, -1, "<s>", 0)];
      let front = [0];
      for (let t = 1; t < 9; t++) {
        const grown: number[] = [];
        for (const p of front)
          for (let i = 0; i < 1 + Math.floor(chance() * 4); i++) {
            const kept = chance() < 0.4 ? 1 : 0;
            made.push(branch(made.length, p, "x", -chance(), { t, kept, cum: -chance() * t }));
            if (kept && grown.length < 4) grown.push(made.length - 1);
          }
        front = grown.length ? grown : [made.length - 1];
      }
      const laid = layoutTree(made);
      expect(laid.nodes).toHaveLength(made.length);
      const places = new Set(laid.nodes.map((node) => `${node.x} ${node.y}`));
      expect(places.size).toBe(made.length);
      for (const a of laid.nodes)
        for (const b of laid.nodes) {
          const [p, q] = [a.twig.parent, b.twig.parent];
          if (p && q && p !== q && a.twig.t === b.twig.t && p.row < q.row) expect(a.twig.row).toBeLessThan(b.twig.row);
        }
    }
  });

  test("the way to the winner is drawn last, so that nothing covers it", () => {
    expect(tree.edges.slice(-3).map((edge) => edge.to)).toEqual([1, 4, 8]);
    expect(tree.edges.findIndex((edge) => edge.twig.kept)).toBe(tree.edges.filter((edge) => !edge.twig.kept).length);
  });

  test("two nodes for one prefix are drawn once, kept if one of them was", () => {
    const twice = [...BEAM, branch(20, 1, "▁Katze", -0.1, { t: 2, id: 4, kept: 0 }), branch(21, 20, "▁auf", -2, { t: 3, kept: 0 })];
    const grown = grow(twice, 8);
    expect(grown).toHaveLength(BEAM.length + 1);
    const katze = grown.find((twig) => twig.n === 4)!;
    expect(katze.kept).toBe(1);
    expect(katze.children.map((twig) => twig.n)).toEqual([8, 21]);
  });

  test("a replay shows no more than there was at that step, and moves nothing", () => {
    const early = layoutTree(BEAM, { winner: 8, step: 1 });
    expect(early.nodes.map((node) => node.n)).toEqual([0, 1, 3, 2]); // from the top
    for (const node of early.nodes) expect([node.x, node.y]).toEqual([at(node.n).x, at(node.n).y]);
    expect([early.width, early.height]).toEqual([tree.width, tree.height]);
    expect(early.edges.map((edge) => edge.to).toSorted()).toEqual([1, 2, 3]);
  });

  test("what was let go can be left out, but never a finished hypothesis", () => {
    const kept = layoutTree([...BEAM, branch(10, 4, "▁x", -9, { t: 3, kept: 0, done: 1 })], { winner: 8, pruned: false });
    expect(kept.nodes.map((node) => node.n).sort((a, b) => a - b)).toEqual([0, 1, 2, 4, 6, 8, 9, 10]);
  });

  test("the way of greedy search is the most probable piece at every step, also where the beam went elsewhere", () => {
    const grown = grow(BEAM, 8);
    expect(grown.filter((twig) => twig.greedy).map((twig) => twig.n)).toEqual([0, 2, 6, 9]);
    expect(grown.filter((twig) => twig.best).map((twig) => twig.n)).toEqual([0, 1, 4, 8]);
  });

  test("the text so far is words, and the forced prefix is ids without the start", () => {
    const end = grow(BEAM, 8).find((twig) => twig.n === 8)!;
    expect(pathTo(end).map((twig) => twig.id)).toEqual([1, 4, 8]);
    expect(textOf(pathTo(end).map((twig) => twig.piece))).toBe("Die Katze");
    expect(textOf(["▁ein", "und", "zwanzig", "▁.", "</s>"])).toBe("einundzwanzig .");
    expect(textOf(["▁ein", "▁", "<0xF0>", "<0x9F>", "<0x8E>", "<0xAD>", "!", "</s>"])).toBe("ein 🎭!");
  });

  test("the score is normalized as the paper says, and only where that gives what the search told", () => {
    expect(normalized(-3, 1, 0.6)).toBe(-3);
    expect(normalized(-3, 7, 1)).toBe(-1.5);
    expect(explains([{ logp: -3, score: -1.5, pieces: 7 }], 1)).toBe(true);
    expect(explains([{ logp: -3, score: -1.4, pieces: 7 }], 1)).toBe(false);
    expect(explains([], 1)).toBe(false);
  });

  test("arrows go to parents, children and neighbours, and stay where there is nothing", () => {
    expect(moved(tree, 4, "parent")).toBe(1);
    expect(moved(tree, 1, "child")).toBe(4);
    expect(moved(tree, 1, "down")).toBe(3);
    expect(moved(tree, 3, "up")).toBe(1);
    expect(moved(tree, 0, "parent")).toBe(0);
    expect(moved(tree, 2, "down")).toBe(2);
    expect(moved(tree, 0, "last")).toBe(8);
    expect(moved(layoutTree(BEAM, { winner: 8, step: 1 }), 1, "child")).toBe(1);
  });

  test("the penalty that a model chose itself follows from what its search told", () => {
    const told = [1, 4].map((pieces) => ({ logp: -3, pieces, score: Number(normalized(-3, pieces, 0.8).toFixed(4)) }));
    expect(penaltyOf(told)).toBeCloseTo(0.8, 3);
    expect(explains(told, penaltyOf(told)!)).toBe(true);
    expect(penaltyOf(told.slice(0, 1))).toBeNull();
  });

  test("a long search stays flat: rows grow with what stands side by side, not with the steps", () => {
    const long: Branch[] = [branch(0, -1, "<s>", 0)];
    let spine = 0;
    for (let t = 1; t <= 48; t++) {
      const best = long.length;
      for (let i = 0; i < 4; i++) long.push(branch(best + i, spine, "▁piece", -i, { t, kept: i ? 0 : 1 }));
      spine = best;
    }
    expect(layoutTree(long, { winner: spine }).height).toBeLessThan(5 * 24 + 40);
  });

  test("what was let go early stands beside where it was, not below all that came later", () => {
    const wide = layoutTree([...BEAM, branch(30, 6, "▁a", -1, { t: 3, kept: 0 }), branch(31, 6, "▁b", -1, { t: 3, kept: 0 })], { winner: 8 });
    const row = (n: number): number => wide.nodes.find((node) => node.n === n)!.twig.row;
    expect(row(3)).toBe(1); // one row below the winner, and the branch of "Eine" below it
    expect(row(2)).toBeGreaterThan(row(3));
  });

  test("an empty search is an empty picture; labels of other scripts have their width", () => {
    expect(layoutTree([]).nodes).toEqual([]);
    expect(widthOf("猫猫")).toBe(26);
    expect(widthOf("e\u0301")).toBe(widthOf("e"));
  });
});

describe("formulas", () => {
  test("a line of text becomes MathML", () => {
    expect(mathml(termsOf("Q K^T"))).toBe("<mi>Q</mi><msup><mi>K</mi><mi>T</mi></msup>");
    expect(mathml(termsOf("frac{a}{sqrt{d_k}}"))).toBe("<mfrac><mi>a</mi><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></mfrac>");
    expect(mathml(termsOf("x_i^{2 i}"))).toBe("<msubsup><mi>x</mi><mi>i</mi><mrow><mn>2</mn><mi>i</mi></mrow></msubsup>");
    expect(mathml(termsOf('"a<b" - 1'))).toBe("<mtext>a&lt;b</mtext><mo>−</mo><mn>1</mn>");
  });

  test("what is not closed or binds nothing is an error, not a wrong formula", () => {
    for (const wrong of ["sqrt{d", "frac{a}", "a}", "x^", "_k"]) expect(() => termsOf(wrong), wrong).toThrow();
  });
});

const MODEL = { enc_layers: 2, dec_layers: 3, heads: 4, norm: "pre", positions: "sinusoidal" };

describe("the stages", () => {
  const stages = stagesOf(MODEL);
  const names = stages.map((stage) => stage.name);

  test("all are there, once, in the order in which the model makes them", () => {
    expect(new Set(names).size).toBe(names.length);
    expect(names).toHaveLength(6 + 2 * 12 + 1 + 4 + 3 * 22 + 4);
    const order = ["text", "src.ids", "src.embed", "pos.enc", "enc.in", "enc.0.q", "enc.0.scores", "enc.0.scaled", "enc.0.masked", "enc.0.attn", "enc.0.heads", "enc.0.concat", "enc.0.add_norm", "enc.0.ffn", "enc.0.out", "enc.1.q", "memory", "tgt.embed", "dec.in", "dec.2.self.attn", "dec.2.cross.q", "dec.2.cross.attn", "dec.2.ffn", "dec.2.out", "decoded", "logits", "probs", "beam"];
    expect(order.map((name) => names.indexOf(name))).toEqual(order.map((name) => names.indexOf(name)).toSorted((a, b) => a - b));
    expect(order.every((name) => names.includes(name))).toBe(true);
  });

  test.each([MODEL, { ...MODEL, norm: "post" }, { ...MODEL, positions: "learned" }, { ...MODEL, positions: "rotary" }])("every formula of %o can be drawn", (model) => {
    for (const stage of stagesOf(model)) for (const formula of stage.formula.split(" ; ")) expect(() => termsOf(formula), stage.name).not.toThrow();
  });

  test("what is made of other stages names only stages that came before", () => {
    for (const norm of ["pre", "post"]) {
      const seen = new Set<string>();
      for (const stage of stagesOf({ ...MODEL, norm })) {
        for (const [, name] of (stage.python ?? "").matchAll(/trace\["([^"]+)"\]/g)) expect(seen, `${stage.name} needs ${name}`).toContain(name);
        seen.add(stage.name);
      }
    }
  });

  test("the code that is named is there", () => {
    for (const { file, symbol } of stages) {
      expect(existsSync(`../${file}`), file).toBe(true);
      const code = readFileSync(`../${file}`, "utf8");
      for (const part of symbol.split(".")) expect(code, `${file} ${symbol}`).toMatch(new RegExp(`(class|def) ${part}\\b`));
    }
  });

  test("the norm stands where this model has it", () => {
    const of = (norm: string, name: string): string => stagesOf({ ...MODEL, norm }).find((stage) => stage.name === name)!.formula;
    expect(of("pre", "enc.0.add_norm")).not.toMatch(/Norm/);
    expect(of("pre", "enc.0.q")).toMatch(/Norm/);
    expect(of("post", "enc.0.add_norm")).toMatch(/^Norm/);
    expect(of("post", "enc.0.q")).not.toMatch(/Norm/);
  });

  test("short names are the same stages, and each knows its attention", () => {
    expect(["cross.2.attn", "dec.2.attn", "enc.0.attn", "dec.2.ffn", "dec.2.cross.q"].map(stageNamed)).toEqual(["dec.2.cross.attn", "dec.2.self.attn", "enc.0.attn", "dec.2.ffn", "dec.2.cross.q"]);
    expect(attentionOf("dec.2.cross.attn")).toEqual({ at: "dec.2.cross", kind: "cross", layer: 2, title: "attn" });
    expect(attentionOf("enc.1.scores")).toMatchObject({ kind: "enc", layer: 1 });
    expect(attentionOf("dec.0.self.q")).toMatchObject({ kind: "dec", at: "dec.0.self" });
    for (const name of ["enc.1.ffn", "dec.0.out", "memory", "enc.in"]) expect(attentionOf(name)).toBeNull();
  });

  test("only the decoder's own attention is causal", () => {
    expect(stages.filter((stage) => stage.causal).every((stage) => /^dec\.\d\.self\./.test(stage.name))).toBe(true);
    expect(stages.some((stage) => stage.causal)).toBe(true);
  });
});

describe("one number", () => {
  test("a score is the sum of its products", () => {
    expect(products([1, 2, -1], [3, 4, 5])).toEqual({ left: [1, 2, -1], right: [3, 4, 5], products: [3, 8, -5], sum: 6 });
    expect(() => products([1], [1, 2])).toThrow(RangeError);
  });

  test("a weight is exp over the sum of its row, and hidden cells are 0", () => {
    const row = [2, 1, -Infinity];
    const made = weighing([1, 1, 1, 1], [1, 1, 1, 1], row, 0);
    expect(made.sum).toBe(4);
    expect(made.scaled).toBe(2);
    expect(made.weight).toBeCloseTo(Math.E / (Math.E + 1), 12);
    expect(made.rowSum).toBeCloseTo(1 + 1 / Math.E, 12);
    expect(weighing([1], [1], row, 2)).toMatchObject({ weight: 0, hidden: true, exp: 0 });
    const all = [0, 1, 2].map((column) => weighing([1], [1], row, column).weight);
    expect(all.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
    expect(weighing([1], [1], [900, 899], 0).weight).toBeCloseTo(Math.E / (Math.E + 1), 12); // exp(900) alone is infinite
  });

  const matrix = new Matrix(2, 3, new Float32Array([1, 2, 2, -1, 0, -Infinity]));

  test("statistics leave out what is hidden", () => {
    const told = statisticsOf(matrix);
    expect(told).toMatchObject({ count: 5, hidden: 1, mean: 0.8, least: -1, most: 2 });
    expect(told.std).toBeCloseTo(Math.sqrt(2 - 0.64), 6);
    expect(told.norms).toEqual([3, 1]);
    expect(rowOf(matrix, 1)[0]).toBe(-1);
    expect(columnOf(matrix, 1)).toEqual([2, 0]);
  });

  test("of a large vocabulary the columns are drawn that any row thought of", () => {
    const wide = new Matrix(2, 6, new Float32Array([0, 9, 0, 8, 0, 0, 0, 0, 0, 0, 7, 6]));
    expect(telling(wide, 4)).toEqual([1, 3, 4, 5]);
    expect(telling(wide, 3)).toEqual([1, 3, 4]);
    expect(telling(wide, 6)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("numbers can be pasted into Python", () => {
    expect(numpyOf(matrix, "a")).toBe("a = np.array([\n    [1, 2, 2],\n    [-1, 0, -np.inf],\n], dtype=np.float32)  # [2, 3]");
  });
});

describe("positions", () => {
  test("sinusoids are those of the paper", () => {
    const table = sinusoids(5, 8);
    expect(table.at(0, 0)).toBe(0);
    expect(table.at(0, 1)).toBe(1);
    expect(table.at(3, 4)).toBeCloseTo(Math.sin(3 / 10000 ** (4 / 8)), 6);
    expect(table.at(3, 5)).toBeCloseTo(Math.cos(3 / 10000 ** (4 / 8)), 6);
    expect(sinusoids(5, 8, "halves").at(3, 2)).toBeCloseTo(table.at(3, 4), 6);
    expect(sinusoids(5, 8, "tensor2tensor").at(3, 3)).toBeCloseTo(Math.sin(3 / 10000), 6);
  });

  test("which formula a table follows is seen from its numbers, and a shuffled one follows none", () => {
    expect(formulaOf(sinusoids(6, 8))).toEqual({ layout: "interleaved", offset: 0 });
    expect(formulaOf(sinusoids(6, 8, "tensor2tensor", 2))).toEqual({ layout: "tensor2tensor", offset: 2 });
    expect(formulaOf(sinusoids(6, 8, "halves", 1))).toEqual({ layout: "halves", offset: 1 });
    const shuffled = sinusoids(6, 8);
    shuffled.data.copyWithin(0, 16, 24);
    expect(formulaOf(shuffled)).toBeNull();
    expect(formulaOf(sinusoids(6, 8, "interleaved", 5))).toBeNull();
    expect(formulaOf(sinusoids(6, 8, "interleaved", 5), 5)).toEqual({ layout: "interleaved", offset: 5 });
    expect(formulaOf(new Matrix(6, 8, new Float32Array(48)))).toBeNull();
    expect(formulaOf(new Matrix(1, 2, new Float32Array([0, 1])))).toBeNull();
  });

  test("how alike two places are depends on their distance alone", () => {
    const alike = likeness(sinusoids(7, 16));
    expect(alike.at(3, 3)).toBeCloseTo(8, 4);
    expect(alike.at(0, 2)).toBeCloseTo(alike.at(4, 6), 4);
    expect(alike.at(0, 2)).toBeCloseTo(alike.at(2, 0), 6);
    expect(alike.at(0, 1)).toBeGreaterThan(alike.at(0, 3));
    const turned = rotations(4, 8);
    expect([turned.rows, turned.columns]).toEqual([4, 4]);
    expect(turned.at(2, 0)).toBeCloseTo(Math.cos(2), 6);
  });

  test("a column repeats itself after its period", () => {
    expect(periodOf(0, 512, "interleaved")).toBeCloseTo(2 * Math.PI, 9);
    expect(periodOf(1, 512, "interleaved")).toBeCloseTo(2 * Math.PI, 9);
    expect(periodOf(256, 512, "interleaved")).toBeCloseTo(2 * Math.PI * 100, 6);
    expect(periodOf(256, 512, "halves")).toBeCloseTo(2 * Math.PI, 9);
    expect(new Set(fourOf(32)).size).toBe(4);
    expect(Math.max(...fourOf(2))).toBeLessThan(2);
  });

  test("a line goes from edge to edge, high values at the top", () => {
    expect(lineOf(new Matrix(3, 1, new Float32Array([-1, 0, 1])), 0, { width: 100, height: 20 })).toBe("0,20 50,10 100,0");
  });

  test("experiments are written as the server reads them", () => {
    for (const text of ["normal", "zero", "shuffle:3", "shift:4"]) expect(written(experimentOf(text))).toBe(text);
    expect(experimentOf("nonsense:1").kind).toBe("normal");
    for (const text of ["shift:x", "shift:-4"]) expect(experimentOf(text).kind).toBe("normal"); // nothing stands before the first place
    expect(expected({ kind: "shift", number: 2 }, "rotary")).toMatch(/nothing should change/);
    expect(expected({ kind: "shift", number: 2 }, "sinusoidal")).not.toMatch(/nothing should change/);
  });
});

function probe(step: number, heads: Record<string, number>): Moment {
  const stats = { heads: Object.entries(heads).map(([id, entropy]) => ({ id, entropy, diagonal: 0, end_mass: 0, gate: 1, importance: null })) };
  return { step, trace: { stats } as unknown as Trace };
}

describe("time-lapse", () => {
  const moments = [probe(100, { "enc.0.0": 3, "cross.0.0": 2 }), probe(200, { "enc.0.0": 2.9 }), probe(400, { "enc.0.0": 2.5, "cross.0.0": 0.5 })];

  test("each head has its course, with gaps where nothing was saved", () => {
    const courses = coursesOf(moments, "entropy");
    expect(courses.find((course) => course.id === "cross.0.0")).toEqual({ id: "cross.0.0", values: [2, null, 0.5], first: 2, last: 0.5 });
    expect(coursesOf(moments, "entropy", "enc").map((course) => course.id)).toEqual(["enc.0.0"]);
    expect(mostChanged(courses)?.id).toBe("cross.0.0");
    expect(rangeOf(courses)).toEqual([0, 3]);
    expect(rangeOf([])).toEqual([0, 1]);
  });

  test("x is the step of training, not the number of the save; a gap lifts the pen", () => {
    const box = { width: 300, height: 10 };
    expect(sparkline([100, 200, 400], [1, 0, 1], [0, 1], box)).toBe("M0 0L100 10L300 0");
    expect(sparkline([100, 200, 400], [1, null, 1], [0, 1], box)).toBe("M0 0M300 0");
    expect(sparkline([100], [1], [0, 1], box)).toBe("M150 0");
  });

  test("steps are read in thousands", () => {
    expect([5, 1000, 1234567].map(stepName)).toEqual(["5", "1\u202f000", "1\u202f234\u202f567"]);
  });
});

describe("compare", () => {
  test("two models have nothing that could be laid side by side", () => {
    const of = (id: string, sha: string): Trace => ({ model: { id, sha } }) as unknown as Trace;
    expect([comparable(of("a", "1"), of("a", "1")), comparable(of("a", "1"), of("b", "1")), comparable(of("a", "1"), of("a", "2"))]).toEqual([true, false, false]);
  });

  test("places correspond in order, and what has no partner has none", () => {
    expect(matchedBy([1, 2, 3, 4], [1, 3, 9, 4])).toEqual({ ab: [0, null, 1, 3], ba: [0, 2, null, 3] });
    expect(matchedBy([], [1])).toEqual({ ab: [], ba: [null] });
    expect(matchedBy([5, 5], [5])).toEqual({ ab: [0, null], ba: [0] });
  });

  test("the difference is told where both have the cell, and nowhere else", () => {
    const a = new Matrix(2, 2, new Float32Array([0.5, 0.5, 1, 0]));
    const b = new Matrix(1, 3, new Float32Array([0.25, 0.25, 0.5]));
    const told = difference(a, b, [1], [0, null, 1]);
    expect([told.rows, told.columns]).toEqual([1, 3]);
    expect([...told.data]).toEqual([-0.75, Number.NaN, 0.5]);
    expect(movedBy(told)).toEqual({ shared: 2, mean: 0.625, most: 0.75, row: 0, column: 0 });
    expect(movedBy(new Matrix(1, 1, new Float32Array([Number.NaN]))).shared).toBe(0);
  });

  test("cursors are locked by piece: what the decoder reads is what it predicted, one place later", () => {
    const side = (source: number[], target: number[]): Trace =>
      ({ source: { tokens: source.map((id) => ({ id })) }, target: { inputs: ["<s>", ...target.slice(0, -1)], tokens: target.map((id) => ({ id })) } }) as unknown as Trace;
    const held = locked(side([1, 2], [7, 8, 3]), side([2], [7, 9, 3]));
    expect(held.source.ab).toEqual([null, 0]);
    expect(held.predicted.ab).toEqual([0, null, 2]);
    expect(held.read.ab).toEqual([0, 1, null]);
  });
});
