/** Which key does what in a review. */

import { writes, type Pressed } from "../lib/keys";

export type Move = { do: "next" | "previous" | "accept" | "edit" | "leave" | "download" } | { do: "take"; number: number };

const SINGLE: Readonly<Record<string, Move>> = {
  j: { do: "next" },
  ArrowDown: { do: "next" },
  k: { do: "previous" },
  ArrowUp: { do: "previous" },
  a: { do: "accept" },
  e: { do: "edit" },
  d: { do: "download" },
};

/** Ctrl+Enter (⌘ on a Mac) accepts everywhere, and Escape leaves the field; single keys work where nobody writes. */
export function moveOf(event: Pressed & { isComposing?: boolean }): Move | null {
  if (event.isComposing) return null;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key === "Enter") return { do: "accept" };
  if (writes(event.target)) return event.key === "Escape" ? { do: "leave" } : null;
  if (command || event.altKey) return null;
  if (/^[1-9]$/.test(event.key)) return { do: "take", number: Number(event.key) - 1 };
  return SINGLE[event.key] ?? null;
}
