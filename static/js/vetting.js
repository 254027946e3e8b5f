// The label screen. The server draws; this acts only for the item that is painted, and brings the
// next one, which was drawn meanwhile.
import * as ahead from "./ahead.js";
import * as beside from "./beside.js";
import * as drafts from "./drafts.js";
import * as editor from "./editor.js";
import * as fields from "./fields.js";
import * as holding from "./holding.js";
import * as keys from "./keys.js";
import * as outbox from "./outbox.js";
import { address, ask, fieldsOf, panel, parse, pause, post, say, tell } from "./page.js";
import * as reading from "./reading.js";
import * as ready from "./ready.js";
import * as trouble from "./trouble.js";

// How long a choice is in sight before the next item comes.
const SHOWN = 333;
const LOOK_AGAIN = 30_000;

let shownAt = 0;
let looking = 0;
let stuck = null; // the item whose label waits, and after which none is here yet

const hasItem = () => "item" in panel().dataset;
const labelForm = () => panel().querySelector("[data-label]");
const focusTarget = () => panel().querySelector("[data-focus]");

function begin() {
  shownAt = performance.now();
  document.querySelector("[data-keys]").hidden = false;
  clearTimeout(looking);
  if (panel().querySelector("[data-look-again]")) looking = setTimeout(lookAgain, LOOK_AGAIN);
  const stale = drafts.stale();
  if (drafts.restore()) editor.showRestored(panel());
  if (stale) trouble.keep("You had begun to correct an earlier revision:", stale);
  ready.release();
}

const bringNext = () => ahead.bring(holding.reached);

// The next item may have been drawn before the person turned to another way of reading.
function readAlike(section) {
  const [was, is] = [panel(), section].map((one) => one.querySelector("[data-reading]")?.dataset);
  if (!was || !is) return;
  if (was.view !== is.view) reading.show(section, was.view);
  if (was.format !== is.format) reading.format(section, was.format);
  if (was.fold !== is.fold) reading.fold(section);
}

// A reload, or a signed-in return, shows the same item again.
function keepAddress() {
  const { item, reopened } = panel().dataset;
  const url = reopened === undefined ? address("") : `${address("")}?item=${encodeURIComponent(item)}`;
  if (location.pathname + location.search !== url) history.replaceState(null, "", url);
}

function paint(section, said = section.dataset.said) {
  const goesOnWaiting = !said && !hasItem() && !("item" in section.dataset) && !section.matches("[data-lesson]");
  const hadFocus = document.activeElement;
  readAlike(section);
  panel().replaceWith(section);
  begin();
  keepAddress();
  // A page that looked again and found nothing new has nothing to say, and focus stays elsewhere.
  const staysQuiet = goesOnWaiting && hadFocus?.isConnected && hadFocus !== document.body;
  if (!staysQuiet) {
    say(`${said} ${section.dataset.next}`.trim());
    window.scrollTo(0, 0);
    focusTarget()?.focus({ preventScroll: true });
  }
  reading.draw(panel());
  document.dispatchEvent(new Event("vet:painted"));
  beside.follow();
  bringNext();
}

function placeDesk(markup) {
  const desk = parse(markup).querySelector("#desk");
  if (!desk) return;
  keys.print(desk);
  desk.querySelector("[data-keys]").hidden = false;
  document.getElementById("desk").replaceWith(desk);
}

// A panel with its desk, as the server sends them together.
function place(markup) {
  const section = parse(markup).querySelector("#panel");
  ahead.drop();
  placeDesk(markup);
  keys.print(section);
  paint(section);
  holding.reached();
}

async function load() {
  const answer = await ask(address(""));
  if (answer.kind === "stored") place(answer.body);
}

async function lookAgain() {
  await load();
  if (!hasItem()) looking = setTimeout(lookAgain, LOOK_AGAIN);
}

// Why a submission must not go out now; empty if it may. `null` needs no word: it is a double press.
function objection(form) {
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

function seconds() {
  return ((performance.now() - shownAt) / 1000).toFixed(1);
}

// A label, for which the next item is here or comes with the answer.
async function label(form, button) {
  if (!(await holding.mayGo(tell))) return;
  ready.hold();
  drafts.stop();
  choose(form, button);
  const entry = outbox.entry(form, button, seconds());
  const isNextHere = ahead.isHere();
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
    fail(form, button, answer.kind);
  }
}

function arrive(answer, isNextHere) {
  trouble.clear();
  if (!isNextHere) return place(answer.body);
  placeDesk(answer.body);
  paint(ahead.take(), document.querySelector("[data-last]").textContent);
}

// The label waits for the connection; the next item is here already, or comes with it.
function goOnWithout(entry) {
  outbox.flush();
  const said = `${entry.item}: “${entry.title}” is kept here until it can be sent.`;
  if (ahead.isHere()) paint(ahead.take(), said);
  else {
    stuck = entry.item;
    say(`${said} The next item comes with the connection.`);
  }
}

// Labels that had waited are stored: what they did to the desk, and the item that comes with it.
function sentLate(markup, left) {
  placeDesk(markup);
  tell(left ? `${left} more to send.` : "All your labels are stored now.");
  if (stuck !== null && stuck === panel().dataset.item && !left) load();
  else bringNext();
}

// Anything else that is sent: its answer is the panel, or nothing is lost and the page says so.
async function exchange(form, button) {
  const isLabel = form.matches("[data-label]");
  if (isLabel && !(await holding.mayGo(tell))) return;
  ready.hold();
  drafts.stop();
  if (isLabel || form.dataset.send === "skip") choose(form, button);
  if (isLabel) form.elements.seconds.value = seconds();
  const isNextHere = form.dataset.send === "skip" && ahead.isHere();
  const options = isNextHere ? { headers: { "Vet-Next": "here" } } : {};
  const { item } = panel().dataset;
  const shown = isLabel || form.dataset.send === "skip" ? SHOWN : 0;
  const [answer] = await Promise.all([post(form.action, fieldsOf(form, button), options), pause(shown)]);
  if (answer.kind === "stored" || answer.kind === "refused") {
    if (answer.kind === "stored" && form.dataset.send !== "undo") drafts.forget(item);
    return arrive(answer, isNextHere && answer.kind === "stored");
  }
  if (isLabel && button) drafts.remember(button.value);
  fail(form, button, answer.kind);
}

const KEPT = {
  label: (button) => `Your answer${button?.dataset.title ? ` “${button.dataset.title}”` : ""} is kept here and not stored yet.`,
  editor: () => "Your correction is kept here and not stored yet.",
  undo: () => "Nothing was undone yet.",
  skip: () => "The item is not skipped yet.",
};

function fail(form, button, kind) {
  const kept = KEPT[form.dataset.send] ?? (() => "Nothing was changed yet.");
  ready.release();
  drafts.keep();
  trouble.show(kind, kept(button), () => {
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
  if (answer.kind !== "stored") return;
  form.remove();
  tell("Noted: you have read the guidelines.");
  focusTarget()?.focus({ preventScroll: true });
}

function submit(form, button) {
  const kind = form.dataset.send;
  if (kind === "flag") return flag(form, button);
  if (kind === "quiet") return acknowledge(form);
  if (kind === "label" && fields.ask(form)) return undefined;
  if (kind === "undo" && outbox.waiting().length) return tell("Your last label waits to be sent. Undo it after that.");
  if (kind === "label" && panel().dataset.phase === "label") return label(form, button);
  return exchange(form, button);
}

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (!form.matches("[data-send]")) return;
    event.preventDefault();
    const why = objection(form);
    if (why) tell(why);
    if (why === "") submit(form, event.submitter);
  },
  true,
);

function press(selector) {
  const button = document.querySelector(selector);
  if (ready.is() && button) button.click();
  return Boolean(button);
}

const pressKey = (name) => press(`#screen [aria-keyshortcuts~="${CSS.escape(keys.keyOf(name))}"]`);

function goOn() {
  if (!panel().matches("[data-lesson]") || !ready.is()) return false;
  load();
  return true;
}

const ACTIONS = {
  c: () => panel().querySelector("#comment")?.focus(),
  d: () => reading.toggle(panel()),
  e: () => editor.open(panel()),
  f: () => pressKey("f"),
  g: () => beside.toggle("guidelines"),
  b: () => beside.toggle("siblings"),
  n: () => goOn() || say(reading.go(panel(), 1)),
  p: () => say(reading.go(panel(), -1)),
  s: () => pressKey("s"),
  u: () => pressKey("u"),
  w: () => say(reading.fold(panel())),
  Enter: () => goOn(),
  "?": () => document.getElementById("keys").showModal(),
};

keys.listen((name, event) => {
  if (name === "Enter" && (event.target.closest("a, button, summary, input") || !goOn())) return false;
  if (/^[\d+-]$/.test(name) && labelForm()) return !ready.is() || fields.press(labelForm(), name);
  if (!Object.hasOwn(ACTIONS, name)) return false;
  ACTIONS[name]();
  return true;
});

document.addEventListener("input", ({ target }) => target.closest("#panel form") && drafts.keep());
document.addEventListener("change", ({ target }) => target.closest("#panel form") && drafts.keep());

const CLICKS = {
  edit: () => editor.open(panel()),
  leave: () => editor.open(panel(), false),
  discard: () => editor.startAnew(panel()),
  keys: () => ACTIONS["?"](),
  guidelines: () => beside.toggle("guidelines"),
  siblings: () => beside.toggle("siblings"),
  close: () => beside.close(),
  goOn: () => goOn(),
};

// A click that was meant for the item before chooses nothing.
document.addEventListener(
  "click",
  (event) => {
    if (ready.is() || !event.target.closest?.("#panel [data-label]")) return;
    if (event.target.closest("textarea")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const target = event.target.closest?.("#screen a, #screen button");
  const name = target && Object.keys(CLICKS).find((one) => one in target.dataset);
  if (!name) return;
  event.preventDefault();
  CLICKS[name]();
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("#panel form");
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const wanted = form?.matches("[data-editor]") ? form : labelForm();
    if (wanted) complete(wanted, event);
  }
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (form?.matches("[data-editor]")) editor.open(panel(), false);
  else if (keys.isTyping(event)) focusTarget()?.focus();
  else beside.close();
});

function complete(form, event) {
  event.preventDefault();
  if (form.matches("[data-editor]")) form.requestSubmit();
  else if (ready.is()) fields.send(form);
}

// A label that was chosen before the person was signed out is offered again, never sent unasked.
function remindOfChoice() {
  const chosen = hasItem() && drafts.remembered();
  const button = chosen && labelForm().querySelector(`button.choice[value="${CSS.escape(chosen)}"]`);
  if (!button) return;
  button.dataset.chosen = "";
  tell(`You chose “${button.dataset.title}” for this item before; it was not stored. Choose again to store it.`);
}

// Opens an item that a label of was refused.
async function openItem(item, then) {
  const answer = await post(address("reopen/"), [["item", item]]);
  if (answer.kind === "stored") then();
  if (answer.kind === "stored" || answer.kind === "refused") place(answer.body);
}

keys.print(document);
begin();
reading.draw(panel());
remindOfChoice();
holding.begin();
outbox.begin({ sent: sentLate, open: openItem });
bringNext();
