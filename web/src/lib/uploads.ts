/** Files to be translated: which the server takes, and where the answer can be fetched. */

/** Why a file is not sent, or null. `formats` are ends of names with the dot: [".txt", ".html"]. */
export function refusalOf(name: string, size: number, formats: readonly string[], largest: number): string | null {
  const lower = name.toLowerCase();
  if (!formats.some((format) => lower.endsWith(format.toLowerCase())))
    return `This server translates ${formats.join(" ")}; it cannot read ${endOf(name)}.`;
  if (!size) return "The file is empty.";
  if (size > largest) return `The file has ${sizeOf(size)}; at most ${sizeOf(largest)} are taken.`;
  return null;
}

/** The address that came back, on the host that this page comes from: behind a proxy the server may not know its own name.
 *
 * here("http://10.0.0.3:5000/download_file/x.a.txt", "https://translate.example/mt/") -> "https://translate.example/mt/download_file/x.a.txt"
 */
export function here(url: string, page: string): string | null {
  const name = /\/download_file\/([^/?#]+)$/.exec(url)?.[1];
  return name ? new URL(`download_file/${name}`, page).href : null;
}

/** sizeOf(2_500_000) -> "2.5 MB" */
export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function endOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot) : "files without an ending";
}
