/** A request as a line for a shell: quoted so that no text can leave its quotes. */

/** quoted("it's") -> 'it'\''s' in single quotes: inside them a POSIX shell reads nothing but the quote itself. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curlOf(url: string, body: unknown, keyNeeded = false): string {
  const lines = [`curl ${quoted(url)}`, "-H 'Content-Type: application/json'"];
  if (keyNeeded) lines.push('-H "Authorization: Bearer $LIMELIGHT_KEY"');
  lines.push(`--data-raw ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}
