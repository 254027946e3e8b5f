// The service worker of one project's label screen: without a connection, a reload shows the page
// that was loaded last, with its styles and scripts; ahead.js fills in the items. With a connection,
// everything comes from the server.
//
// There is one cache for each account, "label|ACCOUNT". The page names its account, so that a page is
// never kept with the texts of somebody else.
const PATIENCE = 6000;
const DAY = 24 * 3600 * 1000;
const AWAY = [502, 503, 504];
const FILES = ["script", "style", "font", "image"];
const PREFIX = "label|";

const base = new URL(self.registration.scope);
const isOurs = (name) => name.startsWith(PREFIX);

// What is sent goes straight to the server: what a page sends as it is left would not outlive it.
self.addEventListener("install", (event) => {
  const sent = [{ condition: { requestMethod: "POST" }, source: "network" }];
  event.waitUntil(Promise.resolve(event.addRoutes?.(sent)).catch(() => {}));
  self.skipWaiting();
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The one cache that is there; none while it is not clear whose it is.
async function openOnly() {
  const names = (await caches.keys()).filter(isOurs);
  return names.length === 1 ? caches.open(names[0]) : null;
}

async function forget(but) {
  const names = (await caches.keys()).filter((name) => isOurs(name) && name !== but);
  await Promise.all(names.map((name) => caches.delete(name)));
}

// A copy that is read in two parts would hold up the page itself.
async function keepPage(response) {
  const text = await response.text();
  const account = /<body[^>]* data-account="(\d+)"/.exec(text)?.[1];
  await forget(account && PREFIX + account);
  if (account && text.includes(' id="screen"')) await (await caches.open(PREFIX + account)).put(base, withText(response, text));
}

// The page that was kept, if somebody worked with it within a day.
async function findKept() {
  const cache = await openOnly();
  const found = await cache?.match(base);
  const worked = await cache?.match(new URL("kept/?name=order", base));
  const times = [found?.headers.get("Date"), worked?.headers.get("Kept-At")].map((time) => Date.parse(time ?? "") || 0);
  return Date.now() - Math.max(...times) < DAY ? found : null;
}

function withText(response, text) {
  const headers = new Headers(response.headers);
  for (const name of ["Content-Encoding", "Content-Length", "Set-Cookie"]) headers.delete(name);
  return new Response(text, { headers });
}

// It says of itself that it comes from here.
async function showKept(found) {
  return withText(found, (await found.text()).replace(' id="screen"', ' id="screen" data-kept'));
}

async function showPage(event) {
  const kept = await findKept();
  try {
    const response = await fetch(event.request, kept ? { signal: AbortSignal.timeout(PATIENCE) } : {});
    if (kept && AWAY.includes(response.status)) return showKept(kept);
    // Somebody who is sent to the sign-in page is signed out; 403 and 404 are no longer a member.
    const isOut = [401, 403, 404].includes(response.status);
    if (response.type === "opaqueredirect" || response.redirected || isOut) event.waitUntil(forget());
    else if (response.ok) event.waitUntil(keepPage(response.clone()));
    return response;
  } catch (error) {
    if (kept) return showKept(kept);
    throw error;
  }
}

async function showFile(event) {
  try {
    const response = await fetch(event.request);
    const cache = response.ok && (await openOnly());
    if (cache) event.waitUntil(cache.put(event.request, response.clone()));
    return response;
  } catch (error) {
    const cache = await openOnly();
    const found = await cache?.match(event.request, { ignoreVary: true });
    if (found) return found;
    throw error;
  }
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== base.origin) return;
  if (request.mode === "navigate") {
    if (url.pathname === base.pathname) event.respondWith(showPage(event));
  } else if (FILES.includes(request.destination)) event.respondWith(showFile(event));
});

// At the first visit the page was loaded before this worker was there.
async function keepFirst({ page, files }) {
  const response = await fetch(page);
  if (!response.ok || response.redirected) return;
  await keepPage(response);
  const cache = await openOnly();
  await cache?.addAll(files);
}

self.addEventListener("message", (event) => {
  if (event.data?.page === base.pathname) event.waitUntil(keepFirst(event.data));
});
