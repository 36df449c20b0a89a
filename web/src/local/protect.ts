/** What must survive a translation is taken out as marks that the model copies, and put back: placeholders, tags, addresses, codes, emoji.
 * The kinds of limelight.text.careful.spans that a program or a page depends on; no second search is made where a mark is lost. */

export interface Kept {
  text: string;
  spans: string[];
  marked: boolean; // else the text is as it was given, and is only looked at
}

const WORD = "\\p{L}\\p{N}_"; // as \w in Python, which has no accents by themselves
const KINDS = [
  "⟦(?:0|[1-9][0-9]{0,2})⟧",
  "</?(?:[A-Za-z][\\w:.\\-]{0,80}(?:\\s[^<>]{0,400})?|\\d{1,3}\\s{0,9})/?>", // tags, also <1> of react-i18next
  "&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|(?:nbsp|lt|gt|amp|copy|reg|trade|hellip|mdash|ndash));",
  "%#@\\w{1,80}@|%arg\\b|\\$t\\([^()]{1,200}\\)", // of Xcode and i18next
  "%%|%[\\{<]\\w{1,80}[\\}>]|%(?:\\(\\w{1,80}\\)|\\d{1,3}\\$)?[\\-+#0',]{0,5}\\*?\\d{0,4}(?:\\.(?:\\d{1,4}|\\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?:[sd@fg]|[A-Za-z](?![\\w]))",
  "\\$\\{[^\\{\\}]{1,200}\\}|\\{\\{[^\\{\\}]{0,200}\\}\\}|\\{%[^\\{\\}]{0,200}%\\}|[$#]?\\{\\s{0,9}[\\w.:!$#\\[\\]\\-]{0,200}\\s{0,9}\\}",
  "(?<![A-Za-z0-9+.\\-])(?:[A-Za-z][A-Za-z0-9+.\\-]{1,20}://|mailto:|www\\.)[^\\s<>\"“”„«»⟦⟧]{0,1999}[^\\s<>\"“”„«»⟦⟧.,;:!?'’)\\]\\}]",
  `(?<![${WORD}.+@/%\\-])[${WORD}.+\\-]{1,64}@[A-Za-z0-9\\-]{1,63}(?:\\.[A-Za-z0-9\\-]{1,63}){1,8}`,
  `(?<![${WORD}.,\\-])(?=(?:[A-Z_\\-]{0,20}[0-9]){5})[A-Z0-9]{1,60}(?:[\\-_][A-Z0-9]{1,60}){0,20}(?![${WORD}]|-[0-9]|[.,][0-9])`,
  `(?<![${WORD}.,:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![${WORD}:]|[.,][0-9]|\\s{0,2}[AaPp]\\.?[Mm])`,
  "(?:[\\u{1f000}-\\u{1faff}\\u2600-\\u27bf\\u2b50\\u2b55]\\ufe0f?(?:\\u200d[\\u{1f000}-\\u{1faff}\\u2600-\\u27bf]\\ufe0f?){0,9}){1,99}",
];
const SPANS = new RegExp(KINDS.map((kind) => `(?:${kind})`).join("|"), "gu");
const MARK = /⟦(0|[1-9][0-9]{0,2})⟧/g;
const PERCENT = /[\p{N}]\s?%(?!\d|s|d)/u;

export function findSpans(text: string): { at: number; text: string }[] {
  return [...text.matchAll(SPANS)]
    .filter((match) => !(match[0].startsWith("%") && PERCENT.test(text.slice(Math.max(0, match.index - 2), match.index + 2))))
    .map((match) => ({ at: match.index, text: match[0] }));
}

/** protect("Open <b>%s</b>", 16).text -> "Open ⟦0⟧⟦1⟧⟦2⟧" */
export function protect(text: string, most: number): Kept {
  const found = findSpans(text);
  const spans = found.map((span) => span.text);
  if (!found.length || found.length > most) return { text, spans, marked: false };
  let marked = "";
  let reached = 0;
  found.forEach((span, number) => {
    marked += `${text.slice(reached, span.at)}⟦${number}⟧`;
    reached = span.at + span.text.length;
  });
  return { text: marked + text.slice(reached), spans, marked: true };
}

export function restore(kept: Kept, marked: string): string {
  return kept.marked ? marked.replace(MARK, (mark, number: string) => kept.spans[Number(number)] ?? mark) : marked;
}

/** What is lost or wrong, without the text itself; null: nothing. */
export function faultOf(kept: Kept, marked: string): string | null {
  const wanted = kept.marked ? kept.spans.map((_, number) => `⟦${number}⟧`) : [...kept.spans];
  const found = kept.marked ? [...marked.matchAll(MARK)].map(([mark]) => mark) : findSpans(marked).map((span) => span.text);
  const left = [...wanted];
  let more = 0;
  for (const each of found) {
    const place = left.indexOf(each);
    if (place < 0) more++;
    else left.splice(place, 1);
  }
  if (left.length || more) return `of ${wanted.length} things to keep ${left.length} are missing and ${more} too many`;
  const shown = kept.marked ? found.map((mark) => kept.spans[Number(mark.slice(1, -1))]!) : found;
  const open: string[] = [];
  for (const span of shown) {
    const tag = /^<(\/?)([A-Za-z][\w:.-]*|\d{1,3})[^>]*?(\/?)>$/.exec(span);
    if (!tag || tag[3] || /^(?:br|hr|img|input|wbr)$/i.test(tag[2]!)) continue;
    if (!tag[1]) open.push(tag[2]!);
    else if (open.includes(tag[2]!) && open.pop() !== tag[2]) return "paired tags are not nested";
  }
  const turns = (some: readonly string[]): string => some.filter((span) => /^%[^(\d]|^\{\}$/.test(span)).join("\0");
  return turns(shown) === turns(kept.spans) ? null : "placeholders without numbers are in another order";
}
