/** Which key does what. */

export type Action =
  | { do: "translate" | "write" | "swap" | "copy" | "correct" | "theme" | "help" }
  | { do: "choose"; number: number };

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  target: unknown;
}

const SINGLE: Readonly<Record<string, Action>> = {
  "/": { do: "write" },
  s: { do: "swap" },
  c: { do: "copy" },
  e: { do: "correct" },
  t: { do: "theme" },
  "?": { do: "help" },
};

/** Ctrl+Enter (⌘ on a Mac) works everywhere. Single keys do where nobody writes, and can be turned off: voice control types them. */
export function actionOf(event: Pressed, single: boolean): Action | null {
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key === "Enter") return { do: "translate" };
  if (command || event.altKey || !single || writes(event.target)) return null;
  if (/^[1-9]$/.test(event.key)) return { do: "choose", number: Number(event.key) - 1 };
  return SINGLE[event.key] ?? null;
}

export function writes(target: unknown): boolean {
  const { tagName, isContentEditable } = (target ?? {}) as { tagName?: string; isContentEditable?: boolean };
  return isContentEditable === true || /^(TEXTAREA|INPUT|SELECT)$/.test(tagName ?? "");
}
