/** What went wrong, and what a person can do about it. */

export interface Trouble {
  status: number; // 0: no answer at all
  code: string;
  message: string;
  hint: string | null;
  retryAfter: number | null; // seconds
}

export const RETRIES = 8;
const LONGEST_WAIT = 60;

/** From an answer that is none: our own dialect {"error": {...}}, or the other one {"error": "..."}. */
export function troubleOf(status: number, retryAfter: string | null, body: unknown): Trouble {
  const error = (body as { error?: unknown } | null)?.error;
  const ours = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
  const message = typeof error === "string" ? error : text(ours["message"]);
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  return {
    status,
    code: text(ours["code"]) ?? "",
    message: message ?? `The server answered with status ${status}.`,
    hint: text(ours["hint"]),
    retryAfter: Number.isFinite(seconds) ? Math.max(1, seconds) : null,
  };
}

export function unreachable(): Trouble {
  return { status: 0, code: "unreachable", message: "The server does not answer.", hint: null, retryAfter: null };
}

/** Seconds to wait before the same is asked again, or null when that would not help. */
export function waitFor(trouble: Trouble, tries: number): number | null {
  if (tries >= RETRIES) return null;
  const passes = trouble.status === 0 || trouble.status === 429 || trouble.status === 503;
  if (!passes) return null;
  return Math.min(LONGEST_WAIT, trouble.retryAfter ?? Math.min(15, 2 ** tries));
}

/** In plain words: what it is and what to do. `wait`: it is tried again by itself. */
export function advice(trouble: Trouble, wait: number | null): { title: string; todo: string } {
  const again = wait === null ? "Try again in a while." : "It is tried again by itself.";
  switch (trouble.status) {
    case 0:
      return { title: "The server does not answer", todo: `Is limelight serve still running, and this machine connected? ${again}` };
    case 403:
      if (trouble.code === "switched_off" || (trouble.hint && trouble.code !== "wrong_key")) return { title: trouble.message, todo: trouble.hint ?? "" };
    // falls through: a key that is wrong
    case 401:
      return { title: "The server asks for a key", todo: "Reload the page and enter your key as the password; any user name will do." };
    case 413:
      return { title: "This is too much for one request", todo: trouble.hint ?? "Shorten the text, or drop it here as a file." };
    case 429:
      return { title: "You have asked for much in a short time", todo: again };
    case 456:
      return { title: "Your key has used up what it was granted", todo: trouble.hint ?? "Ask the operator of this server for more." };
    case 503:
      return trouble.code === "stopping"
        ? { title: "The server is being restarted", todo: again }
        : { title: "The server is busy", todo: again };
    case 504:
      return { title: "This took too long", todo: trouble.hint ?? "Translate a shorter text, or try again when the server has less to do." };
    case 501: // something is not installed there, which only its operator can change
      return { title: "This server cannot do that", todo: [trouble.message, trouble.hint].filter(Boolean).join("; ") };
    default:
      return trouble.status >= 500
        ? { title: "The server made a mistake", todo: trouble.hint ?? "Your text is still here. Try again; the server's log says more." }
        : { title: trouble.message, todo: trouble.hint ?? "" };
  }
}

function text(value: unknown): string | null {
  return typeof value === "string" && value ? value : null;
}
