/** How one piece looks at others: queries, keys and values; what may not be seen; many heads at once. */

import { brightest, dark, headName, heads as statistics, judged, matrixOf, verdictOf, type Scene, type Tour } from "./tour";
import { isTouched } from "./view";

export const vectors: Tour = {
  id: "vectors",
  title: "Query, key, value",
  text: [
    "In each head a piece makes three vectors. Its query says what it looks for, its key what it can be found by, its value what it hands over.",
    "The score of two pieces is the product of one's query and the other's key. It is divided by √d_k, for products grow with the width. Softmax makes each row of scores into weights that sum to 1 (equation 1).",
    "What a piece receives is the sum of the values, each times its weight.",
  ],
  here: ({ model }) => `Here d_k is ${model.d_model / model.heads}, so each score is divided by ${Math.sqrt(model.d_model / model.heads).toFixed(2)}.`,
  tasks: [
    { ask: "In Spot, show the scores: the products of queries and keys as they are.", done: ({ view }) => view.stage === "scores", live: true },
    { ask: "Show them scaled. The pattern stays, the range shrinks.", done: ({ view }) => view.stage === "scaled", live: true },
    {
      ask: "Go back to softmax and choose a row.",
      done: ({ view }) => view.stage === "softmax" && view.query !== null,
      told: rowSum,
    },
    {
      ask: "Open the trace stepper. There the whole way is laid out, each matrix with its formula; a click on a score shows the products that it is the sum of.",
      done: ({ view }) => view.panel === "stepper",
    },
  ],
};

function rowSum(now: Scene): string {
  const matrix = matrixOf(now);
  const row = Math.min(now.view.query ?? 0, matrix.rows - 1);
  let sum = 0;
  for (let column = 0; column < matrix.columns; column++) sum += matrix.at(row, column);
  const most = brightest(now, row);
  // Weights come as bytes, so a sum may miss 1 by half a step for each column.
  return `The weights of this row sum to ${sum.toFixed(2)}. The largest is ${most?.weight.toFixed(2)}.`;
}

export const masks: Tour = {
  id: "masks",
  title: "Masks",
  text: [
    "While it learns, the decoder is given the whole translation at once. It must not see what it has yet to write. So the scores of later pieces become −∞ before softmax, and their weights are exactly 0.",
    "Cells that may not be looked at are hatched. They have no colour, for a colour is a number, and a very small weight is not a mask.",
    "The same rule can hide a piece of the source from all heads.",
  ],
  tasks: [
    { ask: "Show the decoder's attention to itself.", done: ({ view }) => view.kind === "dec", told: hatchedCells },
    { ask: "Show the stage masked: scores, with the mask on.", done: ({ view }) => view.kind === "dec" && view.stage === "masked", live: true },
    {
      ask: "Hide a piece of the source, and read the verdict.",
      done: (now) => (now.trace.source.masked?.length ?? 0) > 0 && judged(now),
      told: (now) => `Hidden: ${(now.trace.source.masked ?? []).map((at) => now.trace.source.tokens[at]?.piece).join(" ")}. ${verdictOf(now)}`,
      live: true,
    },
    { ask: "Undo it (z).", done: ({ view, trace }) => view.hidden.length === 0 && !trace.source.masked?.length, live: true },
  ],
};

function hatchedCells({ trace }: Scene): string {
  const [, , rows, columns] = trace.attn.dec.shape as [number, number, number, number];
  let hidden = 0;
  for (let row = 0; row < rows; row++) hidden += Math.max(0, columns - 1 - row);
  return `${hidden} of ${rows * columns} cells are hatched: all that lie in the future.`;
}

export const heads: Tour = {
  id: "heads",
  title: "Heads",
  text: [
    "A head is one spotlight. Each layer has several that look at the same time, each with projections of its own (section 3.2.2). Their results are put side by side and mixed by W_O.",
    "A dimmer on this desk multiplies what a head found, before W_O. At 0 the head is mute.",
    "Entropy says how spread its light is: 0 bit is all on one piece, 3 bit is as wide as eight pieces that share it equally.",
  ],
  here: ({ model }) => {
    const all = model.heads * (model.enc_layers + 2 * model.dec_layers);
    return `This model has ${all} heads: ${model.heads} in each layer of the encoder, and twice that in each layer of the decoder.`;
  },
  tasks: [
    {
      ask: "Go from head to head (, and .). What do they look at?",
      done: (now, before) => before !== null && now.spot !== before.spot,
      told: (now) => {
        const found = statistics(now.trace).find((head) => head.id === now.spot);
        return found ? `${headName(found.id)} has an entropy of ${found.entropy.toFixed(2)} bit.` : "";
      },
    },
    { ask: "Sort the desk by entropy.", done: ({ view }) => view.sort === "entropy" },
    {
      ask: "Mute a head (m), and read the verdict.",
      done: (now) => dark(now.trace).length === 1 && judged(now),
      told: (now) => `Without ${headName(dark(now.trace)[0] ?? "")}: ${verdictOf(now)}`,
      live: true,
    },
    {
      ask: "Solo a head (s): the others of its kind go dark.",
      done: (now) => now.view.solo.length > 0 && judged(now),
      told: (now) => `${dark(now.trace).length} heads are dark. ${verdictOf(now)}`,
      live: true,
    },
    { ask: "Reset the desk.", done: ({ view, trace }) => !isTouched(view) && !trace.baseline, live: true },
  ],
};
