/** The page of a proof: it translates what the process asks that has just made an export, and hands the answers back to it. */

import { normalize, type Step } from "./normalize";
import { Pieces } from "./pieces";
import { Translator } from "./translator";

interface Job {
  model: string;
  numbers: string;
  source: string;
  target: string;
  names: string[];
  beam: number;
  texts: string[];
}

/** Pieces without a model: their file in base64, and what text goes through before. */
interface PiecesJob {
  pieces: string;
  steps: Step[];
  by_words: boolean;
  texts: string[];
}

async function prove(): Promise<unknown> {
  const jobs = (await (await fetch(location.hash.slice(1))).json()) as (Job | PiecesJob)[];
  const results: unknown[] = [];
  const timings: unknown[] = [];
  for (const job of jobs) {
    const began = performance.now();
    let ready = began;
    if ("pieces" in job) {
      const pieces = Pieces.read(Uint8Array.from(atob(job.pieces), (letter) => letter.charCodeAt(0)));
      results.push(
        job.texts.map((text) => {
          const ids = pieces.encode(normalize(text, job.steps), job.by_words);
          return { ids, text: pieces.decode(ids) };
        }),
      );
    } else {
      const { model, numbers, source, target, names, beam } = job;
      const translator = await Translator.create({ sourceLanguage: source, targetLanguage: target, model, numbers });
      ready = performance.now();
      const made = [];
      for (const text of job.texts) made.push(await translator.explain(text, { names, beam, guards: false }));
      results.push(made.map(({ text, score }) => ({ text, score })));
      translator.destroy();
    }
    timings.push({ ready: (ready - began) / 1000, seconds: (performance.now() - ready) / 1000, texts: job.texts.length });
  }
  return { results, timings, agent: navigator.userAgent };
}

void prove()
  .catch((error: Error) => ({ error: `${error.name}: ${error.message}` }))
  .then((answer) => fetch(location.hash.slice(1), { method: "POST", body: JSON.stringify(answer) }));
