// The items after the next one, which are shown while there is no connection, and what a reload
// without a connection shows. Nobody holds these items: each label takes its slot when it arrives.
//
// The panels are kept as the server sent them: on this page, and in the browser's cache where the
// service worker (offline_worker.js) keeps the page. signed_in.js deletes the cache.
import { address, ask, drawn, panel, parse, screen } from "./page.js";

const FEW = 4; // with so few items left, more are asked for
const OLD = 5 * 60_000; // items that were sent so long ago may be with others by now
const SOON = 5000; // near the end of the work there are always few
const LATER = 1500; // what the person does now comes first

const kept = new Map(); // name of an item -> its panel's markup
let names = []; // of the items ahead, in order
let held; // the name of the item that is held next, if it is here
let asked = 0;
let timer = 0;
let writing = Promise.resolve();

const ORDER = "order";
const cacheName = () => `label|${document.body.dataset.account}`;
const addressOf = (name) => `${address("kept/")}?${new URLSearchParams({ name })}`;

// ------------------------------------------------------------------------- on this page

const isFresh = (name) => name !== panel().dataset.item;

export const count = (isDone) => names.filter((name) => isFresh(name) && !isDone(name)).length;

// The next panel; `isDone` says of an item that it has its label.
export function take(isDone) {
  while (names.length) {
    const name = names.shift();
    if (!isFresh(name) || isDone(name) || !kept.has(name)) continue;
    return sectionOf(name);
  }
  return null;
}

function sectionOf(name) {
  const section = parse(kept.get(name)).querySelector("section");
  section.id = "panel";
  return section;
}

function add(section, isAhead) {
  if (!section.dataset.item) return;
  if (isAhead) section.dataset.ahead = "";
  kept.set(section.dataset.item, section.outerHTML);
}

// A panel that the server just sent, before any script has touched it.
export const keep = (section) => section.dataset.phase !== "qualification" && add(section, false);

// The painted item, the one held next (if any) and those ahead are what a reload shows.
export function follow(next) {
  held = next;
  tidy();
  clearTimeout(timer);
  timer = setTimeout(refresh, LATER);
}

function tidy() {
  const now = panel().dataset.item;
  names = names.filter((name) => name !== now && name !== held);
  const wanted = [...new Set([now, held, ...names])].filter((name) => kept.has(name));
  for (const name of [...kept.keys()]) if (!wanted.includes(name)) kept.delete(name);
  store(wanted);
}

async function refresh() {
  const { item, phase } = panel().dataset;
  if (!item || phase === "qualification" || isKept()) return;
  const age = Date.now() - asked;
  if (age < SOON || (names.length >= FEW && age < OLD)) return;
  asked = Date.now();
  const answer = await ask(address("ahead/"));
  if (answer.kind !== "stored") return;
  const sections = [...parse(answer.body).querySelectorAll("section[data-item]")];
  const fresh = sections.filter(({ dataset }) => dataset.item !== panel().dataset.item && dataset.item !== held);
  for (const section of fresh) add(section, true);
  names = fresh.map((section) => section.dataset.item);
  tidy();
}

// ---------------------------------------------------------------------- in the browser's cache

const responseOf = (text) => new Response(text, { headers: { "Content-Type": "text/plain; charset=utf-8", "Kept-At": new Date().toUTCString() } });

// One after the other, so that the last state is what stays, and once the item is painted.
function store(wanted) {
  if (!globalThis.caches || !document.body.dataset.account) return;
  const markups = wanted.map((name) => [name, kept.get(name)]);
  writing = writing.then(drawn).then(() => write(markups)).catch(() => {}); // no room: it stays on this page
}

const written = new Map();

async function write(markups) {
  const cache = await caches.open(cacheName());
  for (const [name, markup] of markups) {
    if (written.get(name) === markup) continue;
    await cache.put(addressOf(name), responseOf(markup));
    written.set(name, markup);
  }
  await cache.put(addressOf(ORDER), responseOf(JSON.stringify(markups.map(([name]) => name))));
  // Also what an earlier load of the page left there.
  const wanted = new Set([ORDER, ...markups.map(([name]) => name)].map((name) => new URL(addressOf(name), location).href));
  const base = new URL(address("kept/"), location).href;
  for (const { url } of await cache.keys()) {
    if (url.startsWith(base) && !wanted.has(url)) await cache.delete(url);
  }
  for (const name of [...written.keys()]) if (!markups.some(([one]) => one === name)) written.delete(name);
}

// ------------------------------------------------------------------- a reload without a connection

// Whether this page comes from the browser's cache, as the server could not be reached.
export const isKept = () => screen().dataset.kept !== undefined;
export const arrived = () => delete screen().dataset.kept;

// Brings back what was kept, and returns the first panel whose item has no label yet; null if there
// is none.
export async function restore(isDone) {
  const cache = await caches.open(cacheName());
  const order = await cache.match(addressOf(ORDER));
  names = order ? await order.json() : [];
  for (const name of names) {
    const answer = await cache.match(addressOf(name));
    if (answer) kept.set(name, await answer.text());
    written.set(name, kept.get(name));
  }
  while (names.length) {
    const name = names.shift();
    if (kept.has(name) && !isDone(name)) return sectionOf(name);
  }
  return null;
}

// ---------------------------------------------------------------------------- the service worker

// Where there is none (a private window, another host without TLS) all works but the reload.
export async function begin() {
  if (!navigator.serviceWorker || !globalThis.caches || isKept()) return;
  try {
    await navigator.serviceWorker.register(address("offline.js"), { scope: address("") });
    const { active } = await navigator.serviceWorker.ready;
    if (navigator.serviceWorker.controller && (await caches.match(address("")))) return;
    const loaded = performance.getEntriesByType("resource").map((one) => one.name);
    active.postMessage({ page: address(""), files: loaded.filter((one) => new URL(one).pathname.includes("/static/")) });
  } catch {
    // The label screen works without it.
  }
}
