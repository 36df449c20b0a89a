/** Which heads matter: each is muted in turn on the server, which tells how far it is. */

import { Refused, type Api } from "../api";
import type { Trouble } from "../lib/trouble";

export class Ranking {
  /** head -> change of log-probability when it is muted; null while nobody has asked. */
  ranks = $state.raw<ReadonlyMap<string, number> | null>(null);
  of = $state.raw<{ model: string | null; tags: readonly string[]; text: string } | null>(null); // what was ranked on
  progress = $state.raw<{ done: number; total: number } | null>(null); // null: none is under way
  trouble = $state.raw<Trouble | null>(null);
  private leaving = new AbortController();

  constructor(private readonly api: Api) {}

  async run(model: string | null, tags: readonly string[], text: string): Promise<void> {
    if (this.progress) return;
    this.trouble = null;
    this.progress = { done: 0, total: 0 };
    const { signal } = (this.leaving = new AbortController());
    try {
      const asked = { ...(model === null ? {} : { model }), ...(tags.length ? { tags } : {}), sentences: [text], mode: "mute" as const };
      for await (const { event, data } of this.api.importance(asked, signal)) {
        if (event === "progress") {
          this.progress = { done: data.done, total: data.total };
        } else {
          this.ranks = new Map(data.heads.map((head) => [head.id, head.delta_logp]));
          this.of = { model, tags, text };
        }
      }
    } catch (error) {
      if (error instanceof Refused) this.trouble = error.trouble;
      else if (!signal.aborted) throw error;
    } finally {
      this.progress = null;
    }
  }

  /** Leave: then the server stops. */
  cancel(): void {
    this.leaving.abort();
  }

  isOf(model: string | null, tags: readonly string[], text: string): boolean {
    return this.of?.model === model && this.of.text === text && this.of.tags.join() === tags.join();
  }

  forget(): void {
    this.ranks = null;
    this.of = null;
  }
}
