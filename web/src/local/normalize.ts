/** Text is tidied as training text was: the steps and their order are those of limelight.text.normalize. */

export type Step = "nfc" | "invisible" | "spaces" | "quotes";

const INVISIBLE = /[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]/g;
const WHITE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g; // Unicode's White_Space; \s has one sign more
const DOUBLE = /[\u00ab\u00bb\u201c-\u201f]/g;
const SINGLE = /[\u2018-\u201b\u2039\u203a]/g;

/** normalize("a  b ", ["spaces"]) -> "a b" */
export function normalize(text: string, steps: readonly Step[]): string {
  if (steps.includes("invisible")) text = text.replace(INVISIBLE, "");
  if (steps.includes("nfc")) text = text.normalize("NFC");
  if (steps.includes("spaces")) text = text.replace(WHITE, " ").replace(/^ | $/g, "");
  return steps.includes("quotes") ? text.replace(DOUBLE, '"').replace(SINGLE, "'") : text;
}
