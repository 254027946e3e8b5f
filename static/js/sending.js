// What the person sends: labels by the outbox, all else at once; and what becomes of it.
import * as ahead from "./ahead.js";
import * as drafts from "./drafts.js";
import * as editor from "./editor.js";
import * as fields from "./fields.js";
import * as holding from "./holding.js";
import * as outbox from "./outbox.js";
import { address, fieldsOf, panel, pause, post, say, tell, whyNot } from "./page.js";
import { bringNext, focusTarget, hasItem, labelForm, load, paint, place, seconds } from "./painting.js";
import * as ready from "./ready.js";
import * as trouble from "./trouble.js";

// How long a choice is in sight before the next item comes.
const SHOWN = 333;

let stuck = null; // the panel whose label waits, and after which none is here yet

// Whether the painted item is labelled and only the connection is missing to go on.
export const isStuck = () => stuck === panel();
export const WAITS = "Your label of this item waits to be sent; the next item comes then.";

// Why a submission must not go out now; empty if it may. `null` needs no word: it is a double press.
// The label of a stuck item is not sent again: it waits already.
export function objection(form) {
  if (isStuck()) return WAITS;
  if (!ready.is()) return null;
  if (form.matches("[data-editor], [data-send=quiet], [data-send=flag]")) return "";
  if (!editor.hasUnsaved(panel())) return "";
  return "The corrected text is not saved yet: save it, or leave the editor, then go on.";
}

function choose(form, button) {
  for (const other of form.querySelectorAll("[data-chosen]")) delete other.dataset.chosen;
  if (button?.matches(".choice")) button.dataset.chosen = "";
  if (button?.dataset.title) say(`${button.dataset.title}.`);
}

// A label, for which the next item is here or comes with the answer.
async function label(form, button) {
  if (!(await holding.mayGo(tell))) return;
  ready.hold();
  drafts.stop();
  choose(form, button);
  const entry = outbox.entry(form, button, seconds());
  const isNextHere = ahead.isExpected();
  const [answer] = await Promise.all([outbox.send(entry, isNextHere), pause(SHOWN)]);
  if (answer.kind === "stored" || answer.kind === "refused") {
    if (answer.kind === "stored") drafts.forget(entry.item);
    arrive(answer, isNextHere && answer.kind === "stored");
  } else if (answer.kind === "connection" || answer.kind === "server") {
    drafts.forget(entry.item);
    goOnWithout(entry);
  } else {
    outbox.remove(entry);
    if (button) drafts.remember(button.value);
    fail(form, button, answer);
  }
}

// The next item came with the answer, or was asked for before and is here, or will be in a moment.
async function arrive(answer, isNextHere) {
  trouble.clear();
  if (!isNextHere) return place(answer.body);
  await ahead.arrived();
  if (!ahead.isHere()) return fetchNext(answer.body);
  paint(ahead.take(), answer.body);
  document.querySelector("[data-last]").textContent = answer.body;
}

async function fetchNext(said) {
  if (await load(said)) {
    document.querySelector("[data-last]").textContent = said;
    return;
  }
  trouble.show("connection", `${said} The next item comes with the connection.`, () => fetchNext(said));
}

// The label waits for the connection; the next item is here already, or comes with it.
function goOnWithout(entry) {
  outbox.later();
  const said = `${entry.item}: “${entry.title}” is kept here until it can be sent.`;
  if (ahead.isHere()) return paint(ahead.take(), said);
  stuck = panel();
  outbox.show();
  say(`${said} The next item comes with the connection.`);
}

// Labels that had waited are stored: what they did to the desk, and the item that comes with it.
export function sentLate(left) {
  const said = left ? `${left} more to send.` : "All your labels are stored now.";
  tell(said);
  if (!left && (!hasItem() || isStuck())) fetchNext(said);
  else bringNext();
}

// What becomes of a draft when its form, or another, is sent: a label carries all of it, a
// correction a part; to leave the item in any other way keeps it.
function putAside(kind) {
  if (kind === "label" || kind === "editor") drafts.stop();
  else drafts.hurry();
}

function settleDraft(kind, item) {
  if (kind === "label") drafts.forget(item);
  if (kind === "editor") drafts.corrected(item);
}

// Anything else that is sent: its answer is the panel, or nothing is lost and the page says so.
async function exchange(form, button) {
  const kind = form.dataset.send;
  if (kind === "label" && !(await holding.mayGo(tell))) return;
  const { item } = panel().dataset;
  const isChoice = kind === "label" || kind === "skip";
  const isNextHere = kind === "skip" && ahead.isExpected();
  ready.hold();
  putAside(kind);
  if (isChoice) choose(form, button);
  if (kind === "label") form.elements.seconds.value = seconds();
  const headers = isNextHere ? { "Vet-Next": "here" } : {};
  const sent = post(form.action, fieldsOf(form, button), { headers });
  const [answer] = await Promise.all([sent, pause(isChoice ? SHOWN : 0)]);
  const isStored = answer.kind === "stored";
  if (!isStored && answer.kind !== "refused") {
    if (kind === "label" && button) drafts.remember(button.value);
    return fail(form, button, answer);
  }
  if (isStored) settleDraft(kind, item);
  return arrive(answer, isStored && isNextHere);
}

const KEPT = {
  label: (button) => `Your answer${button?.dataset.title ? ` “${button.dataset.title}”` : ""} is kept here and not stored yet.`,
  editor: () => "Your correction is kept here and not stored yet.",
  undo: () => "Nothing was undone yet.",
  skip: () => "The item is not skipped yet.",
};

function fail(form, button, answer) {
  const kept = KEPT[form.dataset.send] ?? (() => "Nothing was changed yet.");
  ready.release();
  drafts.keep();
  trouble.show(answer.kind, whyNot(answer) + kept(button), () => {
    if (!form.isConnected) return;
    if (form.matches("[data-label]") && panel().dataset.phase === "label") label(form, button);
    else exchange(form, button);
  });
}

async function flag(form, button) {
  form.elements.note.value = panel().querySelector("#comment")?.value.slice(0, 2000) ?? "";
  const answer = await post(form.action, fieldsOf(form));
  if (answer.kind !== "stored") return tell("The flag could not be set. Try again when the connection is back.");
  const { said, flagged } = JSON.parse(answer.body);
  button.setAttribute("aria-pressed", flagged ? "true" : "false");
  tell(said);
}

async function acknowledge(form) {
  const answer = await post(form.action, fieldsOf(form));
  if (answer.kind !== "stored") return tell("This could not be noted. Try again when the connection is back.");
  form.remove();
  tell("Noted: you have read the guidelines.");
  focusTarget()?.focus({ preventScroll: true });
}

export function submit(form, button) {
  const kind = form.dataset.send;
  if (kind === "flag") return flag(form, button);
  if (kind === "quiet") return acknowledge(form);
  if (kind === "label" && fields.ask(form)) return undefined;
  if (kind === "undo" && outbox.waiting().length) return tell("Your last label waits to be sent. Undo it after that.");
  if (kind === "label" && panel().dataset.phase === "label") return label(form, button);
  return exchange(form, button);
}

// A label that was chosen before the person was signed out is offered again, never sent unasked.
export function remindOfChoice() {
  const chosen = hasItem() && drafts.remembered();
  const button = chosen && labelForm().querySelector(`button.choice[value="${CSS.escape(chosen)}"]`);
  if (!button) return;
  button.dataset.chosen = "";
  tell(`You chose “${button.dataset.title}” for this item before; it was not stored. Choose again to store it.`);
}

// Opens an item that a label of was refused.
export async function openItem(item, then) {
  const answer = await post(address("reopen/"), [["item", item]]);
  if (answer.kind === "stored") then();
  if (answer.kind === "stored" || answer.kind === "refused") place(answer.body);
}
