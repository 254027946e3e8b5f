// Sends what the user submits, labels through the outbox and the rest at once, and handles the
// answers.
import * as ahead from "./ahead.js";
import * as prefetch from "./prefetch.js";
import * as drafts from "./drafts.js";
import * as editor from "./editor.js";
import * as fields from "./fields.js";
import * as reservations from "./reservations.js";
import * as outbox from "./outbox.js";
import { address, drawn, fieldsOf, panel, post, say, tell, whyNot } from "./page.js";
import { bringNext, focusTarget, hasItem, load, paint, place, seconds } from "./panel.js";
import * as pressGuard from "./press_guard.js";
import * as sidePanel from "./side_panel.js";
import * as connection from "./connection.js";

// The label before, while its answer is awaited. What is sent next waits for it, so that all reaches
// the server in the order in which it was given.
let flight = Promise.resolve();

export const settled = () => flight;

export const WAITS = "Your label of this item is waiting to be sent. Then the next item follows.";

// Whether the painted item is labelled and only the connection is missing to go on.
export const isStuck = () => hasItem() && outbox.holds(panel().dataset.item);

// So long an answer is waited for before the next label goes on without it.
const SLOW = 2000;
const isSlow = () => Promise.race([flight.then(() => false), new Promise((go) => setTimeout(go, SLOW, true))]);

// The item that is held next or, while labels wait for the connection, one that was sent ahead.
const isNextHere = () => prefetch.isHere() || (outbox.isLate() && ahead.count(outbox.holds) > 0);
const takeNext = () => prefetch.take() ?? ahead.take(outbox.holds);

// What the person can do while labels wait, in words that follow a sentence.
export function outlook() {
  const left = ahead.count(outbox.holds) + (prefetch.isHere() ? 1 : 0);
  if (left) return left === 1 ? " 1 more item is here." : ` ${left} more items are here.`;
  return isStuck() ? " Then the next item follows." : "";
}

function choose(form, button) {
  for (const other of form.querySelectorAll("[data-chosen]")) delete other.dataset.chosen;
  if (button?.matches(".choice")) button.dataset.chosen = "";
  if (button?.dataset.title) say(`${button.dataset.title}.`);
}

const lastSaid = () => document.querySelector("[data-last]");

// A label. Where the next item is here it is painted at once, and what becomes of the label is told
// beside it; else the next item comes with the answer.
async function label(form, button) {
  if (!form.isConnected) return;
  pressGuard.hold();
  if (!(await reservations.mayGo(tell))) return pressGuard.release();
  const entry = outbox.entry(form, button, seconds());
  if (outbox.isLate() && isNextHere()) return joinLate(entry, form, button);
  outbox.keep(entry);
  choose(form, button);
  const isJoined = (await isSlow()) && form.isConnected && ahead.count(outbox.holds) > 0;
  if (isJoined) return joinLate(entry, form, button);
  await flight;
  if (!form.isConnected) return takeBack(entry, button);
  // What the label carries needs no draft; a correction that is not saved does.
  if (editor.hasUnsaved(panel())) await drafts.hurry();
  drafts.stop();
  const left = panel();
  const isPainted = prefetch.isHere();
  const said = `${entry.item}: ${entry.title}.`;
  if (isPainted) {
    connection.clear();
    lastSaid().textContent = said;
    const comments = document.querySelector("#desk [data-comments]");
    if (comments) comments.search = new URLSearchParams({ item: entry.item });
    paint(prefetch.take(), said);
  }
  // The label is kept here already; what the person waits for comes first.
  const sent = isPainted ? drawn().then(() => outbox.send(entry, true)) : outbox.send(entry, false);
  flight = sent.then((answer) => settle({ entry, form, button, answer, left, said, isPainted }));
}

// Labels wait for the connection already: this one goes behind them, and the next item follows at once.
function joinLate(entry, form, button) {
  choose(form, button);
  if (editor.hasUnsaved(panel())) drafts.hurry();
  drafts.stop();
  drafts.labelled(entry.item);
  outbox.join(entry);
  goOnWithout(entry, false);
}

// The label cannot be sent as things are; the choice is offered again with the item.
function takeBack(entry, button) {
  outbox.remove(entry);
  if (button) drafts.remember(entry.item, button.value);
}

// What became of a label; `isPainted`: the next item is on the screen already.
async function settle({ entry, form, button, answer, left, said, isPainted }) {
  const { kind, body } = answer;
  if (kind === "stored" || kind === "connection" || kind === "server") drafts.labelled(entry.item);
  if (kind === "stored" && isPainted) {
    if (lastSaid().textContent === said) lastSaid().textContent = body;
    return bringNext();
  }
  if (kind === "stored") return arrive(answer);
  if (kind === "connection" || kind === "server") return goOnWithout(entry, isPainted);
  if (isPainted) drafts.hurry();
  if (kind === "refused") return place(body);
  if (isPainted) paint(left);
  takeBack(entry, button);
  return fail(form, button, answer);
}

// The next item came with the answer, or was here before.
function arrive(answer, isHeldHere) {
  connection.clear();
  if (!isHeldHere) return place(answer.body);
  lastSaid().textContent = answer.body;
  paint(prefetch.take(), answer.body);
  bringNext();
}

async function fetchNext(said) {
  if (await load(said)) {
    lastSaid().textContent = said;
    return;
  }
  connection.show("connection", `${said} The next item follows when you are connected.`, () => fetchNext(said));
}

// The label waits for the connection; the next item is on the screen, or here, or comes with it.
function goOnWithout(entry, isPainted) {
  outbox.later();
  const isLook = entry.phase === "blind";
  const said = isLook ? "Your first look is saved here. The second look at this item follows when you are connected." : `${entry.item}: “${entry.title}” is saved here until it can be sent.`;
  if (isPainted) return tell(said);
  if (isNextHere()) {
    paint(takeNext(), said);
    lastSaid().textContent = said;
    return outbox.show();
  }
  outbox.show();
  say(`${said} The next item follows when you are connected.`);
}

// Labels that had waited are stored, or refused: what they did to the desk, and the item that comes
// with it.
export function sentLate(left, { stored, refused, extra = [], looks = [] }) {
  ahead.arrived();
  connection.clear();
  const many = refused.length === 1 ? "1 label was" : `${refused.length} labels were`;
  const what = left ? `${left} more to send.` : refused.length ? `${many} not saved; see above.` : "All your labels are saved now.";
  const said = `${what}${describeExtra(extra)}${looks.length ? " Second looks follow." : ""}`;
  tell(said);
  if ([...stored, ...refused].includes(panel().dataset.item) || (!left && !hasItem())) fetchNext(said);
  else bringNext();
}

function describeExtra(items) {
  if (!items.length) return "";
  const labels = items.length === 1 ? "your label is saved as an extra one" : "your labels are saved as extra ones";
  return ` Reassigned meanwhile: ${items.join(", ")}; ${labels}.`;
}

// Anything else that is sent: its answer is the panel, or nothing is lost and the page says so. True
// if it is stored.
async function exchange(form, button) {
  if (!form.isConnected) return false;
  const kind = form.dataset.send;
  const { item } = panel().dataset;
  pressGuard.hold();
  if (kind === "label" && !(await reservations.mayGo(tell))) {
    pressGuard.release();
    return false;
  }
  const look = kind === "label" && panel().dataset.phase === "blind" ? outbox.entry(form, button, seconds()) : null;
  if (look && outbox.isLate() && isNextHere()) {
    joinLate(look, form, button);
    return true;
  }
  if (kind === "label" || kind === "skip") choose(form, button);
  if (kind === "label") form.elements.seconds.value = seconds();
  await flight;
  if (!form.isConnected) return false;
  if (kind === "undo" && outbox.waiting().length) {
    pressGuard.release();
    tell("Your last label is waiting to be sent. You can undo it after that.");
    return false;
  }
  // A label and a correction carry what was begun; to leave the item in any other way keeps it.
  if (kind === "label" || kind === "editor") drafts.stop();
  else drafts.hurry();
  const isHeldHere = kind === "skip" && prefetch.isHere();
  const headers = isHeldHere ? { "Label-Next": "here" } : {};
  const answer = await post(form.action, fieldsOf(form, button), { headers });
  const isStored = answer.kind === "stored";
  if (look && (answer.kind === "connection" || answer.kind === "server")) {
    drafts.labelled(item);
    outbox.wait(look, answer);
    goOnWithout(look, false);
    return true;
  }
  if (!isStored && answer.kind !== "refused") {
    if (kind === "label" && button) drafts.remember(item, button.value);
    fail(form, button, answer);
    return false;
  }
  if (isStored && kind === "label") drafts.labelled(item);
  if (isStored && kind === "editor") drafts.corrected(item);
  arrive(answer, isStored && isHeldHere);
  return isStored;
}

// What leaves the item while a corrected text is not saved is asked about first.
const LEAVES = { label: "label", skip: "skip", undo: "undo", reopen: "continue" };

async function askUnsaved(form, button) {
  const kind = form.dataset.send;
  const correction = panel().querySelector("[data-editor]");
  const answer = await editor.askUnsaved(panel(), LEAVES[kind]);
  if (answer === "without") send(form, button);
  if (answer !== "save") return;
  const { item } = panel().dataset;
  if (!(await exchange(correction))) {
    // It is offered again once the text is saved.
    if (kind === "label" && button?.value) drafts.remember(item, button.value);
    return;
  }
  // The corrected item was painted anew, with all that stood in its other form.
  const again = document.querySelector(`#screen form[data-send="${kind}"]`);
  const wanted = button?.value ? `button[value="${CSS.escape(button.value)}"]` : "[data-store]";
  const pressed = again?.querySelector(wanted) ?? again?.querySelector("button");
  if (!again) return;
  if (kind === "label") fields.pick(again, button?.value ?? "");
  if (kind !== "label" || !fields.ask(again)) send(again, pressed);
}

const KEPT = {
  label: (button) => `Your answer${button?.dataset.title ? ` “${button.dataset.title}”` : ""} is kept here but not saved yet.`,
  editor: () => "Your correction is kept here but not saved yet.",
  undo: () => "Nothing was undone yet.",
  skip: () => "The item is not skipped yet.",
};

function fail(form, button, answer) {
  const kept = KEPT[form.dataset.send] ?? (() => "Nothing was changed yet.");
  pressGuard.release();
  drafts.keep();
  connection.show(answer.kind, whyNot(answer) + kept(button), () => {
    if (!form.isConnected) return;
    send(form, button);
  });
}

async function flag(form, button) {
  form.elements.note.value = panel().querySelector("#comment")?.value.slice(0, 2000) ?? "";
  const answer = await post(form.action, fieldsOf(form));
  if (answer.kind !== "stored") return tell(`The flag could not be set. ${connection.SAYINGS[answer.kind]}`);
  const { said, flagged } = JSON.parse(answer.body);
  button.setAttribute("aria-pressed", flagged ? "true" : "false");
  tell(said);
}

async function acknowledge(form) {
  const answer = await post(form.action, fieldsOf(form));
  if (answer.kind !== "stored") return tell(`This could not be saved. ${connection.SAYINGS[answer.kind]}`);
  for (const one of document.querySelectorAll("[data-news]")) one.remove();
  sidePanel.close();
  tell("Saved: you have read the guidelines.");
  focusTarget()?.focus({ preventScroll: true });
}

function send(form, button) {
  connection.clear();
  // Who sends what they wrote has ended writing it.
  if (form.contains(document.activeElement)) document.activeElement.blur();
  const isLabel = form.dataset.send === "label" && panel().dataset.phase === "label";
  return isLabel ? label(form, button) : exchange(form, button);
}

export function submit(form, button) {
  const kind = form.dataset.send;
  if (isStuck() && kind !== "quiet") return tell(WAITS);
  // To take the last label back needs no look at the item that came after it.
  if (kind === "undo" ? pressGuard.isOut() : !pressGuard.is()) return pressGuard.refuse();
  if (kind === "undo" && panel().matches("[data-lesson]")) return tell("Read the explanation, then continue.");
  if (kind === "flag") return flag(form, button);
  if (kind === "quiet") return acknowledge(form);
  if (kind === "label" && fields.ask(form)) return undefined;
  if (Object.hasOwn(LEAVES, kind) && editor.hasUnsaved(panel())) return askUnsaved(form, button);
  return send(form, button);
}

// Opens an item that a label of was refused.
export async function openItem(item, then) {
  const answer = await post(address("reopen/"), [["item", item]]);
  if (answer.kind === "stored") then();
  if (answer.kind === "stored" || answer.kind === "refused") place(answer.body);
  else tell(`The item could not be opened. ${connection.SAYINGS[answer.kind]}`);
}
