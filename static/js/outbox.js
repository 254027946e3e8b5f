// The outbox of labels. Each label is kept in this browser until the server has answered, so that
// neither a lost connection nor a closed window loses it. It is sent with a key: the server accepts
// the same key once, however often it is sent.
import { address, fieldsOf, panel, post, screen, whyNot } from "./page.js";
import * as drafts from "./drafts.js";

const AGAIN_AFTER = 5000;
const WHY = {
  connection: "for the connection",
  server: "because the server did not answer",
  "signed-out": "until you sign in again",
  forbidden: "until you reload this page",
};

const store = () => `outbox|${screen().dataset.who}`;
const flying = new Set();

let sending = null;
let timer = 0;
let handle = {};
let memory = null; // where this browser has no room, or allows none
let seen = []; // the keys that it kept then: another window may have kept more since

const stored = () => JSON.parse(localStorage.getItem(store()) ?? "[]");
const read = () => (memory ? [...memory, ...stored().filter(({ key }) => !seen.includes(key))] : stored());

function write(entries) {
  try {
    if (entries.length) localStorage.setItem(store(), JSON.stringify(entries));
    else localStorage.removeItem(store());
    memory = null;
  } catch {
    memory = entries;
    seen = stored().map(({ key }) => key);
  }
  show();
}

const put = (entry) => write([...read().filter((one) => one.key !== entry.key), entry]);

// The label that waited last for the connection. While there is one, the next ones wait behind it.
const isAway = ({ why }) => why === "connection" || why === "server";
const late = () => read().findLast((one) => !one.refused && isAway(one));
export const isLate = () => late() !== undefined;

export function join(entry) {
  const { why, told } = late() ?? { why: "server" };
  flying.delete(entry.key);
  put({ ...entry, why, told });
  later();
}

export function remove(entry) {
  flying.delete(entry.key);
  write(read().filter((one) => one.key !== entry.key));
}

// Kept from now on, and sent by who keeps it.
export function keep(entry) {
  flying.add(entry.key);
  put(entry);
}

// A label that could not be sent, and waits from now on.
export function wait(entry, answer) {
  put({ ...entry, why: answer.kind, told: whyNot(answer) });
  later();
}

// Whether a label of this item is kept here and not stored yet.
export const holds = (item) => read().some((one) => one.item === item && !one.refused);
export const waiting = () => read().filter((one) => !one.refused && !flying.has(one.key));

export function entry(form, button, seconds) {
  const fields = fieldsOf(form, button).filter(([name]) => name !== "seconds");
  const { item, phase } = panel().dataset;
  const title = (button?.dataset.title ? button : form.querySelector("label[data-title]:has(:checked)"))?.dataset.title ?? "answers";
  return { key: form.elements.key.value, item, phase, title, fields: [...fields, ["seconds", seconds]], at: Date.now() };
}

// The label that an undo takes back, also before the desk comes that shows it as the last.
function markLast({ key, phase }) {
  const undo = document.querySelector("#desk [data-undo]");
  if (undo && phase !== "blind") undo.elements.label.value = key;
}

// Sends one label; `isNextHere`: the answer is a sentence, not the next item.
export async function send(one, isNextHere) {
  keep(one);
  const headers = { "Label-Age": (Date.now() - one.at) / 1000, ...(isNextHere && { "Label-Next": "here" }) };
  const answer = await post(address("submit/"), one.fields, { headers });
  flying.delete(one.key);
  if (answer.kind === "stored") markLast(one);
  if (answer.kind === "stored" || answer.kind === "refused") remove(one);
  else put({ ...one, why: answer.kind, told: whyNot(answer) });
  return answer;
}

// Sends what waits, in order, and stops where the connection ends.
export function flush() {
  sending ??= sendAll().finally(() => {
    sending = null;
    later();
  });
  return sending;
}

async function sendAll() {
  clearTimeout(timer);
  const items = { stored: [], refused: [], extra: [], looks: [] };
  for (const one of waiting()) {
    const answer = await send(one, true);
    // What the server or a proxy cannot read, such as too long a text, it will not take later either.
    const kind = [400, 413].includes(answer.status) ? "refused" : answer.kind;
    items[kind]?.push(one.item);
    if (answer.headers.get("Label-Counted") === "no") items.extra.push(one.item);
    if (kind === "stored" && one.phase === "blind") items.looks.push(one.item);
    if (kind === "refused") refuse(one, answer);
    else if (kind !== "stored" && kind !== "server") break;
  }
  if (items.stored.length || items.refused.length) handle.sent(waiting().length, items);
}

// Tries again in a moment, if there is anything to send.
export function later() {
  clearTimeout(timer);
  if (waiting().some(isAway)) {
    timer = setTimeout(flush, AGAIN_AFTER);
  }
}

// A label that the server cannot take stays in sight until the person has seen it.
function refuse(one, answer) {
  const notice = new DOMParser().parseFromString(answer.body, "text/html").querySelector("[data-notice]");
  put({ ...one, refused: notice?.textContent.trim().replace(/\s+/g, " ") ?? "The server refused it." });
}

function button(text, does) {
  const made = document.createElement("button");
  made.className = "button";
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", does);
  return made;
}

function line(kind, strong, text, ...actions) {
  const notice = document.createElement("div");
  notice.className = "notice label-outbox";
  notice.dataset.kind = kind;
  const title = document.createElement("strong");
  title.textContent = strong;
  const words = document.createElement("span");
  words.textContent = text;
  notice.append(title, words, ...actions);
  return notice;
}

function ofWaiting() {
  const late = waiting().filter((one) => one.why);
  if (!late.length) return [];
  const many = late.length === 1 ? "1 label waits" : `${late.length} labels wait`;
  const { why, told: words } = late.at(-1);
  const text = `${words ?? ""}${memory ? "Saved on this page only: do not close it. Your work is sent automatically." : "Saved in this browser and sent automatically."}${handle.outlook()}`;
  const act = why === "signed-out" || why === "forbidden" ? link(why) : button("Send now", flush);
  return [line("warning", `${many} ${WHY[why]}.`, text, act)];
}

function link(why) {
  const made = document.createElement("a");
  made.className = "button";
  made.href = location.pathname;
  made.textContent = why === "signed-out" ? "Sign in and come back" : "Reload the page";
  return made;
}

function ofRefused(one) {
  const open = button("Open the item", () => handle.open(one.item, () => remove(one)));
  const comment = one.fields.find(([name]) => name === "comment")?.[1];
  const words = comment ? `${one.refused} You wrote: “${comment}”` : one.refused;
  const title = `Your label “${one.title}” of ${one.phase === "blind" ? "a first look" : one.item} was not saved.`;
  return line("error", title, words, open, button("Close", () => remove(one)));
}

export function show() {
  const refused = read().filter((one) => one.refused);
  document.getElementById("outbox").replaceChildren(...ofWaiting(), ...refused.map(ofRefused));
}

// Another window of the same person sent what waited here, or keeps more.
function follow({ key, oldValue }) {
  if (key !== store()) return;
  show();
  const kept = read().map((one) => one.key);
  const gone = JSON.parse(oldValue ?? "[]").filter((one) => one.why && !kept.includes(one.key));
  if (gone.length) handle.sent(waiting().length, { stored: gone.map((one) => one.item), refused: [] });
}

// `handlers`: sent(left, { stored, refused, extra, looks }) after labels of these items were sent
// late, open(item, then) to show an item, outlook() says how the person can go on until then.
export function begin(handlers) {
  handle = handlers;
  window.addEventListener("online", flush);
  window.addEventListener("storage", follow);
  // There is no room in this browser, so leaving would lose what waits.
  window.addEventListener("beforeunload", (event) => memory?.length && event.preventDefault());
  for (const one of read()) drafts.labelled(one.item);
  show();
  if (waiting().length) flush();
}
