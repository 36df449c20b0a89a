/** The desk as a value: what it asks, which answers it shows, and how it goes back. */
import { readFileSync } from "node:fs";

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Api } from "../src/api";
import { Desk } from "../src/desk/desk.svelte";
import type { Road, Step } from "../src/desk/road";
import { stepOf } from "../src/desk/road";
import type { Trace } from "../src/desk/trace";
import { START } from "../src/desk/view";

const numbers = JSON.parse(readFileSync("tests/traces/numbers.json", "utf8")) as Trace;

/** Answers every question with the trace of the tests under the text that was asked for, after `delay` ms. */
class Server {
  asked: { path: string; body: Record<string, unknown> }[] = [];
  left = 0;
  delay = 10;
  refusals: number[] = [];
  forgotten = new Set<string>(); // traces that it no longer keeps
  given: string | null = null; // a translation that a kept trace was asked with
  ranking: [string, Record<string, unknown>][] = []; // events; it goes on until `result` or `error` is told
  private made = 0;

  readonly api = new Api((path, init) => this.answer(path, init));

  get questions(): Record<string, unknown>[] {
    return this.asked.filter(({ path }) => path === "api/v1/trace").map(({ body }) => body);
  }

  /** One every 50 ms, each in two chunks, after a sign of life. */
  private events(signal: AbortSignal): ReadableStream<Uint8Array> {
    const told = [": still here\n\n", ...this.ranking.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)];
    const ends = this.ranking.some(([event]) => event !== "progress");
    return new ReadableStream<Uint8Array>({
      start: (stream) => {
        signal.addEventListener("abort", () => {
          this.left++;
          stream.error(new DOMException("left", "AbortError"));
        });
        told.forEach((text, at) =>
          setTimeout(() => {
            for (const chunk of [text.slice(0, 9), text.slice(9)]) stream.enqueue(new TextEncoder().encode(chunk));
            if (ends && at === told.length - 1) stream.close();
          }, 50 * at),
        );
      },
    });
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
    if (path === "api/v1/models") return Response.json({ models: [{ id: "en-de", source: "en", target: "de" }, MULTI], limits: { beam: 16 } });
    if (path === "api/v1/importance") return new Response(this.events(init!.signal!), { headers: { "Content-Type": "text/event-stream" } });
    const refusal = this.refusals.shift();
    if (refusal) return Response.json({ error: { code: "busy", message: "no" } }, { status: refusal });
    if (path.startsWith("api/v1/probes")) return Response.json({ probes: [] });
    if (this.forgotten.has(path.split(/[/?]/)[3] ?? "")) return Response.json({ error: { code: "not_found", message: "no such trace" } }, { status: 404 });
    if (path.includes("stages=")) return Response.json({ stages: { "enc.0.scores": { shape: [1, 1, 2], enc: "json", data: [1, 2] } } });
    const text = String(body["source"] ?? "kept text");
    const given = body["source"] === undefined && this.given !== null ? { beam: null } : {};
    const baseline = body["interventions"] ? { baseline: { text: "before", delta_logp: -2.8, deltas: [-2.8], chrf: 71 } } : {};
    return Response.json({ ...numbers, trace_id: `t_${++this.made}`, source: { ...numbers.source, text }, target: { ...numbers.target, text: this.given ?? text.toUpperCase() }, ...baseline, ...given });
  }
}

const MULTI = { id: "multi", source: "en", target: "de", directions: { en: ["de", "fr"], de: ["en"] }, tags: ["formal", "ui"] };

/** A browser's history of a few lines. */
class Past implements Road {
  places: { hash: string; step: Step }[] = [];
  at = -1;
  desk!: Desk;

  push(hash: string, step: Step): void {
    this.places = [...this.places.slice(0, this.at + 1), { hash, step }];
    this.at++;
  }

  replace(hash: string, step: Step): void {
    this.places[Math.max(0, this.at)] = { hash, step };
    this.at = Math.max(0, this.at);
  }

  back(): void {
    this.go(-1);
  }

  forward(): void {
    this.go(1);
  }

  private go(by: number): void {
    const place = this.places[this.at + by];
    if (!place) throw new Error("that would leave the page");
    this.at += by;
    this.desk.arrive(place.hash, place.step);
  }
}

let server: Server;
let past: Past;
let desk: Desk;

const settle = (ms = 60): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const mute = (head: string): void => desk.change({ gates: [[head, 0]] }, `mute ${head}`);

beforeEach(async () => {
  vi.useFakeTimers();
  server = new Server();
  past = new Past();
  desk = new Desk(server.api, past);
  past.desk = desk;
  past.replace("#/x?s=one", { depth: 0, what: "" });
  void desk.open("#/x?s=one", stepOf(null));
  await settle();
});

afterEach(() => vi.useRealTimers());

test("it opens with what the address says, and asks for that once", () => {
  expect([desk.draft, desk.trace?.target.text, desk.status.kind, desk.models.length]).toEqual(["one", "ONE", "done", 4]);
  expect(server.questions).toEqual([{ source: "one", topk: 8, encoding: "u8" }]);
});

test("typing asks when nothing more comes for a while, and Enter at once", async () => {
  for (const text of ["tw", "two", "two m", "two men"]) {
    desk.write(text);
    await settle(100);
  }
  expect(server.questions).toHaveLength(1);
  await settle(600);
  expect(server.questions.map(({ source }) => source)).toEqual(["one", "two men"]);
  desk.write("three");
  desk.now();
  await settle();
  expect([desk.trace?.target.text, server.questions.length]).toEqual(["THREE", 3]);
  await settle(1000);
  expect(server.questions).toHaveLength(3);
});

test("what is only looked at asks for nothing, and stands in the address", async () => {
  desk.change({ kind: "enc", layer: 1, head: 2, stage: "dimmed" });
  await settle();
  expect(server.questions).toHaveLength(1);
  expect(past.places.at(-1)!.hash).toBe("#/x?s=one&l=1&h=2&k=enc&st=dimmed");
  expect([past.places.length, desk.step.depth]).toEqual([1, 0]);
});

test("a mute is asked for with its gates, and has a verdict that is spoken", async () => {
  mute("cross.1.2");
  await settle();
  expect(server.questions.at(-1)!["interventions"]).toEqual({ gates: { "cross.1.2": 0 }, gate_mode: "zero" });
  expect([desk.touched, desk.trace?.baseline?.delta_logp]).toEqual([true, -2.8]);
  expect(desk.spoken).toBe("ONE. Log-probability of the first translation: minus 2.80.");
  expect(desk.baseline?.trace_id).toBe("t_1"); // known already: not asked for again
  expect(server.questions).toHaveLength(2);
});

test("a link to a muted head fetches the translation without it too", async () => {
  const other = new Desk(server.api, past);
  void other.open("#/x?s=five&off=c1.2", stepOf(null));
  await settle(100);
  expect(server.questions.slice(1).map(({ interventions }) => interventions !== undefined)).toEqual([true, false]);
  expect(other.baseline?.baseline).toBeUndefined();
});

describe("undo", () => {
  test("goes back and forward through all that was changed, without asking again", async () => {
    mute("cross.1.2");
    await settle();
    mute("enc.0.0");
    await settle();
    const asked = server.questions.length;
    desk.undo();
    await settle();
    expect(desk.view.gates).toEqual([["cross.1.2", 0]]);
    desk.undo();
    await settle();
    expect([desk.view.gates, desk.touched, desk.trace?.trace_id, desk.baseline]).toEqual([[], false, "t_1", null]);
    desk.redo();
    await settle();
    expect(desk.view.gates).toEqual([["cross.1.2", 0]]);
    expect(desk.trace?.baseline).toBeDefined();
    expect(server.questions).toHaveLength(asked);
  });

  test("never leaves the page, and a new step forgets those that were undone", async () => {
    desk.undo();
    mute("cross.1.2");
    desk.undo();
    expect([desk.step.depth, desk.top]).toEqual([0, 1]);
    mute("enc.0.0");
    expect([desk.step.depth, desk.top]).toEqual([1, 1]);
    desk.redo();
    expect(desk.view.gates).toEqual([["enc.0.0", 0]]);
  });

  test("a sentence that is typed is one step", async () => {
    for (const text of ["two", "two men", "two men sit"]) {
      desk.write(text);
      await settle(700);
    }
    expect(desk.step).toEqual({ depth: 1, what: "another text" });
    desk.undo();
    await settle();
    expect([desk.draft, desk.trace?.target.text]).toEqual(["one", "ONE"]);
  });

  test("a reset is a step as any other", async () => {
    mute("cross.1.2");
    desk.change({ positions: "zero" }, "positions zero");
    desk.reset();
    expect(desk.touched).toBe(false);
    desk.undo();
    expect([desk.view.positions, desk.view.gates]).toEqual(["zero", [["cross.1.2", 0]]]);
  });
});

test("while a dimmer is dragged few questions are asked, and letting go is one step", async () => {
  for (let level = 95; level >= 20; level -= 5) {
    desk.preview({ gates: [["cross.1.2", level / 100]] });
    await settle(20);
  }
  expect(desk.view.gates).toEqual([["cross.1.2", 0.2]]);
  desk.change({ gates: [["cross.1.2", 0.2]] }, "dim cross 1·2 to 20 %");
  await settle(300);
  expect(server.questions.length).toBeLessThanOrEqual(3);
  expect(server.questions.at(-1)!["interventions"]).toEqual({ gates: { "cross.1.2": 0.2 }, gate_mode: "zero" });
  expect(desk.step).toEqual({ depth: 1, what: "dim cross 1·2 to 20 %" });
  desk.undo();
  expect(desk.view.gates).toEqual([]);
});

test("while a dimmer is dragged the place that undo goes back to stays as it is, whatever is looked at meanwhile", async () => {
  desk.preview({ gates: [["cross.1.2", 0.2]] });
  desk.change({ kind: "cross", layer: 1, head: 2 });
  expect(past.places.map(({ hash }) => hash)).toEqual(["#/x?s=one"]);
  desk.change({ gates: [["cross.1.2", 0.2]], kind: "cross", layer: 1, head: 2 }, "dim");
  desk.undo();
  await settle();
  expect([desk.view.gates, desk.touched]).toEqual([[], false]);
});

test("the answer to a held dimmer writes no place, also with a text too long for an address", async () => {
  desk.write("word ".repeat(500));
  desk.now();
  await settle();
  desk.preview({ gates: [["cross.1.2", 0.2]] });
  await settle(300);
  expect([desk.trace?.trace_id, past.places.at(-1)!.hash]).toEqual(["t_3", "#/x?t=t_2"]);
  desk.change({ gates: [["cross.1.2", 0.2]] }, "dim");
  await settle();
  expect(past.places.slice(-2).map(({ hash }) => hash)).toEqual(["#/x?t=t_2", "#/x?t=t_3&off=c1.2:0.2"]);
});

test("a dimmer that is let go where it was leaves the address to what is looked at", () => {
  desk.preview({ gates: [["cross.1.2", 0.2]] });
  desk.preview({ gates: [] });
  desk.change({ stage: "dimmed" });
  expect(past.places.at(-1)!.hash).toBe("#/x?s=one&st=dimmed");
});

describe("another model", () => {
  test("forgets what was said about the old one, and what it was compared with", async () => {
    server.ranking = [["result", { heads: [{ id: "cross.1.2", delta_logp: -4 }] }]];
    void desk.rank();
    void desk.compareWith("two");
    void desk.loadProbes();
    await settle(1000);
    desk.change({ gates: [["cross.1.2", 0]], hidden: [1], pins: [{ step: 0, source: 0, layers: "*", strength: 1 }], query: 2, prefix: [5], target: "x" }, "much");
    await settle();
    expect([desk.ranks?.size, desk.other?.source.text, desk.probes, desk.baseline === null]).toEqual([1, "two", [], false]);
    desk.useModel("de-en");
    expect([desk.ranks, desk.other, desk.probes, desk.baseline]).toEqual([null, null, null, null]);
    expect(desk.view).toEqual({ ...START, text: "one", model: "de-en" });
    await settle();
    expect(server.questions.at(-1)).toEqual({ model: "de-en", source: "one", topk: 8, encoding: "u8" });
    desk.undo();
    expect([desk.view.model, desk.view.hidden]).toEqual([null, [1]]);
  });

  test("of two sentences to compare with, the later one is shown, whichever answers first", async () => {
    server.delay = 300;
    void desk.compareWith("slow");
    await settle(100);
    server.delay = 10;
    void desk.compareWith("fast");
    await settle(1000);
    expect(desk.other?.source.text).toBe("fast");
    server.delay = 300;
    void desk.compareWith("late");
    await settle(100);
    void desk.compareWith(null);
    await settle(1000);
    expect(desk.other).toBeNull();
  });

  test("is not shown what the old one answers late", async () => {
    server.delay = 300;
    void desk.compareWith("two");
    void desk.loadProbes();
    await settle(100);
    desk.useModel("de-en");
    await settle(300);
    expect([desk.other, desk.probes]).toEqual([null, null]);
  });
});

describe("a model of several directions", () => {
  beforeEach(async () => {
    desk.useModel("multi");
    await settle();
  });

  test("turns to another one, or is told a tag, with its lights as they are", async () => {
    desk.change({ gates: [["cross.1.2", 0]], hidden: [1], head: 2 }, "mute");
    desk.aim("multi:en-fr", ["formal"], "en to fr");
    expect(desk.view).toEqual({ ...START, text: "one", model: "multi:en-fr", tags: ["formal"], gates: [["cross.1.2", 0]], head: 2 });
    expect([desk.direction?.target, desk.directions.map(({ id }) => id)]).toEqual(["fr", ["multi", "multi:en-fr", "multi:de-en"]]);
    await settle();
    expect(server.questions.find(({ tags }) => tags)).toMatchObject({ model: "multi:en-fr", tags: ["formal"], source: "one" });
    desk.undo();
    expect([desk.view.model, desk.view.tags, desk.view.hidden]).toEqual(["multi", [], [1]]);
  });

  test("lays the same sentence in another language beside it, and follows when another one is written", async () => {
    desk.change({ beside: "multi:en-fr" });
    void desk.compareWith("one", "multi:en-fr");
    await settle();
    expect(server.questions.at(-1)).toMatchObject({ model: "multi:en-fr", source: "one" });
    desk.write("two");
    await settle(700);
    expect([desk.trace?.source.text, desk.other?.source.text]).toEqual(["two", "two"]);
    expect(server.questions.at(-1)).toMatchObject({ model: "multi:en-fr", source: "two" });
    desk.aim("multi:de-en", [], "de to en");
    expect(desk.view.beside).toBeNull();
  });

  test("ranks its heads as it is told", async () => {
    desk.aim("multi", ["formal"], "formal");
    server.ranking = [["result", { heads: [{ id: "cross.1.2", delta_logp: -4 }] }]];
    void desk.rank();
    await settle(1000);
    expect(server.asked.at(-1)?.body).toMatchObject({ model: "multi", tags: ["formal"] });
    expect(desk.ranks?.size).toBe(1);
    desk.change({ tags: [] });
    expect(desk.ranks).toBeNull();
  });
});

test("why there is no other sentence and no list of moments is told, and is not the same as none", async () => {
  server.refusals = [422];
  void desk.compareWith("two");
  await settle();
  expect([desk.other, desk.otherTrouble?.message]).toEqual([null, "no"]);
  void desk.compareWith("two");
  await settle();
  expect([desk.other?.source.text, desk.otherTrouble]).toEqual(["two", null]);
  server.refusals = [500];
  void desk.loadProbes();
  await settle();
  expect([desk.probes, desk.probesTrouble?.status]).toEqual([null, 500]);
  void desk.loadProbes();
  await settle();
  expect([desk.probes, desk.probesTrouble]).toEqual([[], null]);
});

test("an answer that comes too late is dropped, and its request is left", async () => {
  server.delay = 500;
  mute("cross.1.2");
  await settle(100);
  server.delay = 10;
  mute("cross.0.0");
  await settle(1000);
  expect(server.left).toBe(1);
  expect(desk.view.gates).toEqual([["cross.0.0", 0]]);
  expect(desk.trace?.trace_id).toBe("t_2");
});

test("a busy server is asked again by itself, and a refusal that lasts is told and can be tried again", async () => {
  server.refusals = [503];
  mute("cross.1.2");
  await settle(20);
  expect(desk.status.kind).toBe("waiting");
  await settle(3000);
  expect([desk.status.kind, desk.trace?.baseline?.text]).toEqual(["done", "before"]);
  server.refusals = [422];
  mute("cross.0.0");
  await settle(50);
  expect(desk.status.kind).toBe("failed");
  desk.now();
  await settle(50);
  expect(desk.status.kind).toBe("done");
});

test("stages are fetched once for each trace", async () => {
  const first = desk.stage(["enc.0.scores"]);
  await settle();
  expect([...(await first)["enc.0.scores"]!.data]).toEqual([1, 2]);
  const second = desk.stage(["enc.0.scores"]);
  await settle();
  await second;
  expect(server.asked.filter(({ path }) => path.includes("stages=")).map(({ path }) => path)).toEqual([
    "api/v1/trace/t_1?include=stages&stages=enc.0.scores&encoding=f16",
  ]);
});

test("a trace that the server has forgotten is asked for once more", async () => {
  mute("cross.1.2");
  await settle();
  server.forgotten.add("t_2");
  const first = desk.stage(["enc.0.scores"]);
  await settle();
  expect([...(await first)["enc.0.scores"]!.data]).toEqual([1, 2]);
  expect(server.questions.at(-1)).toEqual(server.questions.at(-2)); // with its gates
  expect([desk.trace?.trace_id, desk.trace?.source.text]).toEqual(["t_3", "one"]);
  const asked = server.asked.length;
  await desk.stage(["enc.0.scores"]);
  expect(server.asked.length).toBe(asked);
  server.forgotten.add("t_3").add("t_4");
  const lost = desk.stage(["enc.0.q"]).catch((error: unknown) => error);
  await settle();
  expect(await lost).toMatchObject({ trouble: { status: 404 } });
  expect(server.asked.length).toBe(asked + 3); // and not for ever
});

test("a translation that was given comes back with a long text", async () => {
  server.given = "eins";
  const other = new Desk(server.api, past);
  void other.open("#/x?t=t_9", stepOf(null));
  await settle(100);
  expect([other.view.text, other.view.target]).toEqual(["kept text", "eins"]);
  expect(server.questions.at(-1)).toMatchObject({ source: "kept text", target: "eins" });
});

test("a text too long for an address is named by its trace, and comes back from there", async () => {
  desk.write("word ".repeat(500));
  desk.now();
  await settle();
  const { hash } = past.places.at(-1)!;
  expect(hash).toBe("#/x?t=t_2");
  const other = new Desk(server.api, past);
  void other.open(hash, stepOf(null));
  await settle(100);
  expect(server.asked.some(({ path }) => path === "api/v1/trace/t_2")).toBe(true);
  expect([other.draft, other.trace?.target.text]).toEqual(["kept text", "KEPT TEXT"]);
});

describe("ranking", () => {
  test("shows its progress and then the ranks", async () => {
    server.ranking = [
      ["progress", { done: 3, total: 24 }],
      ["result", { heads: [{ id: "cross.1.2", delta_logp: -4 }] }],
      ["done", { took_ms: 41.7 }],
    ];
    void desk.rank();
    await settle(80);
    expect(desk.ranking.progress).toEqual({ done: 3, total: 24 });
    await settle(1000);
    expect([desk.ranking.progress, desk.ranking.ranks?.get("cross.1.2"), desk.ranking.of]).toEqual([null, -4, { model: null, tags: [], text: "one" }]);
    expect(server.asked.find(({ path }) => path === "api/v1/importance")!.body).toEqual({ sentences: ["one"], mode: "mute" });
  });

  test("belongs to its text: it is not shown for another one", async () => {
    server.ranking = [["result", { heads: [{ id: "cross.1.2", delta_logp: -4 }] }]];
    void desk.rank();
    desk.write("two");
    desk.now();
    await settle(1000);
    expect([desk.ranking.ranks?.size, desk.ranks]).toEqual([1, null]);
    desk.undo();
    expect(desk.ranks?.get("cross.1.2")).toBe(-4);
  });

  test("can be stopped, and the server hears of it", async () => {
    server.ranking = [["progress", { done: 1, total: 4 }]];
    void desk.rank();
    await settle(100);
    expect([desk.ranking.progress?.done, server.left]).toEqual([1, 0]);
    desk.ranking.cancel();
    await settle(1000);
    expect([desk.ranking.progress, desk.ranking.ranks, desk.ranking.trouble, server.left]).toEqual([null, null, null, 1]);
  });

  test("that failed says why", async () => {
    server.ranking = [["error", { error: { code: "late", message: "too long", hint: null } }]];
    void desk.rank();
    await settle(200);
    expect(desk.ranking.trouble?.message).toBe("too long");
  });
});

test("an exported file shows its trace, asks nobody, and lets nothing be changed inside", async () => {
  const asked = server.asked.length;
  const alone = new Desk(server.api, past);
  alone.show(numbers, "#/x?k=enc&l=1&h=3");
  alone.change({ gates: [["cross.1.2", 0]] }, "mute");
  alone.change({ stage: "dimmed" });
  await settle(1000);
  expect([alone.live, alone.spot.id, alone.view.gates, alone.view.stage]).toEqual([false, "enc.1.3", START.gates, "dimmed"]);
  expect(server.asked.length).toBe(asked);
});
