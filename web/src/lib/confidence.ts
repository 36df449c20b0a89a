/** How sure a translator is of a word, in four steps. A step has a name, a colour and an underline, so that none of them is needed. */

export type Level = "sure" | "likely" | "unsure" | "doubtful";

/** A step begins at `from`. */
export const LEVELS: readonly { level: Level; from: number; name: string; range: string }[] = [
  { level: "sure", from: 0.8, name: "sure", range: "80 % or more" },
  { level: "likely", from: 0.6, name: "fairly sure", range: "from 60 %" },
  { level: "unsure", from: 0.4, name: "unsure", range: "from 40 %" },
  { level: "doubtful", from: 0, name: "doubtful", range: "below 40 %" },
];

/** levelOf(0.65) -> "likely"; null and undefined, where nothing is known, have no level. */
export function levelOf(confidence: number | null | undefined): Level | null {
  if (confidence === null || confidence === undefined || Number.isNaN(confidence)) return null;
  return (LEVELS.find((step) => confidence >= step.from) ?? LEVELS.at(-1)!).level;
}

/** percent(0.846) -> "85 %". What is not certain is never called 100 %, nor what is possible 0 %. */
export function percent(share: number): string {
  const whole = Math.round(share * 100);
  if (whole >= 100 && share < 1) return "99 %";
  if (whole <= 0 && share > 0) return "1 %";
  return `${Math.min(100, Math.max(0, whole))} %`;
}

/** What the number means, said of a bundle that was calibrated and of one that was not. */
export function meaning(calibrated: boolean): string {
  return calibrated
    ? "Of words with 60 %, about 60 in 100 were right on unseen text."
    : "The model's own claim, not calibrated: check marked words first.";
}

/** Why the first way to say it is not the one with the highest percentage, where it is not. */
export function order(choices: readonly { confidence?: number | null }[]): string {
  const sure = choices.map(({ confidence }) => confidence ?? 0);
  return Math.max(0, ...sure) > (sure[0] ?? 0) ? "best first by the probability of the whole; the percentages are of its words" : "";
}
