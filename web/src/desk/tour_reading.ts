/** How text becomes vectors: pieces, and their places. */

import { isEnd, quoted, shareOf, verdictOf, judged, type Scene, type Tour } from "./tour";

export const tokens: Tour = {
  id: "tokens",
  title: "Tokens",
  text: [
    "The model reads numbers. So the text is cut into pieces from a fixed list, and each piece has its number there.",
    "▁ marks where a word begins. Frequent words are one piece; rare words are put together from several. A word that nobody ever saw can still be read, as long as its letters were seen.",
    "</s> ends a text. The translation is over when the model writes it.",
  ],
  here: (trace) => `The list of this model has ${trace.model.vocab.toLocaleString("en")} pieces.`,
  tasks: [
    {
      ask: "Write a text of your own and translate it.",
      done: (now, before) => before !== null && now.trace.source.text !== before.trace.source.text,
      live: true,
    },
    {
      ask: "Find a word that is cut into several pieces. A rare one, or an invented name, will do.",
      done: (now) => longestWord(now).length > 1,
      told: (now) => `${longestWord(now).join(" ")} is one word in ${longestWord(now).length} pieces.`,
      live: true,
    },
    {
      ask: "Choose a piece of the translation on the stage. What else might have stood there?",
      done: ({ view, trace }) => view.query !== null && view.query < trace.target.tokens.length,
      told: ({ view, trace }) => {
        const [first, second] = trace.target.tokens[view.query ?? -1]?.topk ?? [];
        if (!first || !second) return "";
        return `Most probable: ${quoted(first[1])} with ${shareOf(first[2])}; then ${quoted(second[1])} with ${shareOf(second[2])}.`;
      },
    },
  ],
};

/** The pieces of the word that has most of them. */
function longestWord({ trace }: Scene): string[] {
  const byWord = new Map<number, string[]>();
  for (const { word, piece } of trace.source.tokens) if (word !== null && !isEnd(piece)) byWord.set(word, [...(byWord.get(word) ?? []), piece]);
  return [...byWord.values()].reduce((longest, pieces) => (pieces.length > longest.length ? pieces : longest), []);
}

const KINDS: Readonly<Record<string, string>> = {
  sinusoidal: "This model adds sines and cosines of many lengths (section 3.5). They are not learned.",
  learned: "This model adds one learned vector for each place.",
  rotary: "This model adds nothing. It turns queries and keys by an angle that grows with the place, so that a product of the two depends on their distance.",
};

export const positions: Tour = {
  id: "positions",
  title: "Positions",
  text: [
    "Attention compares each piece with every other, wherever they stand. To an encoder without positions, a shuffled sentence is the same sentence.",
    "So each piece is told its place before the first layer, or inside each of them.",
  ],
  here: (trace) => KINDS[trace.model.positions] ?? `This model has positions of the kind ${quoted(trace.model.positions)}.`,
  tasks: [
    { ask: "Open Positions.", done: ({ view }) => view.panel === "positions" },
    {
      ask: "Turn the positions off (zero), and read the verdict.",
      done: (now) => now.view.positions === "zero" && judged(now),
      told: verdictOf,
      live: true,
    },
    {
      ask: "Shuffle them instead.",
      done: (now) => now.view.positions.startsWith("shuffle") && judged(now),
      told: verdictOf,
      live: true,
    },
    { ask: "Set them back to normal.", done: ({ view, trace }) => view.positions === "normal" && !trace.baseline, live: true },
  ],
  end: "The model learned with positions in place. That it fails without them shows that it uses them, and not that no model could do without.",
};
