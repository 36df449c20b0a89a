/** Warnings of a server as sentences, each once: a long text may have the same one for many of its sentences. */

export interface Warning {
  code: string;
  message: string;
}

const PLAIN: Readonly<Record<string, string>> = {
  empty: "The model found no translation.",
  loop: "The translation repeats itself and is probably wrong.",
  too_long: "The translation is much longer than the text. Something may have been made up.",
  too_short: "The translation is much shorter than the text. Something may be missing.",
  copied: "The translation is nearly the same as the text. It may not be translated at all.",
  length: "The translation was cut off at its limit.",
  redecoded: "The first translation was poor, so a second one was made.",
  source_cut: "The text is too long for the model, and its end was left out.",
  unprotected: "A placeholder, tag or address did not come through as it was.",
  numbers: "A number is not as it was in the text.",
  tags_placed: "The text was translated without its tags, which were put back where their words are.",
  split: "A sentence was too long for the model and was translated in parts.",
};

const UNSAID = new Set(["engine"]); // how a translation was made, which is for operators

/** What a person reads: our own words for what is known, the server's for the rest. */
export function plain(warnings: readonly Warning[]): string[] {
  return [...new Set(warnings.filter(({ code }) => !UNSAID.has(code)).map(({ code, message }) => PLAIN[code] ?? sentence(message)))];
}

/** sentence("the model was unsure") -> "The model was unsure." */
function sentence(message: string): string {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
