// Keeps the page for visits without a network. What is new on the host is taken first; models are kept by the page itself, verified.
const CACHE = "limelight";
const PAGE = ["./", "models.json", "manifest.webmanifest", "icon.svg"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(PAGE.map((name) => new Request(name, { cache: "reload" })))));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin || url.searchParams.has("v")) return;
  const plain = url.origin + url.pathname; // one copy, whatever stands behind a question mark
  event.respondWith(
    caches.open(CACHE).then(async (cache) => {
      try {
        const answer = await fetch(event.request);
        if (answer.ok && (await cache.match(plain))) await cache.put(plain, answer.clone());
        return answer;
      } catch (error) {
        const kept = (await cache.match(plain)) ?? (event.request.mode === "navigate" ? await cache.match("./") : undefined);
        if (kept) return kept;
        throw error;
      }
    }),
  );
});
