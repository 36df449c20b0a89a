/** How a translation comes about: where it looks in the source, how it is searched for, and what that explains. */

import { alignmentHead, brightest, crossing, dark, headName, heads, judged, quoted, sharpest, signed, verdictOf, type Scene, type Tour } from "./tour";

const NEXT_TO_NOTHING = 0.1; // of a log-probability: the translation is 10 % less likely

export const crossAttention: Tour = {
  id: "cross",
  title: "Cross attention as alignment",
  text: [
    "In cross attention the translation looks at the source: the queries come from the decoder, keys and values from what the encoder made.",
    "Nobody told the model which words belong together. Some heads find it out, because to translate a word helps when one looks at it. Other heads do something else.",
    "The ribbons on the stage show one head, the one that seems best at it.",
  ],
  tasks: [
    { ask: "Show cross attention.", done: ({ view }) => view.kind === "cross" },
    {
      ask: ({ trace }) => {
        const head = alignmentHead(trace);
        return head ? `Go to the head that the ribbons come from: ${headName(head)}.` : "Let the ribbons come from one head: align by auto.";
      },
      done: (now) => now.spot === alignmentHead(now.trace),
    },
    {
      ask: "Choose a piece of the translation. Where does it look?",
      done: ({ view, trace }) => view.query !== null && view.query < trace.target.tokens.length,
      told: (now) => {
        const row = now.view.query ?? 0;
        const most = now.spot.startsWith("cross.") ? brightest(now, row) : null;
        if (!most) return "";
        return `${quoted(now.trace.target.tokens[row]!.piece)} looks at ${quoted(now.trace.source.tokens[most.column]!.piece)} with ${most.weight.toFixed(2)}.`;
      },
    },
    {
      ask: "Find a text whose ribbons cross: the other language has another order.",
      done: ({ trace }) => crossing(trace) !== null,
      told: ({ trace }) => {
        const piece = ([source, target]: [number, number]): string =>
          `${quoted(trace.source.tokens[source]!.piece)} to ${quoted(trace.target.tokens[target]!.piece)}`;
        return `${(crossing(trace) ?? []).map(piece).join(" crosses ")}.`;
      },
      live: true,
    },
  ],
};

export const beam: Tour = {
  id: "beam",
  title: "Beam search",
  text: [
    "At each step the model gives a probability to every piece that might come next. To take the most probable one each time is greedy search. It never takes anything back.",
    "Beam search keeps the best few beginnings side by side. One that is behind now may win later.",
    "Each further piece makes a text less probable, so short ones would win. Scores are therefore divided by a length penalty.",
  ],
  tasks: [
    { ask: "Set the beam to 1: greedy.", done: (now) => now.view.beam === 1 && now.trace.beam?.size === 1, told: outcome, live: true },
    { ask: "Set it to 4 or more.", done: (now) => now.view.beam !== 1 && (now.trace.beam?.size ?? 0) >= 4, told: outcome, live: true },
    { ask: "Open the beam tree. Dotted branches were given up.", done: ({ view }) => view.panel === "beam", told: pruned },
    {
      ask: "Choose a branch that was given up: the model must go on from there.",
      done: (now) => now.view.prefix.length > 0 && judged(now),
      told: ({ trace }) =>
        `Forced, it writes ${quoted(trace.target.text)}, log-probability ${trace.target.logp.toFixed(2)}.` +
        (trace.baseline?.logp === undefined ? "" : ` By itself it had ${trace.baseline.logp.toFixed(2)}.`),
      live: true,
    },
  ],
};

function outcome({ trace }: Scene): string {
  return `${quoted(trace.target.text)}, log-probability ${trace.target.logp.toFixed(2)}.`;
}

function pruned({ trace }: Scene): string {
  const nodes = trace.beam?.nodes ?? [];
  const lost = nodes.filter((node) => !node.kept && !node.done).length;
  return nodes.length ? `${nodes.length} beginnings are drawn here; ${lost} of them were given up.` : "";
}

export const explanation: Tour = {
  id: "explanation",
  title: "Is attention an explanation?",
  text: [
    "A weight says where a head looked. It does not say that the model needed what it saw there.",
    "Jain and Wallace (“Attention is not Explanation”, 2019) found quite different weights that lead to the same answer. Wiegreffe and Pinter (“Attention is not not Explanation”, 2019) replied that it depends on what one asks of an explanation.",
    "What can be tested: take a light away, and see what changes.",
  ],
  tasks: [
    {
      ask: ({ trace }) => {
        const head = sharpest(trace, "cross");
        return `Go to the cross head with the sharpest light${head ? `: ${headName(head.id)}, ${head.entropy.toFixed(2)} bit` : ""}.`;
      },
      done: (now) => now.spot === sharpest(now.trace, "cross")?.id,
    },
    {
      ask: "Mute it (m). Is it as important as it is bright?",
      done: (now) => judged(now) && dark(now.trace).includes(now.spot) && now.spot.startsWith("cross."),
      told: verdictOf,
      live: true,
    },
    {
      ask: `Reset, and find a head that can be muted and changes next to nothing (less than ${NEXT_TO_NOTHING}), whatever it looks at.`,
      done: (now) => judged(now) && dark(now.trace).length === 1 && Math.abs(now.trace.baseline!.delta_logp) < NEXT_TO_NOTHING,
      told: (now) => `${headName(dark(now.trace)[0] ?? "")}: ${signed(now.trace.baseline?.delta_logp ?? 0, 3)}.`,
      live: true,
    },
    {
      ask: "Mute all cross heads.",
      done: (now) => judged(now) && allCross(now),
      told: verdictOf,
      live: true,
    },
    {
      ask: "Leave them dark and translate another text.",
      done: (now, before) => before !== null && allCross(now) && allCross(before) && now.trace.source.text !== before.trace.source.text,
      told: (now) => `It writes ${quoted(now.trace.target.text)}, and cannot know what it translates: nothing of the source reaches it.`,
      live: true,
    },
  ],
  end: "Muting tests what a picture only suggests. It is no perfect test either: the other heads learned with this one beside them.",
};

function allCross({ trace }: Scene): boolean {
  const all = heads(trace, "cross");
  return all.length > 0 && dark(trace, "cross").length === all.length;
}
