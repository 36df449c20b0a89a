/** Characters as the server counts them: code points, not the UTF-16 units of JavaScript. charactersOf("a😀") -> 2. */
export function charactersOf(text: string): number {
  let pairs = 0;
  for (let i = 0; i + 1 < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(i + 1);
    if (next >= 0xdc00 && next <= 0xdfff) pairs++, i++;
  }
  return text.length - pairs;
}

/** grouped(5000) -> "5,000" */
export function grouped(count: number): string {
  return count.toLocaleString("en");
}

/** A lone half of a surrogate pair, or U+0000, is no text: the server refuses it, so it becomes U+FFFD as elsewhere on the web. */
export function wellFormed(text: string): string {
  return text.replace(/\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
}
