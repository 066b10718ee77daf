// Keeps the page for use without a network. The export fills in version and files.
const CACHE = "weir-lab-VERSION";
const FILES = ["FILES"];

self.addEventListener("install", (event) => {
  const all = FILES.map((file) => new Request(file, { cache: "no-cache" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(all)));
});

self.addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name.startsWith("weir-lab-") && name !== CACHE);
  const drop = async () => Promise.all(old(await caches.keys()).map((name) => caches.delete(name)));
  event.waitUntil(drop().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  const kept = async () => (await caches.open(CACHE)).match(request, { ignoreSearch: true });
  event.respondWith(kept().then((found) => found ?? fetch(request)));
});
