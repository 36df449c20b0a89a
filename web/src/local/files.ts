/** Files of the page: from inside a single file, from what was kept of an earlier visit, or fetched; none is used before its checksum is right. */

import type { FileFacts, Models } from "./config";

export const CACHE = "limelight";
const MOST = 2 ** 31; // bytes of a file

export type Progress = (loaded: number) => void;

/** What a single file has inside: name -> base64 of gzip. Null in a folder. */
function packed(): Record<string, string> | null {
  const place = typeof document === "undefined" ? null : document.getElementById("files");
  return place?.textContent ? (JSON.parse(place.textContent) as Record<string, string> | null) : null;
}
let inside: Record<string, string> | null | undefined;

export function isSingleFile(): boolean {
  return (inside ??= packed()) !== null;
}

export async function readModels(): Promise<Models> {
  const bytes = isSingleFile() ? await unpack("models.json") : new Uint8Array(await (await fetched("models.json", { cache: "no-cache" })).arrayBuffer());
  const models = JSON.parse(new TextDecoder().decode(bytes)) as Models;
  if (models.format !== 1) throw new Error(`models.json has format ${models.format}, and this page knows 1; export again`);
  return models;
}

/** One file, verified. `signal` ends it; `progress` is told the bytes so far. */
export async function load(name: string, facts: FileFacts, progress: Progress = () => {}, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const url = isSingleFile() ? "" : address(name, facts);
  const cache = url && "caches" in globalThis ? await caches.open(CACHE).catch(() => null) : null; // there is none without https
  const known = await cache?.match(url);
  const bytes = !url
    ? await unpack(name)
    : known
      ? new Uint8Array(await known.arrayBuffer())
      : await read(await fetched(url, signal ? { signal } : {}), facts, progress);
  try {
    await verify(name, bytes, facts);
  } catch (error) {
    await cache?.delete(url).catch(() => false);
    throw error;
  }
  if (cache && !known) await keep(cache, url, bytes).catch(() => {}); // a full disk costs only the next visit
  progress(bytes.length);
  return bytes;
}

async function verify(name: string, bytes: Uint8Array<ArrayBuffer>, facts: FileFacts): Promise<void> {
  const found = bytes.length === facts.bytes ? await sha256(bytes) : "";
  if (found === facts.sha256) return;
  const why = found ? "its checksum is another" : `it has ${bytes.length} bytes instead of ${facts.bytes}`;
  throw new Error(`${name} was changed on its way or on its disk, and is not used: ${why}; export or copy the page again`);
}

export function address(name: string, facts: FileFacts): string {
  return `${new URL(name, document.baseURI).href}?v=${facts.sha256.slice(0, 16)}`;
}

/** In place of what was kept of the file before. */
async function keep(cache: Cache, url: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  await cache.put(url, new Response(bytes));
  for (const old of await cache.keys(url, { ignoreSearch: true })) if (old.url !== url) await cache.delete(old);
}

async function fetched(url: string, options: RequestInit = {}): Promise<Response> {
  const answer = await fetch(url, { credentials: "same-origin", ...options }).catch((error: unknown) => {
    if (!document.baseURI.startsWith("file:")) throw error;
    throw new Error("browsers read no folder from a disk; serve it (python -m http.server -d FOLDER), or export with --single-file");
  });
  if (!answer.ok) throw new Error(`${new URL(url, document.baseURI).pathname} was not found (${answer.status}); copy the whole folder`);
  return answer;
}

async function read(answer: Response, facts: FileFacts, progress: Progress): Promise<Uint8Array<ArrayBuffer>> {
  if (facts.bytes > MOST) throw new Error("a file of the model is too large for a browser");
  const bytes = new Uint8Array(facts.bytes);
  const reader = answer.body!.getReader();
  let at = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (at + part.value.length > facts.bytes) return new Uint8Array(at + part.value.length); // too long: refused by its size
    bytes.set(part.value, at);
    progress((at += part.value.length));
  }
  return bytes.slice(0, at);
}

async function unpack(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = (inside ??= packed())![name];
  if (text === undefined) throw new Error(`this file has no ${name} inside; export it again`);
  const raw = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Without https a browser has no crypto.subtle, so there is a second way. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = globalThis.crypto?.subtle ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) : digestSlowly(bytes);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** FIPS 180-4. The constants are the first bits of roots of primes. */
export function digestSlowly(bytes: Uint8Array): Uint8Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const bits = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0;
  const K = Int32Array.from(primes, (prime) => bits(Math.cbrt(prime)));
  const H = Int32Array.from(primes.slice(0, 8), (prime) => bits(Math.sqrt(prime)));
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);
  const W = new Int32Array(64);
  const turn = (x: number, n: number): number => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 64; i++) {
      const [a, b] = [W[i - 15] ?? 0, W[i - 2] ?? 0];
      const s0 = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      const s1 = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      W[i] = i < 16 ? view.getInt32(at + 4 * i) : W[i - 16]! + s0 + W[i - 7]! + s1;
    }
    const v = Int32Array.from(H);
    for (let i = 0; i < 64; i++) {
      const [a, b, c, , e, f, g, h] = v as unknown as number[];
      const t1 = (h! + (turn(e!, 6) ^ turn(e!, 11) ^ turn(e!, 25)) + ((e! & f!) ^ (~e! & g!)) + K[i]! + W[i]!) | 0;
      const t2 = ((turn(a!, 2) ^ turn(a!, 13) ^ turn(a!, 22)) + ((a! & b!) ^ (a! & c!) ^ (b! & c!))) | 0;
      v.copyWithin(1, 0, 7);
      v[4] = v[4]! + t1;
      v[0] = t1 + t2;
    }
    for (let i = 0; i < 8; i++) H[i] = H[i]! + v[i]!;
  }
  const digest = new DataView(new ArrayBuffer(32));
  H.forEach((word, i) => digest.setInt32(4 * i, word));
  return new Uint8Array(digest.buffer);
}
