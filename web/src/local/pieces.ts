/** Words become pieces and pieces text, id for id as SentencePiece does it: BPE, unigram, byte fallback, symbols that are never cut. */

export const SPACE = "\u2581";

const enum Kind {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6,
}

interface Piece {
  text: string;
  score: number;
  kind: Kind;
}

const UNKNOWN_PENALTY = 10;
const REMEMBERED = 20_000; // words

export class Pieces {
  readonly vocabulary: readonly string[];
  private readonly ids = new Map<string, number>(); // what text can become
  private readonly whole: string[]; // never cut, longest first
  private readonly bytes: number[] = [];
  private readonly known = new Map<string, number[]>();
  private readonly unigram: boolean;
  private unknown = 0;
  private least = Infinity;
  private longest = 1;

  private constructor(
    private readonly pieces: readonly Piece[],
    algorithm: number,
    private readonly falls: boolean,
  ) {
    this.unigram = algorithm === 1;
    this.vocabulary = pieces.map((piece) => piece.text);
    pieces.forEach(({ text, score, kind }, id) => {
      if (kind === Kind.Unknown) this.unknown = id;
      else if (kind === Kind.Byte) this.bytes[parseInt(text.slice(3, 5), 16)] = id;
      else if (kind !== Kind.Control) {
        this.ids.set(text, id);
        this.longest = Math.max(this.longest, text.length);
      }
      if (kind === Kind.Normal) this.least = Math.min(this.least, score);
    });
    this.whole = pieces.filter((piece) => piece.kind === Kind.UserDefined).map((piece) => piece.text);
    this.whole.sort((a, b) => b.length - a.length);
  }

  /** From the bytes of a SentencePiece model. */
  static read(model: Uint8Array): Pieces {
    const pieces: Piece[] = [];
    let algorithm = 1;
    let falls = false;
    for (const [number, value] of fields(model)) {
      if (number === 1) pieces.push(pieceOf(value as Uint8Array));
      if (number === 2)
        for (const [inner, content] of fields(value as Uint8Array)) {
          if (inner === 3) algorithm = content as number;
          if (inner === 35) falls = content === 1;
        }
    }
    if (!pieces.length || (algorithm !== 1 && algorithm !== 2)) throw new Error("this is no SentencePiece model of BPE or unigram pieces");
    return new Pieces(pieces, algorithm, falls);
  }

  /** encode("ab ab") -> [7, 9, 7, 9]: word by word, as in training. Pieces that reach over spaces, or lack a lone one, need the whole text. */
  encode(text: string, byWords = true): number[] {
    if (/\p{Surrogate}/u.test(text)) throw new Error("a text holds half a character; remove it");
    if (!text || /^\s+$/u.test(text)) return [];
    if (!byWords) return this.segment(text);
    if (this.known.size > REMEMBERED) this.known.clear();
    const ids: number[] = [];
    for (const word of text.split(" ")) {
      let found = this.known.get(word);
      if (!found) this.known.set(word, (found = this.segment(word)));
      for (const id of found) ids.push(id);
    }
    return ids;
  }

  private segment(word: string): number[] {
    if (!word) return [this.ids.get(SPACE) ?? this.unknown];
    const spelt = SPACE + word.replaceAll(" ", SPACE);
    return this.fall(this.unigram ? this.mostProbable(spelt) : this.merge(spelt));
  }

  /** What has no piece is spelt in bytes, or is unknown; neighbours that are unknown are one. */
  private fall(parts: readonly [text: string, id: number][]): number[] {
    const ids: number[] = [];
    let before = false;
    for (const [text, id] of parts) {
      const lost = id === this.unknown;
      if (lost && this.falls) for (const byte of new TextEncoder().encode(text)) ids.push(this.bytes[byte] ?? this.unknown);
      else if (!lost || !before) ids.push(id);
      before = lost && !this.falls;
    }
    return ids;
  }

  /** Letters, and symbols that are never cut. */
  private cut(text: string): { text: string; frozen: boolean }[] {
    const parts = [];
    for (let at = 0; at < text.length; ) {
      const symbol = this.whole.find((each) => text.startsWith(each, at));
      const part = symbol ?? String.fromCodePoint(text.codePointAt(at)!);
      parts.push({ text: part, frozen: symbol !== undefined });
      at += part.length;
    }
    return parts;
  }

  /** Byte pair encoding (Sennrich et al. 2016): the best neighbours become one, again and again. A heap keeps long words linear enough. */
  private merge(text: string): [string, number][] {
    const symbols = this.cut(text);
    const next = symbols.map((_, i) => (i + 1 < symbols.length ? i + 1 : -1));
    const previous = symbols.map((_, i) => i - 1);
    const halves = new Map<string, [string, string]>(); // of pieces that are only on the way to others
    const heap = new Heap();
    const consider = (left: number, right: number): void => {
      if (left < 0 || right < 0 || symbols[left]!.frozen || symbols[right]!.frozen) return;
      const joined = symbols[left]!.text + symbols[right]!.text;
      if (joined.length > this.longest) return;
      const id = this.ids.get(joined);
      if (id === undefined) return;
      heap.push({ score: this.pieces[id]!.score, left, right, size: joined.length });
      if (this.pieces[id]!.kind === Kind.Unused) halves.set(joined, [symbols[left]!.text, symbols[right]!.text]);
    };
    for (let i = 0; i + 1 < symbols.length; i++) consider(i, i + 1);
    for (let top = heap.pop(); top; top = heap.pop()) {
      const left = symbols[top.left]!;
      const right = symbols[top.right]!;
      if (!left.text || !right.text || left.text.length + right.text.length !== top.size) continue;
      left.text += right.text;
      right.text = "";
      const after = (next[top.left] = next[top.right]!);
      if (after >= 0) previous[after] = top.left;
      consider(previous[top.left]!, top.left);
      consider(top.left, after);
    }
    const found: [string, number][] = [];
    const settle = (part: string): void => {
      const id = this.ids.get(part) ?? this.unknown;
      const both = this.pieces[id]!.kind === Kind.Unused ? halves.get(part) : undefined;
      if (both) both.forEach(settle);
      else found.push([part, id]);
    };
    for (const symbol of symbols) if (symbol.text) settle(symbol.text);
    return found;
  }

  /** Unigram (Kudo 2018): the most probable row of pieces. Sums are float32, as there. */
  private mostProbable(text: string): [string, number][] {
    const size = text.length;
    const score = new Float32Array(size + 1);
    const start = new Int32Array(size + 1).fill(-1);
    const id = new Int32Array(size + 1);
    const unknownScore = Math.fround(Math.fround(this.least) - UNKNOWN_PENALTY);
    const offer = (from: number, to: number, candidate: number, piece: number): void => {
      if (start[to] !== -1 && !(candidate > score[to]!)) return;
      score[to] = candidate;
      start[to] = from;
      id[to] = piece;
    };
    for (let from = 0; from < size; ) {
      const letter = text.codePointAt(from)! > 0xffff ? 2 : 1;
      let single = false;
      for (let to = from + 1; to <= Math.min(size, from + this.longest); to++) {
        const piece = this.ids.get(text.slice(from, to));
        if (piece === undefined || this.pieces[piece]!.kind === Kind.Unused) continue;
        const own = this.pieces[piece]!;
        offer(from, to, (own.kind === Kind.UserDefined ? -0.1 : own.score) + score[from]!, piece);
        single ||= to - from === letter;
      }
      if (!single) offer(from, from + letter, Math.fround(unknownScore + score[from]!), this.unknown);
      from += letter;
    }
    const found: [string, number][] = [];
    for (let at = size; at > 0; at = start[at]!) found.push([text.slice(start[at]!, at), id[at]!]);
    return found.reverse();
  }

  /** The text again. Control pieces leave no trace. */
  decode(ids: readonly number[]): string {
    let text = "";
    let begun = false;
    let bytes: number[] = [];
    for (const id of ids) {
      const piece = this.pieces[id];
      if (!piece) throw new Error(`id ${id} is no piece: there are ${this.pieces.length}`);
      if (piece.kind === Kind.Byte) {
        bytes.push(parseInt(piece.text.slice(3, 5), 16));
        continue;
      }
      text += spell(bytes);
      bytes = [];
      if (piece.kind === Kind.Control) continue;
      let part = piece.kind === Kind.Unknown ? " \u2047 " : piece.text;
      if (!begun && !text && part.startsWith(SPACE)) {
        part = part.slice(1);
        begun = true;
      }
      text += part.replaceAll(SPACE, " ");
    }
    return text + spell(bytes);
  }
}

/** UTF-8, with a sign of replacement for each byte that is part of no letter. */
export function spell(bytes: readonly number[]): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at]!;
    const length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    try {
      text += new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes.slice(at, at + length)));
      at += length;
    } catch {
      text += "\ufffd";
      at += 1;
    }
  }
  return text;
}

interface Pair {
  score: number;
  left: number;
  right: number;
  size: number;
}

/** The pair with the highest score comes first, of equals the one that stands first. */
class Heap {
  private readonly all: Pair[] = [];

  push(pair: Pair): void {
    const all = this.all;
    let at = all.push(pair) - 1;
    for (; at > 0; ) {
      const up = (at - 1) >> 1;
      if (!before(pair, all[up]!)) break;
      all[at] = all[up]!;
      at = up;
    }
    all[at] = pair;
  }

  pop(): Pair | undefined {
    const all = this.all;
    const top = all[0];
    const last = all.pop();
    if (!all.length || !last) return top;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= all.length) break;
      if (down + 1 < all.length && before(all[down + 1]!, all[down]!)) down++;
      if (!before(all[down]!, last)) break;
      all[at] = all[down]!;
      at = down;
    }
    all[at] = last;
    return top;
  }
}

function before(a: Pair, b: Pair): boolean {
  return a.score > b.score || (a.score === b.score && a.left < b.left);
}

function pieceOf(message: Uint8Array): Piece {
  const piece: Piece = { text: "", score: 0, kind: Kind.Normal };
  for (const [number, value] of fields(message)) {
    if (number === 1) piece.text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(value as Uint8Array);
    if (number === 2) piece.score = new DataView((value as Uint8Array).slice().buffer).getFloat32(0, true);
    if (number === 3) piece.kind = value as Kind;
  }
  return piece;
}

/** Number and content of each field of a protobuf message. */
function* fields(message: Uint8Array): Generator<[number, number | Uint8Array]> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined || scale > 2 ** 63) throw new Error("this SentencePiece model ends too early");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const kind = key % 8;
    if (kind === 0) yield [(key - kind) / 8, varint()];
    else {
      const length = kind === 5 ? 4 : kind === 1 ? 8 : varint();
      if (at + length > message.length) throw new Error("this SentencePiece model ends too early");
      yield [(key - kind) / 8, message.subarray(at, at + length)];
      at += length;
    }
  }
}
