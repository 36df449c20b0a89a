/** Stages of a trace, fetched once each. A server keeps few traces: one that it has forgotten is made again. */

import { Refused, type Api } from "../api";
import { Kept } from "./asking";
import { tensorOf, type Tensor, type Trace } from "./trace";

const KEPT = 64; // tensors

export class Tensors {
  private readonly there = new Kept<Tensor>(KEPT);

  /** `renew` asks the question of a trace once more; null when it is not known. */
  constructor(
    private readonly api: Api,
    private readonly renew: (trace: Trace) => Promise<Trace | null>,
  ) {}

  /** Those that the trace brings along, that were fetched before and, where somebody answers, the others. */
  async of(trace: Trace, names: readonly string[], live: boolean): Promise<Record<string, Tensor>> {
    const found: Record<string, Tensor> = {};
    for (const name of names) {
      const given = trace.stages?.[name];
      const tensor = this.there.get(key(trace, name)) ?? (given && tensorOf(given));
      if (tensor) this.there.put(key(trace, name), (found[name] = tensor));
    }
    const missing = names.filter((name) => !found[name]);
    if (!missing.length || !live) return found;
    const [from, stages] = await this.fetched(trace, missing);
    for (const [name, packed] of Object.entries(stages)) this.there.put(key(from, name), (found[name] = tensorOf(packed)));
    return found;
  }

  private async fetched(trace: Trace, names: readonly string[]) {
    const ask = async (from: Trace) => [from, (await this.api.traceStages(from.trace_id, names)).stages ?? {}] as const;
    try {
      return await ask(trace);
    } catch (error) {
      const again = error instanceof Refused && error.trouble.status === 404 ? await this.renew(trace) : null;
      if (!again) throw error;
      return ask(again);
    }
  }
}

function key(trace: Trace, name: string): string {
  return `${trace.trace_id} ${name}`;
}
