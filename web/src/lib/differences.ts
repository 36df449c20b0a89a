/** What an alternative says differently: its words, those that the best translation does not have marked. */

export interface Told {
  text: string;
  changed: boolean;
}

const MOST_CELLS = 250_000; // of the table below; beyond, comparing costs more than it tells

/** differences("a blue shirt", "a blue top") -> [{"a blue ", false}, {"top", true}]. Joined, they are `other`.
 *
 * Words that both have in the same order, as many as possible (longest common subsequence), are not changed.
 */
export function differences(best: string, other: string): Told[] {
  return bothSides(best, other)[1];
}

/** Both texts by one comparison: what is not changed in the one is not changed in the other. */
export function bothSides(before: string, after: string): [Told[], Told[]] {
  const [a, b] = [before, after].map((text) => text.split(/(\s+)/).filter(Boolean)) as [string[], string[]];
  const [ours, theirs] = [a, b].map((parts) => parts.filter((part) => part.trim())) as [string[], string[]];
  if ((ours.length + 1) * (theirs.length + 1) > MOST_CELLS) return [unmarked(before), unmarked(after)];
  const [keptBefore, keptAfter] = common(ours, theirs);
  return [mark(a, keptBefore), mark(b, keptAfter)];
}

const unmarked = (text: string): Told[] => (text ? [{ text, changed: false }] : []);

function mark(parts: readonly string[], kept: ReadonlySet<number>): Told[] {
  const told: Told[] = [];
  let word = 0;
  for (const part of parts) {
    const changed = part.trim() ? !kept.has(word++) : false;
    const last = told.at(-1);
    if (last && last.changed === changed) last.text += part;
    else told.push({ text: part, changed });
  }
  return told;
}

export interface Change {
  text: string;
  of: "both" | "theirs" | "ours";
}

/** What the source of a match has, and what the text has instead.
 *
 * changes("Open file %s", "Open the file %s") -> "Open " of both, "the " ours, "file %s" of both. Without what is ours it is `theirs`.
 */
export function changes(theirs: string, ours: string): Change[] {
  const words = (text: string): string[] => text.match(/\S+\s*/g) ?? [];
  const [a, b] = [words(theirs), words(ours)];
  if ((a.length + 1) * (b.length + 1) > MOST_CELLS) return [{ text: theirs, of: theirs === ours ? "both" : "theirs" }];
  const bare = (word: string) => word.trim();
  const [, kept] = common(a.map(bare), b.map(bare));
  const made: Change[] = [];
  const put = (text: string, of: Change["of"]) => {
    const last = made.at(-1);
    if (last?.of === of) last.text += text;
    else made.push({ text, of });
  };
  let [at, waiting] = [0, ""];
  b.forEach((word, number) => {
    if (!kept.has(number)) return void (waiting += word);
    while (bare(a[at]!) !== bare(word)) put(a[at++]!, "theirs");
    if (waiting) put(waiting, "ours");
    waiting = "";
    put(a[at++]!, "both");
  });
  while (at < a.length) put(a[at++]!, "theirs");
  if (waiting) put(waiting, "ours");
  return made;
}

/** Which words of `a` and which of `b` are in the longest common subsequence. */
function common(a: readonly string[], b: readonly string[]): [Set<number>, Set<number>] {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  const [ofA, ofB] = [new Set<number>(), new Set<number>()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) ofA.add(i++), ofB.add(j++);
    else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) i++;
    else j++;
  }
  return [ofA, ofB];
}
