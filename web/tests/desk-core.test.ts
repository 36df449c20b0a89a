/** The kernels of the lighting desk: numbers, addresses, dimmers, ribbons, orders. */
import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { surenessOf } from "../src/desk/confidence_bars";
import { colourOf, inkOn, luminance, rgbOf, type Palette } from "../src/desk/colours";
import { gateOf, lightOf, read, toServer, withGate, written, type Gate } from "../src/desk/gates";
import { largest, layoutHeat, maxPool, numberOf, pixelsOf, rangeOf, rowRelative, shareOf, weightRange } from "../src/desk/heat";
import { deskAction } from "../src/desk/keys";
import { sayCell } from "../src/desk/labels";
import { changesOf, dim, membersOf, mute, patternOf, solo } from "../src/desk/lights";
import { alignmentOf, merged, pathOf, placed, ribbonsOf, unitsOf } from "../src/desk/ribbon";
import { sheetOf } from "../src/desk/sheet";
import { sorted } from "../src/desk/sorting";
import { shownOf, spotOf, stageOf } from "../src/desk/spot";
import { barsOf, decode, headName, headsOf, Matrix, masked, matrixOf, weights, type Packed, type Trace } from "../src/desk/trace";
import { asksAgain, besideTrace, fromHash, isTouched, START, toHash, untouched, withText, type View } from "../src/desk/view";
import { routeOf } from "../src/lib/link";

const trace = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;

const packed = (bytes: Uint8Array, shape: number[], enc: Packed["enc"], more: Partial<Packed> = {}): Packed => ({
  shape,
  enc,
  data: Buffer.from(bytes).toString("base64"),
  ...more,
});
const matrix = (rows: number[][]): Matrix => new Matrix(rows.length, rows[0]!.length, Float32Array.from(rows.flat()));

describe("packed numbers", () => {
  test("bytes are multiples of the scale", () => {
    expect([...decode(packed(Uint8Array.of(0, 51, 255), [3], "u8", { scale: 1 / 255 }))]).toEqual([0, expect.closeTo(0.2, 6), 1]);
  });

  test("halves are read as IEEE 754 says, with infinity and the smallest of them", () => {
    const bits = Uint16Array.of(0x3c00, 0xc000, 0x3555, 0x0001, 0xfc00, 0x7bff);
    expect([...decode(packed(new Uint8Array(bits.buffer), [6], "f16"))]).toEqual([1, -2, expect.closeTo(0.33325, 5), 2 ** -24, -Infinity, 65504]);
    expect(decode(packed(new Uint8Array(Uint16Array.of(0x7e00).buffer), [1], "f16"))[0]).toBeNaN();
  });

  test("floats and lists are as they are, and null in a list is minus infinity", () => {
    expect([...decode(packed(new Uint8Array(Float32Array.of(1.5, -Infinity).buffer), [2], "f32"))]).toEqual([1.5, -Infinity]);
    expect([...decode({ shape: [2], enc: "json", data: [0.5, null as unknown as number] })]).toEqual([0.5, -Infinity]);
  });

  test("a head is cut out of all heads, and its rows sum to 1", () => {
    const [layers, heads, rows, columns] = trace.attn.cross.shape as [number, number, number, number];
    const all = decode(trace.attn.cross);
    const head = weights(trace, "cross", layers - 1, heads - 2);
    expect([head.rows, head.columns]).toEqual([rows, columns]);
    const begin = ((layers - 1) * heads + heads - 2) * rows * columns;
    expect(head.data).toEqual(all.subarray(begin, begin + rows * columns));
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let column = 0; column < columns; column++) sum += head.at(row, column);
      expect(Math.abs(sum - 1)).toBeLessThanOrEqual(columns / 510);
    }
    expect(() => weights(trace, "cross", layers, 0)).toThrow(RangeError);
  });

  test("what is masked follows from rules and not from zeros", () => {
    expect(masked(trace, "dec", 0, 1)).toBe(true);
    expect(masked(trace, "dec", 1, 1)).toBe(false);
    expect(masked(trace, "cross", 0, 2)).toBe(false);
    const hidden: Trace = { ...trace, source: { ...trace.source, masked: [2] } };
    expect([masked(hidden, "cross", 0, 2), masked(hidden, "enc", 5, 2), masked(hidden, "dec", 5, 2)]).toEqual([true, true, false]);
  });

  test("of a tensor with heads one is taken, of a plain one all", () => {
    const data = Float32Array.from({ length: 12 }, (_, i) => i);
    expect([...matrixOf({ shape: [2, 2, 3], data }, 1).data]).toEqual([6, 7, 8, 9, 10, 11]);
    expect(matrixOf({ shape: [4, 3], data }, 1).rows).toBe(4);
  });
});

describe("the address", () => {
  const chosen: View = {
    ...START,
    model: "en-de",
    text: "A cat & a dog, 50 % #1",
    beam: 8,
    penalty: 1,
    prefix: [77, 903],
    gates: [["cross.5.2", 0], ["enc.0.*", 0.4], ["cross.*.*", 0.25]],
    mode: "mean",
    solo: ["dec.1.3"],
    hidden: [4, 0],
    pins: [{ step: 9, source: 10, layers: "*", strength: 1 }, { step: 0, source: 1, layers: [1, 2], strength: 0.5 }],
    positions: "shift:3",
    temperature: 0.5,
    kind: "dec",
    layer: 5,
    head: 0,
    query: 0,
    stage: "masked",
    align: "mean",
    keep: 0.9,
    units: "words",
    sort: "entropy",
    scale: "log",
    palette: "greys",
    relative: true,
    panel: "stepper",
    compare: "another one",
    tags: ["formal", "ui"],
    beside: "multi:en-fr",
    stepper: "enc.0.scores",
    target: "Eine Katze",
    trace: "t_1",
    theme: "dark",
  };

  test("carries everything there and back", () => {
    expect(fromHash(routeOf(toHash(chosen)).values)).toEqual(chosen);
    expect(fromHash(routeOf(toHash(START)).values)).toEqual(START);
    expect(toHash(START)).toBe("#/x");
  });

  test("covers every choice, so that none is forgotten when one is added", () => {
    const same = (Object.keys(START) as (keyof View)[]).filter((key) => JSON.stringify(chosen[key]) === JSON.stringify(START[key]));
    expect(same).toEqual([]);
  });

  test("in a file that carries the trace says nothing that is in the trace", () => {
    const { text, target, trace: id, compare, beside, ...rest } = besideTrace(chosen);
    expect([text, target, id, compare, beside]).toEqual(["", null, null, "", null]);
    expect(chosen).toMatchObject(rest);
  });

  test("is written as people read it", () => {
    expect(toHash({ ...START, text: "A cat", gates: [["cross.5.2", 0], ["enc.0.*", 0.4]] })).toBe("#/x?s=A+cat&off=c5.2,e0.*:0.4");
  });

  test("that makes no sense leaves the start as it is", () => {
    const odd = "b=0&lp=x&k=both&l=-1&h=1.5&off=q1.1,c1.1:7,c1,&solo=c*.*&hide=a,-1&pin=x,1>&ex=shift:-3&kp=2&st=&at=0&th=pink";
    expect(fromHash(new URLSearchParams(odd))).toEqual(START);
  });

  test("another text keeps the dimmers and forgets what was said of its pieces", () => {
    const after = withText(chosen, "new");
    expect([after.text, after.gates, after.prefix, after.hidden, after.pins, after.query, after.target]).toEqual(["new", chosen.gates, [], [], [], null, null]);
  });

  test("what is only looked at is no question to the server, and a reset takes all changes back", () => {
    expect(asksAgain(START, { ...START, kind: "enc", layer: 1, stage: "masked", sort: "entropy", query: 3 })).toBe(false);
    expect(asksAgain(START, { ...START, gates: [["enc.0.0", 0]] })).toBe(true);
    expect(isTouched(chosen)).toBe(true);
    expect(isTouched(untouched(chosen))).toBe(false);
    expect(untouched(chosen).text).toBe(chosen.text);
  });
});

describe("dimmers", () => {
  test("later patterns win, and what is not named is full", () => {
    const gates: Gate[] = [["cross.*.*", 0], ["cross.1.*", 0.5], ["cross.1.2", 1]];
    expect(["cross.0.0", "cross.1.0", "cross.1.2", "enc.0.0"].map((id) => gateOf(gates, id))).toEqual([0, 0.5, 1, 1]);
    expect(gateOf([["*", 0.1]], "enc.3.3")).toBe(0.1);
  });

  test("a pattern forgets what it covers, and full light that changes nothing is not written down", () => {
    const gates = withGate(withGate([], "cross.1.2", 0), "enc.0.1", 0.3);
    expect(withGate(gates, "cross.1.*", 0)).toEqual([["enc.0.1", 0.3], ["cross.1.*", 0]]);
    expect(withGate(gates, "cross.1.2", 1)).toEqual([["enc.0.1", 0.3]]);
    expect(withGate([["cross.*.*", 0]], "cross.1.2", 1)).toEqual([["cross.*.*", 0], ["cross.1.2", 1]]);
    expect(withGate([["cross.1.*", 0]], "cross.*.2", 1)).toEqual([["cross.1.*", 0], ["cross.*.2", 1]]);
    expect(withGate([], "enc.0.0", 7)).toEqual([]);
  });

  test("solo is the complement of its kind muted, on the page and for the server", () => {
    const { model } = trace;
    const alone = ["cross.1.2"];
    const muted = headsOf(model, "cross").filter((id) => id !== "cross.1.2").map((id): Gate => [id, 0]);
    const sent = Object.entries(toServer([], alone)) as Gate[];
    for (const id of membersOf(model, "*")) {
      expect(lightOf([], alone, id)).toBe(gateOf(muted, id));
      expect(gateOf(sent, id)).toBe(gateOf(muted, id));
    }
  });

  test("a soloed head keeps its own dimmer, and other kinds theirs", () => {
    const gates: Gate[] = [["cross.1.2", 0.5], ["enc.0.0", 0.2]];
    const sent = Object.entries(toServer(gates, ["cross.1.2"])) as Gate[];
    for (const id of membersOf(trace.model, "*")) expect(gateOf(sent, id)).toBe(lightOf(gates, ["cross.1.2"], id));
  });

  test("the order that is sent is the order that wins", () => {
    const gates: Gate[] = [["cross.1.2", 0], ["cross.*.*", 0.5], ["cross.1.2", 1]];
    expect(Object.keys(toServer(gates, []))).toEqual(["cross.*.*", "cross.1.2"]);
  });

  test("the grammar of the address goes there and back", () => {
    const gates: Gate[] = [["*", 0.5], ["dec.10.*", 0], ["cross.0.11", 0.35]];
    expect(written(gates)).toBe("*:0.5,d10.*,c0.11:0.35");
    expect(read(written(gates))).toEqual(gates);
  });

  test("a hand mutes and unmutes, dims within bounds, and says what it did", () => {
    const { model } = trace;
    const first = mute(START, model, "cross.1.2");
    expect(first).toEqual({ patch: { gates: [["cross.1.2", 0]] }, what: "mute cross 1·2" });
    expect(mute({ ...START, ...first.patch }, model, "cross.1.2")).toEqual({ patch: { gates: [] }, what: "unmute cross 1·2" });
    expect(mute({ ...START, ...first.patch }, model, "cross.1.*").patch.gates).toEqual([["cross.1.*", 0]]);
    expect(dim(START, "enc.0.*", 1.4).patch.gates).toEqual([]);
    expect(dim(START, "enc.0.*", 0.333)).toEqual({ patch: { gates: [["enc.0.*", 0.33]] }, what: "dim enc layer 0 to 33 %" });
    expect(solo(START, model, "enc.1.*").patch.solo).toEqual(headsOf(model, "enc").filter((id) => id.startsWith("enc.1.")));
    expect(solo({ ...START, solo: ["enc.1.1", "dec.0.0"] }, model, "enc.1.1").patch.solo).toEqual(["dec.0.0"]);
  });

  test("scopes name a head, its layer, its column and its kind", () => {
    const head = { kind: "cross", layer: 5, head: 2 } as const;
    expect((["head", "layer", "column", "kind"] as const).map((scope) => patternOf(scope, head))).toEqual(["cross.5.2", "cross.5.*", "cross.*.2", "cross.*.*"]);
  });

  test("all changes are told in words", () => {
    const view: View = { ...START, gates: [["cross.1.2", 0], ["enc.0.*", 0.4]], hidden: [1], positions: "shuffle:7", pins: [{ step: 0, source: 1, layers: "*", strength: 1 }] };
    expect(changesOf(view, ["▁A", "▁cat"], ["▁Eine"])).toEqual([
      "muted: cross 1·2",
      "dimmed: enc layer 0 at 40 %",
      "hidden: cat",
      "light of “Eine” from “cat”",
      "positions: shuffle 7",
    ]);
    expect(changesOf(START, [], [])).toEqual([]);
  });
});

describe("heat", () => {
  test("a model that has hardly learned is not one dark rectangle: colours end where its light does, and at 1 for all others", () => {
    const even = new Matrix(2, 4, Float32Array.of(0.25, 0.25, 0.24, 0.26, 0.25, 0.25, 0.25, 0.25));
    expect(weightRange(largest([even]))).toEqual([0, Math.fround(0.26)]);
    expect(weightRange(0.51)).toEqual([0, 1]);
    expect(weightRange(largest([]))).toEqual([0, 1]);
  });

  test("weights are shown from 0 to 1, other numbers between their ends, differences about 0", () => {
    expect(rangeOf(matrix([[0.1, 0.4]]), "cividis")).toEqual([0, 1]);
    expect(rangeOf(matrix([[-2, -Infinity, 6]]), "cividis")).toEqual([-2, 6]);
    expect(rangeOf(matrix([[-2, 6]]), "diverging")).toEqual([-6, 6]);
    expect(rangeOf(matrix([[-Infinity]]), "cividis")).toEqual([0, 1]);
  });

  test("scales keep the order and the ends", () => {
    for (const scale of ["linear", "sqrt", "log"] as const) {
      const shares = [0, 0.01, 0.2, 0.7, 1].map((value) => shareOf(value, [0, 1], scale));
      expect([shares[0], shares.at(-1)]).toEqual([0, 1]);
      expect(shares).toEqual([...shares].sort((a, b) => a - b));
    }
  });

  test("what is masked or no number has no colour at all, and the smallest weight has one", () => {
    const pixels = pixelsOf(matrix([[0, 1], [-Infinity, 0.5]]), "greys", [0, 1], "linear", (row, column) => row === 1 && column === 1);
    expect([3, 7, 11, 15].map((i) => pixels[i])).toEqual([255, 255, 0, 0]);
    expect([...pixels.slice(4, 7)]).toEqual(rgbOf("greys", 1));
    const { rects, width, height } = layoutHeat(matrix([[0, 1, -Infinity]]), { palette: "greys", size: 10 });
    expect([width, height, rects.map(({ fill }) => fill)]).toEqual([30, 10, [colourOf("greys", 0), colourOf("greys", 1), null]]);
    expect(rects[2]).toMatchObject({ row: 0, column: 2, x: 20, y: 0 });
  });

  test("a thumbnail never loses the brightest cell, wherever it is", () => {
    for (const at of [0, 1, 47, 48 * 24 + 13, 48 * 60 - 1]) {
      const data = new Float32Array(60 * 48);
      data[at] = 0.9;
      const small = maxPool(new Matrix(60, 48, data), 20);
      expect([small.rows, small.columns]).toEqual([20, 20]);
      expect(Math.max(...small.data)).toBeCloseTo(0.9);
      expect([...small.data].every((value) => value >= 0)).toBe(true);
    }
    const own = matrix([[1, 0]]);
    expect(maxPool(own, 20)).toBe(own);
  });

  test("on the sheet of a kind each head stands in its layer's row, pixel by pixel", () => {
    const sheet = sheetOf(trace, "cross", "viridis", 40);
    const [layer, head, row, column] = [1, 2, 3, 4];
    const own = weights(trace, "cross", layer, head);
    expect([sheet.width, sheet.height]).toEqual([4 * own.columns, 2 * own.rows]);
    const at = 4 * ((layer * sheet.rows + row) * sheet.width + head * sheet.columns + column);
    expect([...sheet.pixels.subarray(at, at + 4)]).toEqual([...rgbOf("viridis", Math.sqrt(own.at(row, column))), 255]);
    const causal = sheetOf(trace, "dec", "viridis", 40);
    expect([causal.pixels[3], causal.pixels[7]]).toEqual([255, 0]);
    expect(sheetOf(trace, "enc", "viridis", 5)).toMatchObject({ rows: 5, columns: 5, width: 20, height: 10 });
  });

  test("row by row, each row has its own brightest", () => {
    expect([...rowRelative(matrix([[0.1, 0.2], [0, 0]])).data]).toEqual([0.5, 1, 0, 0]);
  });

  test("numbers are short and true", () => {
    expect([0, 0.7134, -12.345, 0.00001, 1e6, -Infinity].map(numberOf)).toEqual(["0", "0.713", "−12.35", "1.00e−5", "1.00e+6", "−∞"]);
  });

  test("palettes grow evenly lighter or darker, and what is written on them is legible", () => {
    for (const palette of ["cividis", "viridis", "greys"] as Palette[]) {
      const lights = Array.from({ length: 33 }, (_, i) => luminance(rgbOf(palette, i / 32)));
      const up = palette !== "greys";
      for (let i = 1; i < lights.length; i++) expect(up ? lights[i]! - lights[i - 1]! : lights[i - 1]! - lights[i]!).toBeGreaterThan(0);
      for (let i = 0; i <= 32; i++) {
        const contrast = inkOn(palette, i / 32) === "#000" ? (lights[i]! + 0.05) / 0.05 : 1.05 / (lights[i]! + 0.05);
        expect(contrast).toBeGreaterThan(4.5);
      }
    }
  });

  test("a cell is said as people would", () => {
    const say = sayCell(trace, "cross", 1, 0);
    const [row, column] = [3, 2];
    const [from, to] = [trace.target.tokens[row]!.piece, trace.source.tokens[column]!.piece].map((piece) => piece.replace(/^▁/, ""));
    expect(say({ row, column }, 0.71, false)).toBe(`${from} attends to ${to}, 0.710, cross layer 1, head 0`);
    expect(say({ row, column }, 0, true)).toContain("masked");
  });
});

describe("the stage", () => {
  test("pieces become words, and the end of a sentence is no part of one", () => {
    expect(unitsOf(["▁yester", "day", "▁sat", "</s>"], [0, 0, 1, 1], "words")).toEqual([
      { text: "yesterday", pieces: [0, 1] },
      { text: "sat", pieces: [2] },
      { text: "</s>", pieces: [3] },
    ]);
    expect(unitsOf(["▁t", "<0x79>", "</s>"], [0, 0, null], "words").map(({ text }) => text)).toEqual(["ty", "</s>"]);
    expect(unitsOf(["<0xC3>", "<0xBC>", "<0xFF>"], [0, 0, 1], "words").map(({ text }) => text)).toEqual(["ü", "<0xFF>"]);
    expect(unitsOf(["▁a", "b"], [0, 0], "pieces")).toEqual([{ text: "▁a", pieces: [0] }, { text: "b", pieces: [1] }]);
  });

  test("the light on words is the sum over source pieces and the mean over target pieces, so rows still sum to 1", () => {
    const source = [{ text: "ab", pieces: [0, 1] }, { text: "c", pieces: [2] }];
    const target = [{ text: "xy", pieces: [0, 1] }];
    expect([...merged(matrix([[0.5, 0.25, 0.25], [0, 0, 1]]), source, target).data]).toEqual([0.375, 0.625]);
  });

  test("ribbons are the fewest that carry the share, the strongest first", () => {
    const rows = matrix([[0.1, 0.6, 0.3], [1, 0, 0]]);
    expect(ribbonsOf(rows, 0.75).map(({ source, target }) => [source, target])).toEqual([[1, 0], [2, 0], [0, 1]]);
    expect(ribbonsOf(rows, 0.5).map(({ source, target }) => [source, target])).toEqual([[1, 0], [0, 1]]);
    expect(ribbonsOf(rows, 1)).toHaveLength(4);
  });

  test("it aligns by the head that is named, by the mean of a layer, by the most, or by the spot", () => {
    const { layer, head } = { layer: 1, head: 0 };
    expect(trace.align!.method).toBe(`head:cross.${layer}.${head}`);
    expect(alignmentOf(trace, "auto", 0, null).data).toEqual(weights(trace, "cross", layer, head).data);
    expect(alignmentOf(trace, "spot", 0, "cross.0.3").data).toEqual(weights(trace, "cross", 0, 3).data);
    const mean = alignmentOf(trace, "mean", 0, null);
    const most = alignmentOf(trace, "max", 0, null);
    let [sum, top] = [0, 0];
    for (let h = 0; h < 4; h++) sum += weights(trace, "cross", 0, h).at(2, 1) / 4;
    for (let l = 0; l < 2; l++) for (let h = 0; h < 4; h++) top = Math.max(top, weights(trace, "cross", l, h).at(2, 1));
    expect(mean.at(2, 1)).toBeCloseTo(sum, 5);
    expect(most.at(2, 1)).toBeCloseTo(top, 5);
  });

  test("words stand one after the other, and never over each other", () => {
    for (const width of [100, 400, 2000]) {
      const places = placed([50, 80, 30], width);
      places.slice(1).forEach(({ x }, i) => expect(x).toBeGreaterThanOrEqual(places[i]!.x + places[i]!.width + 6));
      if (width >= 200) expect(places.at(-1)!.x + 30).toBeLessThanOrEqual(width);
    }
  });

  test("a ribbon goes from the middle of a word to the middle of another", () => {
    expect(pathOf({ x: 0, width: 20 }, { x: 100, width: 40 }, 90)).toBe("M10 0C10 45 120 45 120 90");
  });

  test("a word is as sure as all its pieces together, and a tie names the rival", () => {
    const token = { id: 1, piece: "a", word: 0, entropy: 1, rank: 0, margin: 3 };
    const tokens = [
      { ...token, logp: Math.log(0.5), topk: [[1, "a", Math.log(0.5)]] as [number, string, number][] },
      { ...token, id: 2, logp: Math.log(0.4), margin: 0.1, topk: [[2, "b", -0.9], [3, "▁c", -1]] as [number, string, number][] },
    ];
    const both = surenessOf({ text: "ab", pieces: [0, 1] }, tokens);
    expect([both.probability, both.percent, both.tie]).toEqual([expect.closeTo(0.2, 6), "20", "▁c"]);
    expect(surenessOf({ text: "a", pieces: [0] }, tokens).tie).toBeNull();
    expect(surenessOf({ text: "a", pieces: [0] }, [{ ...tokens[0]!, logp: -0.002 }]).percent).toBe("99");
  });
});

describe("heads", () => {
  test("stand in the order that is asked for, and none is lost", () => {
    const stats = new Map(trace.stats!.heads.map((head) => [head.id, head]));
    for (const sort of ["layer", "entropy", "diagonal", "end_mass", "importance"] as const)
      expect([...sorted(trace, "cross", sort, null)].sort()).toEqual([...headsOf(trace.model, "cross")].sort());
    const entropies = sorted(trace, "enc", "entropy", null).map((id) => stats.get(id)!.entropy);
    expect(entropies).toEqual([...entropies].sort((a, b) => a - b));
    const ends = sorted(trace, "dec", "end_mass", null).map((id) => stats.get(id)!.end_mass);
    expect(ends).toEqual([...ends].sort((a, b) => b - a));
  });

  test("that are missed most come first, and unranked ones last", () => {
    const ranks = new Map([["cross.1.2", -5], ["cross.0.1", -0.1], ["cross.0.0", 0.3]]);
    expect(sorted(trace, "cross", "importance", ranks).slice(0, 3)).toEqual(["cross.1.2", "cross.0.1", "cross.0.0"]);
  });

  test("in the spot are the named one, or the one that aligns, and always one that exists", () => {
    expect(spotOf(START, trace).id).toBe("cross.1.0");
    expect(spotOf({ ...START, kind: "enc" }, trace).id).toBe("enc.0.0");
    expect(spotOf({ ...START, layer: 99, head: 99 }, trace).id).toBe("cross.1.3");
    expect(spotOf(START, null).id).toBe("cross.0.0");
    expect(headName("cross.1.0")).toBe("cross 1·0");
  });

  test("are shown as weights, times their dimmer, or as a stage that has to be asked for", () => {
    const spot = spotOf(START, trace);
    const full = shownOf(trace, START, spot, null)!;
    expect(full.values.data).toEqual(weights(trace, "cross", 1, 0).data);
    const half: View = { ...START, stage: "dimmed", gates: [[spot.id, 0.5]] };
    expect(shownOf(trace, half, spot, null)!.values.at(0, 0)).toBeCloseTo(full.values.at(0, 0) / 2, 6);
    expect(stageOf(START, spot)).toBeNull();
    const raw: View = { ...START, stage: "scaled" };
    expect(stageOf(raw, spot)).toBe("dec.1.cross.scaled");
    expect(stageOf(raw, { ...spot, kind: "dec" })).toBe("dec.1.self.scaled");
    expect(stageOf(raw, { ...spot, kind: "enc" })).toBe("enc.1.scaled");
    expect(shownOf(trace, raw, spot, null)).toBeNull();
  });

  test("a dimmer that leaves the mean spreads what it takes over all that may be seen", () => {
    const view: View = { ...START, kind: "dec", layer: 0, head: 1, stage: "dimmed", mode: "mean", gates: [["dec.0.1", 0.25]] };
    const spot = spotOf(view, trace);
    const [looked, passed] = [weights(trace, "dec", 0, 1), shownOf(trace, view, spot, null)!.values];
    for (let row = 0; row < looked.rows; row++)
      for (let column = 0; column < looked.columns; column++)
        expect(passed.at(row, column)).toBeCloseTo(column > row ? 0 : 0.25 * looked.at(row, column) + 0.75 / (row + 1), 6);
  });

  test("a verdict names the pieces that it was told, one for each bar, and no others", () => {
    const told = { text: "a b", delta_logp: -3, deltas: [-1, -2] };
    expect(barsOf({ ...told, tokens: ["▁a", "▁b"] }).map(({ piece }) => piece)).toEqual(["▁a", "▁b"]);
    expect(barsOf(told).map(({ piece }) => piece)).toEqual(["0", "1"]);
    expect(barsOf({ ...told, tokens: ["▁a"] }).map(({ piece }) => piece)).toEqual(["0", "1"]);
  });
});

describe("keys", () => {
  const pressed = (key: string, target: unknown = { tagName: "BODY" }, more = {}): ReturnType<typeof deskAction> =>
    deskAction({ key, ctrlKey: false, metaKey: false, altKey: false, target, ...more });

  test("work where nobody writes, and nowhere else", () => {
    expect(pressed("m")).toEqual({ do: "mute" });
    expect(pressed("]")).toEqual({ do: "layer", by: 1 });
    expect(pressed("2")).toEqual({ do: "kind", kind: "dec" });
    for (const tagName of ["TEXTAREA", "SELECT", "INPUT"]) expect(pressed("m", { tagName, type: "text" })).toBeNull();
    expect(pressed("m", { tagName: "INPUT", type: "range" })).toEqual({ do: "mute" });
    expect(pressed("m", { tagName: "DIV", isContentEditable: true })).toBeNull();
    expect(pressed("z", undefined, { ctrlKey: true })).toBeNull();
    expect(pressed("Enter", { tagName: "TEXTAREA" }, { ctrlKey: true })).toEqual({ do: "translate" });
  });

  test("space presses a button that has the focus, and pins otherwise", () => {
    expect(pressed(" ", { tagName: "BUTTON" })).toBeNull();
    expect(pressed(" ")).toEqual({ do: "pin" });
  });
});

test("48 x 48 pieces, 6 layers, 8 heads: all thumbnails, the spot and the ribbons are made within 150 ms", () => {
  const shape = [6, 8, 48, 48];
  const bytes = new Uint8Array(6 * 8 * 48 * 48).map((_, i) => (i * 2654435761) >>> 24);
  const model = { ...trace.model, enc_layers: 6, dec_layers: 6, heads: 8 };
  const spent = Array.from({ length: 5 }, () => {
    const attn = { enc: packed(bytes, shape, "u8"), dec: packed(bytes, shape, "u8"), cross: packed(bytes, shape, "u8") };
    const large: Trace = { ...trace, model, attn }; // not read before: nothing of it is kept
    const begin = performance.now();
    for (const kind of ["enc", "dec", "cross"] as const) sheetOf(large, kind, "cividis", 40);
    const shown = shownOf(large, START, spotOf(START, large), null)!;
    pixelsOf(shown.matrix, shown.palette, shown.range, shown.scale, shown.masked);
    ribbonsOf(alignmentOf(large, "max", 0, null), 0.75);
    return performance.now() - begin;
  });
  // The best of five, and longer where the machine is busy: ten million additions take about 12 ms on one core that is free.
  const begin = performance.now();
  let sum = 0;
  for (let i = 0; i < 1e7; i++) sum += i % 7;
  expect(sum).toBeGreaterThan(0);
  const busy = Math.max(1, (performance.now() - begin) / 12);
  expect(Math.min(...spent)).toBeLessThan(150 * busy);
});
