/** What was just copied, said for a moment. */

export class Copying {
  done = $state<string | null>(null);
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `what` names the button, so that it can show that it worked. */
  async copy(what: string, text: string): Promise<void> {
    await toClipboard(text);
    this.done = what;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.done = null), 2000);
  }
}

async function toClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that came without https have no clipboard but the old one, which copies what is selected.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "spoken";
    document.body.append(field);
    const before = document.activeElement;
    field.select();
    document.execCommand("copy");
    field.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
