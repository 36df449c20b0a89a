/** The server's answers, and how it is asked. Addresses are relative: a proxy may put a path before them. */

import type { Question } from "./desk/asking";
import type { Packed, Trace } from "./desk/trace";
import type { Why } from "./desk/why.svelte";
import type { Guess } from "./lib/detection";
import { troubleOf, unreachable, type Trouble } from "./lib/trouble";
import type { Pair, Sure } from "./lib/words";

/** One direction of a model that is served. */
export interface Model {
  id: string; // of the bundle in its usual direction; multi:en-fr in another
  bundle: string;
  source: string;
  target: string;
  names: Record<string, string>; // code -> English name
  calibrated: boolean;
  verdict?: string | null; // of a model that nobody should use
  tags: readonly string[]; // what it can be told beside the languages
}

export interface Alignment {
  words: Pair[];
  source_words?: string[];
  target_words?: string[];
}

export interface Alternative {
  text: string;
  confidence: number | null;
  words?: Sure[];
  alignment?: Alignment | null;
}

/** What the memory has of the same text, or of a similar one. */
export interface Match {
  score: number; // 1: the same text
  source: string;
  target: string;
  origin: string;
}

export interface Result extends Alternative {
  finish: string;
  alternatives: Alternative[];
  degenerate: boolean;
  protected: boolean;
  warnings: { code: string; message: string }[];
  matches?: Match[];
}

export interface Answer {
  model: string;
  source: string;
  target: string;
  results: Result[];
  took_ms: number;
}

export interface Asked {
  text: string;
  source: string;
  target: string;
  model?: string;
  tags?: readonly string[];
  nbest: number;
  align: boolean;
  prefix?: string; // what the translation begins with
  matches?: boolean; // of the memory
}

/** A better translation, to be kept. */
export interface Correction {
  text: string;
  translation: string;
  correction: string;
  model: string;
}

/** A text of a document, as it is to be reviewed. */
export interface Segment {
  id: string;
  line: number;
  source: string;
  text: string;
  confidence: number | null;
  unedited: number | null; // how probably it needs no edit
  from_memory: boolean;
  reasons: { code: string; message: string }[];
  terms: { source: string; targets: string[]; met: boolean }[];
}

/** A document in base64, and how it is translated. */
export interface DocumentAsked {
  name: string;
  data: string;
  model: string;
  memory?: "use" | "tell";
  check?: boolean;
}

export interface Segmented {
  model: string;
  source: string;
  target: string;
  left: number;
  segments: Segment[];
}

/** What goes back into a document. `confidence`: of a machine's that nobody has looked at. */
export type Given = Record<string, { text: string; confidence?: number; doubtful?: boolean }>;

/** What one request may be. */
export interface Limits {
  characters: number; // of a text
  alternatives: number;
  beam: number;
  file_bytes: number;
}

/** What a page may know of the server's settings. */
export interface Settings {
  delay: number; // ms without typing before a translation is asked for
  keyNeeded: boolean;
  files: boolean;
  formats: string[];
}

/** How far a ranking of heads is, and then what it found. */
export type Ranked =
  | { event: "progress"; data: { done: number; total: number } }
  | { event: "result"; data: { heads: { id: string; delta_logp: number }[] } };

/** A sentence that training looked at again and again, and the steps at which it did. */
export interface ProbeFacts {
  n: number;
  source: string;
  steps: number[];
}

/** What a server can do. */
export interface Known {
  models: Model[];
  limits: Limits;
  corrections: boolean; // are they kept?
  memory: boolean; // is there one to ask?
  desk: boolean; // can one look inside?
}

export class Refused extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.message);
  }
}

export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

export class Api {
  constructor(private readonly fetch: Fetch) {}

  async models(signal?: AbortSignal): Promise<Known> {
    const told = await this.get<{ models: Record<string, unknown>[]; limits: Limits; corrections?: boolean; memory?: boolean; desk?: boolean }>("api/v1/models", signal);
    const offers = { corrections: told.corrections === true, memory: told.memory === true, desk: told.desk === true };
    return { models: told.models.flatMap(modelsOf), limits: told.limits, ...offers };
  }

  async settings(signal?: AbortSignal): Promise<Settings> {
    const told = await this.get<Record<string, unknown>>("frontend/settings", signal);
    return {
      delay: Number(told["frontendTimeout"]) || 500,
      keyNeeded: told["keyRequired"] === true,
      files: told["filesTranslation"] === true,
      formats: Array.isArray(told["supportedFilesFormat"]) ? told["supportedFilesFormat"].map(String) : [],
    };
  }

  /** A memory that does not answer keeps nobody from a translation. */
  translate(asked: Asked, signal: AbortSignal): Promise<Answer> {
    return this.post<Answer>("api/v1/translate", asked, signal).catch((error: unknown) => {
      if (!asked.matches || !(error instanceof Refused) || error.trouble.code !== "store_away") throw error;
      return this.post<Answer>("api/v1/translate", { ...asked, matches: false }, signal);
    });
  }

  document(asked: DocumentAsked, signal: AbortSignal): Promise<Segmented> {
    return this.post<Segmented>("api/v1/documents", asked, signal);
  }

  reviewed(asked: { name: string; data: string; model: string; segments: Given }): Promise<{ data: string; refused: { line: number; message: string }[] }> {
    return this.post("api/v1/documents/file", asked);
  }

  correct(asked: Correction): Promise<{ id: number }> {
    return this.post<{ id: number }>("api/v1/corrections", asked);
  }

  detect(text: string, signal: AbortSignal): Promise<Guess[]> {
    return this.post<Guess[]>("detect", { q: text }, signal);
  }

  trace(asked: Question, signal: AbortSignal): Promise<Trace> {
    return this.post<Trace>("api/v1/trace", asked, signal);
  }

  /** One of the last traces, made anew from what the server kept of it. */
  traceAgain(id: string, signal?: AbortSignal): Promise<Trace> {
    return this.get<Trace>(`api/v1/trace/${encodeURIComponent(id)}`, signal);
  }

  traceStages(id: string, stages: readonly string[]): Promise<{ stages?: Record<string, Packed> }> {
    const values = new URLSearchParams({ include: "stages", stages: stages.join(","), encoding: "f16" });
    return this.get(`api/v1/trace/${encodeURIComponent(id)}?${values}`);
  }

  /** Told as it goes on. Whoever aborts ends the work on the server too. */
  async *importance(asked: { model?: string; tags?: readonly string[]; sentences: string[]; mode: "mute" }, signal: AbortSignal): AsyncGenerator<Ranked> {
    for await (const { event, data } of this.events("api/v1/importance", { ...sent(asked), signal })) {
      if (event === "error") throw new Refused(troubleOf(500, null, data));
      if (event === "progress" || event === "result") yield { event, data } as Ranked;
    }
  }

  why(asked: { trace_id: string; piece: number; check: boolean }): Promise<Why> {
    return this.post<Why>("api/v1/why", asked);
  }

  async probes(model: string | null): Promise<ProbeFacts[]> {
    const { probes } = await this.get<{ probes: ProbeFacts[] }>(`api/v1/probes${modelQuery(model)}`);
    return probes;
  }

  probe(n: number, step: number, model: string | null): Promise<Trace> {
    return this.get(`api/v1/probes/${n}/${step}${modelQuery(model)}`);
  }

  /** A file made of a trace. */
  async exported(asked: { trace_id: string; format: string; view?: string }): Promise<Blob> {
    return (await this.answered("api/v1/export", sent(asked))).blob();
  }

  async translateFile(file: File, asked: { source: string; target: string; tags: readonly string[]; model: string | null }, signal: AbortSignal): Promise<string> {
    const form = new FormData();
    form.append("source", asked.source);
    form.append("target", asked.target);
    for (const tag of asked.tags) form.append("tags", tag);
    if (asked.model !== null) form.append("model", asked.model);
    form.append("file", file);
    const { translatedFileUrl } = await this.ask<{ translatedFileUrl: string }>("translate_file", {
      method: "POST",
      body: form,
      signal,
    });
    return translatedFileUrl;
  }

  private get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.ask<T>(path, signal ? { signal } : {});
  }

  private post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.ask<T>(path, { ...sent(body), ...(signal ? { signal } : {}) });
  }

  /** An answer that is no JSON. Throws Refused; an AbortError goes through as it is. */
  private async answered(path: string, init: RequestInit): Promise<Response> {
    const answer = await this.fetch(path, init).catch((error: unknown) => {
      if (init.signal?.aborted) throw error;
      throw new Refused(unreachable());
    });
    if (answer.ok) return answer;
    throw new Refused(troubleOf(answer.status, answer.headers.get("Retry-After"), await answer.json().catch(() => null)));
  }

  /** Server-sent events; ours have one line of data each. A stream that breaks off is a server that does not answer. */
  private async *events(path: string, init: RequestInit): AsyncGenerator<{ event: string; data: unknown }> {
    const reader = (await this.answered(path, init)).body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        if (init.signal?.aborted) throw error;
        throw new Refused(unreachable());
      });
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const found = /^event: (.*)\ndata: (.*)$/.exec(block); // else a comment, as a sign of life
        if (found) yield { event: found[1]!, data: JSON.parse(found[2]!) as unknown };
      }
    }
  }

  /** Throws Refused; an AbortError goes through as it is. */
  private async ask<T>(path: string, init: RequestInit): Promise<T> {
    let answer: Response;
    let body: unknown;
    try {
      answer = await this.fetch(path, init);
      body = await answer.json().catch((error: unknown) => {
        if (error instanceof SyntaxError) return null; // a proxy's page, say
        throw error;
      });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Refused(unreachable());
    }
    if (!answer.ok || body === null) throw new Refused(troubleOf(answer.status, answer.headers.get("Retry-After"), body));
    return body as T;
  }
}

function sent(body: unknown): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

function modelQuery(model: string | null): string {
  return model === null ? "" : `?${new URLSearchParams({ model })}`;
}

/** All directions of a model, the usual one first. `names` is told as {code: name} or as {source, target}; both are understood. */
function modelsOf(told: Record<string, unknown>): Model[] {
  const [source, target] = [String(told["source"]), String(told["target"])];
  const names: Record<string, string> = {};
  const given = (told["names"] ?? {}) as Record<string, unknown>;
  for (const [key, code] of [["source", source], ["target", target], [source, source], [target, target]] as const)
    if (typeof given[key] === "string") names[code] = given[key];
  const id = String(told["id"]);
  const tags = Array.isArray(told["tags"]) ? told["tags"].map(String) : [];
  const usual: Model = { id, bundle: id, source, target, names, calibrated: told["calibrated"] === true, tags };
  if (typeof told["verdict"] === "string") usual.verdict = told["verdict"];
  Object.assign(names, told["languages"]);
  const others = Object.entries((told["directions"] ?? {}) as Record<string, string[]>).flatMap(([from, targets]) =>
    targets.filter((to) => from !== source || to !== target).map((to) => ({ ...usual, id: `${id}:${from}-${to}`, source: from, target: to })),
  );
  return [usual, ...others];
}
