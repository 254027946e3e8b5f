// Unsent drafts: stored in this browser at once and on the server a moment later. What the server has
// is only used here where the page itself comes from this browser, as there is no connection.
import { storedOf } from "./editor.js";
import * as connection from "./connection.js";
import * as fields from "./fields.js";
import { address, panel, postData, screen, whyNot } from "./page.js";

const AFTER = 1000;
const WORDS = ["text", "note"];

let painted = null;
let version = ""; // of the draft on the server that the painted form shows or has sent
let sent = []; // marks of its words that the server may have, though no answer said so
let timer = 0;
let begun = false;
let unaskedAnswers = {}; // what is written for questions that are asked no more, by their names
let flight = Promise.resolve();

// Once the draft that was sent last is stored: an item that is asked for before would lack it.
export const settled = () => flight;

const nameOf = (item) => `draft|${screen().dataset.who}|${item}`;
const forget = (item) => localStorage.removeItem(nameOf(item));
const isOffline = () => screen().dataset.kept !== undefined || panel().dataset.ahead !== undefined;

const readAll = (item) => JSON.parse(localStorage.getItem(nameOf(item)) ?? "null");

// Whether the server got another draft of the painted item since, from another browser.
const isBehind = (kept) => {
  const { item, draft } = panel().dataset;
  const isOther = item === kept.item && Boolean(draft) && kept.version !== undefined && kept.version !== draft;
  return isOther && Boolean(labelForm()) && !kept.sent?.includes(markOf(wordsOf(collectWords())));
};

function read(item) {
  const kept = readAll(item);
  return kept && !isOffline() && (kept.isStored || isBehind(kept)) ? null : kept;
}

function keepHere(item, draft) {
  try {
    localStorage.setItem(nameOf(item), JSON.stringify(draft));
  } catch {
    // No room in this browser: the server keeps it all the same.
  }
}

const labelForm = () => panel().querySelector("[data-label]");
const editor = () => panel().querySelector("[data-editor]");

// What stands in the forms of the painted item.
function collect() {
  const texts = written().map(({ name, value }) => [name, [value]]);
  return { answers: { ...unaskedAnswers, ...Object.fromEntries(texts), ...fields.answers(labelForm()) }, unasked: Object.keys(unaskedAnswers), ...collectWords() };
}

// Also in a field that another answer hides, which may have been a slip; not the item's own text.
const isUntouched = (input) => input.closest("[data-kind=edit][hidden]") && input.value === input.defaultValue;
const written = () => [...labelForm().querySelectorAll("[data-written] :is(input, textarea)")].filter((input) => input.value.trim() && !isUntouched(input));

function collectWords() {
  const data = { comment: labelForm().elements.comment.value, written: written().map(({ value }) => value) };
  const form = editor();
  if (form && form.elements.text.value !== storedOf(form)) {
    for (const name of WORDS) data[name] = form.elements[name].value;
  }
  return data;
}

const wordsOf = (data) => [...["comment", ...WORDS].map((name) => data[name]), ...(data.written ?? [])].filter(Boolean).join("\n\n");

// Ten long texts themselves would have no room in this browser.
const markOf = (words) => `${words.length} ${[...words].reduce((sum, one) => (Math.imul(sum, 31) + one.codePointAt(0)) | 0, 0)}`;

function draft() {
  const form = labelForm();
  const { item, revision } = panel().dataset;
  return { key: form.elements.key.value, item, revision: Number(revision), data: collect(), version, sent };
}

// Something was typed or chosen.
export function keep() {
  if (!labelForm()) return;
  const now = draft();
  if (!begun && JSON.stringify(now.data) === painted) return;
  begun = true;
  keepHere(now.item, now);
  clearTimeout(timer);
  timer = setTimeout(send, AFTER);
}

// One after the other, as each says which draft it follows. Who leaves the page cannot wait.
function send(options) {
  clearTimeout(timer);
  timer = 0;
  const mark = markOf(wordsOf(collectWords()));
  if (mark !== sent.at(-1)) sent = [...sent.slice(-9), mark];
  const now = draft();
  keepHere(now.item, now);
  flight = options?.keepalive ? store(now, null, options) : flight.then(() => store(now, readAll(now.item)?.version));
  return flight;
}

async function store(now, follows = null, options = {}) {
  const { key, item, revision, data } = now;
  const answer = await postData(address("draft/"), { key, item, revision, data, version: follows }, options);
  const stored = answer.headers.get("Draft-Version");
  const isAway = answer.kind === "connection" || answer.kind === "server";
  if (isAway && !timer && key === labelForm()?.elements.key.value) timer = setTimeout(send, connection.AGAIN_AFTER);
  if (answer.kind === "signed-out" || answer.kind === "forbidden") connection.warn(answer.kind, `${whyNot(answer)}What you write is kept in this browser only.`);
  if (stored === null) return undefined;
  connection.endWarning();
  const isTaken = answer.kind === "stored";
  const after = (some = []) => (isTaken ? some.slice(some.lastIndexOf(markOf(wordsOf(data))) + 1) : some);
  if (item === panel().dataset.item) {
    version = panel().dataset.draft = stored;
    sent = after(sent);
  }
  const kept = readAll(item);
  const isStored = isTaken && JSON.stringify(kept?.data) === JSON.stringify(data);
  if (kept) keepHere(item, { ...kept, version: stored, sent: after(kept.sent), isStored });
  if (isTaken) return undefined;
  // What was written elsewhere stands beside it before it is replaced.
  const words = JSON.parse(answer.body).elsewhere.join("\n\n");
  if (!now.sent.includes(markOf(words))) connection.keep("You wrote in this draft on another page, too:", words);
  return store(now, stored, options);
}

// What waits to be sent goes out now: the page is left, or another item comes.
export const hurry = (options) => (timer ? send(options) : undefined);

// What was written on other items and did not reach the server. Who is not offered them again finds it
// only among the drafts there, where a later draft stays.
async function sendAllLeft() {
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith(nameOf("")))) {
    const left = localStorage.getItem(name);
    const { item, version = "", ...kept } = JSON.parse(left ?? "{}");
    if (!item || kept.isStored || kept.isRefused || item === panel().dataset.item) continue;
    const answer = await postData(address("draft/"), { ...kept, item, version, left: true });
    if (!["stored", "refused"].includes(answer.kind) && ![400, 413].includes(answer.status)) return;
    if (localStorage.getItem(name) !== left) continue;
    if (answer.status === 422) continue; // there may be room, or the item again
    const stored = answer.kind === "stored" && answer.headers.get("Draft-Version");
    keepHere(item, { ...kept, item, ...(stored ? { version: stored, isStored: true } : { version, isRefused: true }) });
  }
}

const SOON = 3000;
const soon = () => new Promise((go) => setTimeout(go, SOON));

// The next item waits for this a little, since its form would lack its draft.
export const sendLeft = () => (flight = flight.then(() => Promise.race([sendAllLeft().catch(console.error), soon()])));

// Its label or correction is on its way and carries what was begun; a draft must not come after it.
export function stop() {
  clearTimeout(timer);
  timer = 0;
}

function dropHere(item, isDropped) {
  const kept = readAll(item);
  if (!kept) return;
  kept.data = Object.fromEntries(Object.entries(kept.data).filter(([name]) => !isDropped(name)));
  kept.isRefused = false;
  if (Object.keys(kept.data).length) keepHere(item, kept);
  else forget(item);
}

// The correction is stored; what else was begun stays.
export const corrected = (item) => dropHere(item, (name) => WORDS.includes(name));

// The label is stored, or waits in the outbox; a correction that is not saved stays.
export const labelled = (item) => dropHere(item, (name) => !WORDS.includes(name));

// Answers about single changes go by the numbers of the changes, which other texts do not have.
function fill(form, answers, isFresh) {
  const field = isFresh ? "fieldset[data-field]" : "fieldset[data-field]:not([data-per-change])";
  for (const input of form.querySelectorAll(`${field} :is(input, textarea)`)) {
    if (answers[input.name]) fields.fill(input, answers[input.name]);
  }
}

// Of a form whose first field sends it, the button that was picked.
const pickOf = (form, answers) => answers[form.querySelector("button.choice")?.name]?.[0];

// Fills in what the server did not get, and makes the fields ready for keys; says whether a
// correction was among it.
export function restore() {
  stop();
  begun = false;
  painted = null;
  version = panel().dataset.draft ?? "";
  unaskedAnswers = {};
  const form = labelForm();
  if (!form) return false;
  const kept = read(panel().dataset.item);
  unaskedAnswers = findUnasked(kept);
  sent = kept?.sent ?? [];
  const answers = kept?.data.answers ?? {};
  const isFresh = kept?.revision === Number(panel().dataset.revision);
  fill(form, answers, isFresh);
  if (kept?.data.comment) form.elements.comment.value = kept.data.comment;
  fields.bind(form);
  if (pickOf(form, answers)) fields.pick(form, pickOf(form, answers));
  if (!kept) painted = JSON.stringify(collect());
  // The server may have it from the page that wrote it; what this page sends carries it.
  for (const input of kept ? panel().querySelectorAll("[name=begun-with]") : []) input.value += ` ${kept.key}`;
  const isCorrected = isFresh && restoreCorrection(kept);
  if (kept) keep();
  return isCorrected;
}

function restoreCorrection(kept) {
  if (!editor() || !kept.data.text) return false;
  for (const name of WORDS) editor().elements[name].value = kept.data[name] ?? "";
  return true;
}

// The correction that was begun on texts that are no more; empty if there is none, or they say it now.
export function stale() {
  const kept = read(panel().dataset.item ?? "");
  if (!kept || kept.revision === Number(panel().dataset.revision)) return "";
  return editor() && kept.data.text === storedOf(editor()) ? "" : (kept.data.text ?? "");
}

// What was written in this browser for questions that the painted form does not ask any more.
export const unasked = () => Object.values(unaskedAnswers).map(([text]) => text);

function findUnasked(kept) {
  const { answers = {}, written = [], unasked = [] } = kept?.data ?? {};
  const isWritten = (name, text) => written.includes(text) || unasked.includes(name);
  const isAsked = (name) => labelForm().querySelector(`[data-written] [name="${CSS.escape(name)}"]`);
  return Object.fromEntries(Object.entries(answers).filter(([name, [text]]) => isWritten(name, text) && !isAsked(name)));
}

// What was written in this browser and is not in the form, since the server has a later draft.
export function elsewhere() {
  const kept = labelForm() && !isOffline() && readAll(panel().dataset.item);
  if (!kept || kept.isStored || !isBehind(kept)) return "";
  const shown = collect();
  const words = ["comment", ...WORDS].map((name) => (kept.data[name] === shown[name] ? "" : kept.data[name]));
  const written = (kept.data.written ?? []).filter((text) => !shown.written.includes(text));
  return [...words, ...written].filter(Boolean).join("\n\n");
}

// A choice that was made and could not be stored, since the person was signed out or the item changed.
const chosenName = (item) => `chosen|${nameOf(item)}`;
export const remember = (item, value) => sessionStorage.setItem(chosenName(item), value);

// The choice that was made on the painted item, once.
export function remembered() {
  const name = chosenName(panel().dataset.item);
  const value = sessionStorage.getItem(name);
  sessionStorage.removeItem(name);
  return value;
}

window.addEventListener("pagehide", () => hurry({ keepalive: true }));
window.addEventListener("online", sendLeft);
