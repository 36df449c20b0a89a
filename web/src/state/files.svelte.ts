/** Files on their way: each is sent, waited for and offered for download. */

import { Refused, type Api, type Limits, type Settings } from "../api";
import { advice } from "../lib/trouble";
import { here, refusalOf } from "../lib/uploads";

export interface Sent {
  id: number;
  name: string;
  size: number;
  state: "translating" | "done" | "failed";
  url: string | null;
  sentence: string;
}

export class Files {
  sent = $state<Sent[]>([]);
  private next = 1;
  private readonly under = new Map<number, AbortController>();

  constructor(
    private readonly api: Api,
    private readonly page: () => string,
  ) {}

  async send(file: File, source: string, target: string, settings: Settings, limits: Limits, tags: readonly string[] = [], model: string | null = null): Promise<void> {
    const id = this.next++;
    this.sent.unshift({ id, name: file.name, size: file.size, state: "translating", url: null, sentence: "Translating…" });
    const refusal = refusalOf(file.name, file.size, settings.formats, limits.file_bytes);
    if (refusal) return this.change(id, { state: "failed", sentence: refusal });
    const controller = new AbortController();
    this.under.set(id, controller);
    try {
      const url = here(await this.api.translateFile(file, { source, target, tags, model }, controller.signal), this.page());
      if (!url) return this.change(id, { state: "failed", sentence: "The server's answer names no file. Try again." });
      this.change(id, { state: "done", url, sentence: "Translated" });
    } catch (error) {
      if (controller.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      const { title, todo } = advice(error.trouble, null);
      this.change(id, { state: "failed", sentence: `${title}. ${todo}`.trim() });
    } finally {
      this.under.delete(id);
    }
  }

  remove(id: number): void {
    this.under.get(id)?.abort();
    this.sent = this.sent.filter((each) => each.id !== id);
  }

  /** The server gives a file once, and keeps no copy. The link stays while the browser follows it. */
  fetched(id: number): void {
    setTimeout(() => this.change(id, { url: null, sentence: "Fetched; the server keeps no copy" }), 500);
  }

  private change(id: number, to: Partial<Sent>): void {
    const found = this.sent.find((each) => each.id === id);
    if (found) Object.assign(found, to);
  }
}
