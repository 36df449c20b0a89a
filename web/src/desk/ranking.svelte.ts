/** Which heads matter: each is muted in turn on the server, as a job with progress. */

import { Refused, type Api, type Job } from "../api";
import type { Trouble } from "../lib/trouble";

const LOOK = 300; // ms between two looks at the job

export class Ranking {
  /** head -> change of log-probability when it is muted; null while nobody has asked. */
  ranks = $state.raw<ReadonlyMap<string, number> | null>(null);
  of = $state.raw<{ model: string | null; text: string } | null>(null); // what was ranked on
  progress = $state.raw<{ done: number; total: number } | null>(null); // null: no job is running
  trouble = $state.raw<Trouble | null>(null);
  private job: string | null = null;

  constructor(private readonly api: Api) {}

  async run(model: string | null, text: string): Promise<void> {
    if (this.progress) return;
    this.trouble = null;
    this.progress = { done: 0, total: 0 };
    try {
      this.job = (await this.api.importance({ ...(model === null ? {} : { model }), sentences: [text], mode: "mute" })).job;
      const done = await this.watch(this.job);
      if (done?.result) {
        this.ranks = new Map(done.result.heads.map((head) => [head.id, head.delta_logp]));
        this.of = { model, text };
      } else if (done?.error) {
        this.trouble = { status: 500, code: "job", message: done.error.message, hint: done.error.hint ?? null, retryAfter: null };
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.trouble = error.trouble;
    } finally {
      this.progress = this.job = null;
    }
  }

  async cancel(): Promise<void> {
    const job = this.job;
    this.job = null; // whoever watches it stops
    if (job) await this.api.cancelJob(job).catch(() => undefined);
  }

  isOf(model: string | null, text: string): boolean {
    return this.of?.model === model && this.of.text === text;
  }

  forget(): void {
    this.ranks = null;
    this.of = null;
  }

  private async watch(id: string): Promise<Job | null> {
    while (this.job === id) {
      const job = await this.api.job(id);
      if (this.job !== id) break;
      this.progress = { done: job.done, total: job.total };
      if (job.state !== "waiting" && job.state !== "running") return job;
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
    return null;
  }
}
