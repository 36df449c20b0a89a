/** The beam search as a picture: prefixes that hypotheses share are drawn once, and time goes to the right.
 *
 * Each node stands in the column of its step. Its best child stands in its own row, so that the winner is a straight line on top; the
 * others follow below, as close as their branches allow and never through one another.
 */

import { byteOf, isMark } from "./candidates";

export interface Branch {
  n: number; // its number
  p: number; // that of its parent, -1 for the root
  t: number; // step
  id: number;
  piece: string;
  lp: number; // of this piece
  cum: number; // of all pieces up to this one
  kept: number;
  done: number;
}

export interface Twig extends Branch {
  parent: Twig | null;
  children: Twig[];
  best: boolean; // on the way to the winner
  greedy: boolean; // on the way that always takes the most probable piece
  row: number;
}

export interface PlacedNode {
  n: number;
  x: number; // left edge of its label
  y: number; // middle of its row
  width: number;
  piece: string;
  twig: Twig;
}

export interface PlacedEdge {
  from: number;
  to: number;
  path: string; // "d" of an SVG path
  twig: Twig; // the child
}

export interface PlacedTree {
  width: number;
  height: number;
  columns: number[]; // left edge of the labels of each step
  nodes: PlacedNode[]; // row by row in each column
  edges: PlacedEdge[]; // in the order in which they are to be drawn
}

export const FONT = 13; // px, of a face in which each letter is 0.6 as wide as high
const ROW = 24;
const GAP = 34; // between columns, where the edges run
const PAD = 9; // around a label
const MARGIN = 14;

/** Nodes as twigs with parents and children, in the order in which they are drawn. Two nodes for one prefix become one. */
export function grow(branches: readonly Branch[], winner: number | null = null): Twig[] {
  const twigs = new Map<number, Twig>();
  const merged = new Map<string, Twig>();
  for (const branch of [...branches].sort((a, b) => a.t - b.t || a.n - b.n)) {
    const parent = twigs.get(branch.p) ?? null;
    const same = merged.get(`${parent?.n ?? -1} ${branch.id}`);
    if (same) {
      same.kept = Math.max(same.kept, branch.kept);
      same.done = Math.max(same.done, branch.done);
      twigs.set(branch.n, same);
      continue;
    }
    const twig: Twig = { ...branch, parent, children: [], best: false, greedy: false, row: 0 };
    twigs.set(branch.n, twig);
    merged.set(`${parent?.n ?? -1} ${branch.id}`, twig);
    parent?.children.push(twig);
  }
  for (let at = winner === null ? null : (twigs.get(winner) ?? null); at; at = at.parent) at.best = true;
  const all = [...merged.values()];
  const reach = new Map<Twig, number>(); // how many steps a branch goes on
  for (const twig of all.toReversed()) {
    reach.set(twig, twig.children.reduce((most, child) => Math.max(most, 1 + reach.get(child)!), 0));
    // Short branches stay near their parent, so that a long one below them does not tear the tree apart.
    twig.children.sort((a, b) => Number(b.best) - Number(a.best) || reach.get(a)! - reach.get(b)! || b.kept - a.kept || b.cum - a.cum || a.n - b.n);
  }
  for (let at = all.find((twig) => !twig.parent) ?? null; at; at = mostProbable(at.children)) at.greedy = true;
  return all;
}

function mostProbable(twigs: readonly Twig[]): Twig | null {
  return twigs.reduce<Twig | null>((best, twig) => (best === null || twig.lp > best.lp ? twig : best), null);
}

/** How far a branch reaches at each step from its root on, in rows from the root's. */
interface Outline {
  top: number[];
  bottom: number[];
}

/** Rows from the leaves up: first child level with its parent, each next one as high as its outline allows. */
function settle(twig: Twig): Outline {
  const whole: Outline = { top: [0], bottom: [0] };
  for (const [number, child] of twig.children.entries()) {
    const own = settle(child);
    let shift = 0;
    if (number > 0)
      for (let step = 0; step < own.top.length; step++) {
        const taken = whole.bottom[step + 1];
        if (taken !== undefined) shift = Math.max(shift, taken + 1 - own.top[step]!);
      }
    // Below its elder siblings also where its branch is longer than theirs, so that no edge crosses another.
    if (number > 0) shift = Math.max(shift, twig.children[number - 1]!.row + 1);
    child.row = shift;
    for (let step = 0; step < own.top.length; step++) {
      whole.top[step + 1] = Math.min(whole.top[step + 1] ?? Infinity, own.top[step]! + shift);
      whole.bottom[step + 1] = Math.max(whole.bottom[step + 1] ?? -Infinity, own.bottom[step]! + shift);
    }
  }
  return whole;
}

/** Rows were counted from the parent's; now from the top. */
function descend(twig: Twig, above: number): void {
  twig.row += above;
  for (const child of twig.children) descend(child, twig.row);
}

export interface Shown {
  winner?: number | null;
  step?: number; // only up to this step: a replay
  pruned?: boolean; // also what the search let go
}

export function layoutTree(branches: readonly Branch[], { winner = null, step = Infinity, pruned = true }: Shown = {}): PlacedTree {
  // The place of a node does not depend on the step, so that nothing moves while it is replayed.
  const drawn = grow(pruned ? branches : branches.filter((branch) => branch.kept || branch.done), winner);
  const root = drawn.find((twig) => !twig.parent);
  if (!root) return { width: 0, height: 0, columns: [], nodes: [], edges: [] };
  const rows = Math.max(...settle(root).bottom) + 1;
  descend(root, 0);

  const widths: number[] = [];
  for (const twig of drawn) widths[twig.t] = Math.max(widths[twig.t] ?? 0, widthOf(twig.piece) + 2 * PAD);
  const columns: number[] = [];
  let x = MARGIN;
  for (const [number, width] of widths.entries()) {
    columns[number] = x;
    x += (width ?? 0) + GAP;
  }
  const placed = (twig: Twig): PlacedNode => ({
    n: twig.n,
    x: columns[twig.t]!,
    y: MARGIN + twig.row * ROW + ROW / 2,
    width: widthOf(twig.piece) + 2 * PAD,
    piece: twig.piece,
    twig,
  });
  const seen = drawn.filter((twig) => twig.t <= step);
  const nodes = seen.map(placed).sort((a, b) => a.x - b.x || a.y - b.y);
  // What matters more is drawn later, and so above: the way to the winner is never covered.
  const weight = (twig: Twig): number => (twig.best ? 2 : twig.kept);
  const edges = [...seen].sort((a, b) => weight(a) - weight(b)).flatMap((twig) =>
    twig.parent ? [{ from: twig.parent.n, to: twig.n, twig, path: edge(placed(twig.parent), placed(twig)) }] : [],
  );
  return { width: x - GAP + MARGIN, height: 2 * MARGIN + rows * ROW, columns, nodes, edges };
}

/** A line to the right, a bend down, a line to the right. */
function edge(from: PlacedNode, to: PlacedNode): string {
  const [x0, y0, x1, y1] = [from.x + from.width, from.y, to.x, to.y];
  if (y0 === y1) return `M${x0} ${y0}H${x1}`;
  const bend = to.x - GAP / 2;
  return `M${x0} ${y0}H${bend - 6}q6 0 6 6V${y1 - 6}q0 6 6 6H${x1}`;
}

/** Of a label in px. Letters of East Asia are as wide as high; accents that join the letter before have no width. */
export function widthOf(text: string): number {
  let em = 0;
  for (const letter of text) em += /\p{M}/u.test(letter) ? 0 : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(letter) ? 1 : 0.6;
  return Math.ceil(em * FONT);
}

/** The twigs from the first piece to this one. */
export function pathTo(twig: Twig): Twig[] {
  const path: Twig[] = [];
  for (let at: Twig | null = twig; at?.parent; at = at.parent) path.unshift(at);
  return path;
}

/** textOf(["▁Die", "▁Kat", "ze"]) -> "Die Katze"; bytes are letters again: textOf(["<0xC3>", "<0xA9>"]) -> "é" */
export function textOf(pieces: readonly string[]): string {
  const spelled = pieces.filter((piece) => !isMark(piece)).flatMap((piece) => {
    const byte = byteOf(piece);
    return byte === null ? [...new TextEncoder().encode(piece.replaceAll("▁", " "))] : [byte];
  });
  return new TextDecoder().decode(new Uint8Array(spelled)).trim();
}

/** What a finished hypothesis scores: its log-probability by ((5 + n) / 6)^alpha, the end counted (Wu et al. 2016, equation 14). */
export function normalized(cum: number, pieces: number, alpha: number): number {
  return cum / ((5 + pieces) / 6) ** alpha;
}

/** The alpha by which a search normalized, from what it told of one that is longer than a piece; null when nothing tells it. */
export function penaltyOf(told: readonly { logp: number; score: number; pieces: number }[]): number | null {
  const one = told.find(({ logp, score, pieces }) => pieces > 1 && logp < 0 && score < 0);
  return one ? Math.log(one.logp / one.score) / Math.log((5 + one.pieces) / 6) : null;
}

/** True if that formula gives the scores that the search told; a model may normalize otherwise, and then only what it told is shown. */
export function explains(told: readonly { logp: number; score: number; pieces: number }[], alpha: number): boolean {
  return told.length > 0 && told.every(({ logp, score, pieces }) => Math.abs(normalized(logp, pieces, alpha) - score) < 1e-3);
}

export type Move = "parent" | "child" | "up" | "down" | "first" | "last";

/** Where an arrow key leads from a node; the node itself where there is nothing. */
export function moved(tree: PlacedTree, n: number, move: Move): number {
  const at = tree.nodes.find((node) => node.n === n);
  if (!at) return tree.nodes[0]?.n ?? -1;
  const there = new Set(tree.nodes.map((node) => node.n));
  const column = tree.nodes.filter((node) => node.twig.t === at.twig.t);
  const place = column.indexOf(at);
  const to = {
    parent: at.twig.parent?.n,
    child: at.twig.children.find((child) => there.has(child.n))?.n,
    up: column[place - 1]?.n,
    down: column[place + 1]?.n,
    first: tree.nodes[0]!.n,
    last: tree.nodes.filter((node) => node.twig.best).at(-1)?.n ?? tree.nodes.at(-1)!.n,
  }[move];
  return to !== undefined && there.has(to) ? to : n;
}
