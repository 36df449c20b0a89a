/** The page of a proof: it translates what the process asks that has just made an export, and hands the answers back to it. */

import { Translator } from "./translator";

interface Job {
  model: string;
  numbers: string;
  source: string;
  target: string;
  names: string[];
  beam: number;
  texts: string[];
  kind?: "ids";
}

async function prove(): Promise<unknown> {
  const jobs = (await (await fetch(location.hash.slice(1))).json()) as Job[];
  const results: unknown[] = [];
  const timings: unknown[] = [];
  for (const { model, numbers, source, target, names, beam, texts, kind } of jobs) {
    const began = performance.now();
    const translator = await Translator.create({ sourceLanguage: source, targetLanguage: target, model, numbers });
    const ready = performance.now();
    if (kind === "ids") {
      results.push(await translator.ids(texts));
    } else {
      const made = [];
      for (const text of texts) made.push(await translator.explain(text, { names, beam, guards: false }));
      results.push(made.map(({ text, score }) => ({ text, score })));
    }
    timings.push({ ready: (ready - began) / 1000, seconds: (performance.now() - ready) / 1000, texts: texts.length });
    translator.destroy();
  }
  return { results, timings, agent: navigator.userAgent };
}

void prove()
  .catch((error: Error) => ({ error: `${error.name}: ${error.message}` }))
  .then((answer) => fetch(location.hash.slice(1), { method: "POST", body: JSON.stringify(answer) }));
