// The label screen. The server renders; this script handles the painted item and shows the next
// one, which was fetched meanwhile.
import * as ahead from "./ahead.js";
import * as sidePanel from "./side_panel.js";
import * as drafts from "./drafts.js";
import * as editor from "./editor.js";
import * as fields from "./fields.js";
import * as reservations from "./reservations.js";
import * as keys from "./keys.js";
import * as outbox from "./outbox.js";
import { panel, say, tell } from "./page.js";
import { begin, bringNext, focusTarget, labelForm, load, remindOfChoice, showKept } from "./panel.js";
import * as texts from "./texts.js";
import * as pressGuard from "./press_guard.js";
import { isStuck, openItem, outlook, sentLate, settled, submit, WAITS } from "./submissions.js";
import * as connection from "./connection.js";
import * as tour from "./tour.js";
import * as prefetch from "./prefetch.js";

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (!form.matches("[data-send]")) return;
    event.preventDefault();
    submit(form, event.submitter);
  },
  true,
);

const pressKey = (slug) => document.querySelector(`#screen [aria-keyshortcuts~="${CSS.escape(keys.keyOf(slug))}"]`)?.click();

function goOn() {
  if (!panel().matches("[data-lesson]")) return false;
  if (!pressGuard.is()) pressGuard.refuse();
  else load().then((isThere) => isThere || tell("The next item follows when you are connected. Try again then."));
  return true;
}

const ACTIONS = {
  span: () => (pressGuard.is() ? labelForm() && fields.mark(labelForm()) : pressGuard.refuse()),
  comment: () => (pressGuard.is() ? panel().querySelector("#comment")?.focus() : pressGuard.refuse()),
  difference: () => texts.toggle(panel()),
  correct: () => (pressGuard.is() ? editor.open(panel()) || tell("There is nothing to correct here.") : pressGuard.refuse()),
  flag: () => pressKey("flag"),
  guidelines: () => sidePanel.toggle("guidelines") || tell("This project has no guidelines yet."),
  siblings: () => sidePanel.toggle("siblings") || tell("Siblings are not shown here."),
  // After the first label, the link to its comments comes with the next item.
  comments: async () =>
    (await settled(), sidePanel.toggle("comments")) ||
    (await prefetch.arrived(), sidePanel.toggle("comments")) ||
    tell("Label an item first. Then you can read and write comments on it."),
  next: () => goOn() || say(texts.go(panel(), 1)),
  previous: () => say(texts.go(panel(), -1)),
  skip: () => pressKey("skip"),
  undo: () => pressKey("undo"),
  fold: () => say(texts.fold(panel())),
  Enter: () => goOn(),
  keys: () => document.getElementById("keys").showModal(),
};

// What would be done with an item that has its label and cannot go yet.
const WITH_ITEM = new Set(["span", "comment", "correct", "flag", "skip", "undo"]);

keys.listen((name, event) => {
  if (isStuck() && (/^[\d+-]$/.test(name) || WITH_ITEM.has(name))) {
    tell(WAITS);
    return true;
  }
  if (name === "Enter" && (event.target.closest("a, button, summary, input") || !goOn())) return false;
  if (/^[\d+-]$/.test(name) && labelForm()) {
    if (pressGuard.takes(event) && !fields.press(labelForm(), name)) fields.deny(labelForm(), keys.keyOfOption);
    return true;
  }
  if (!Object.hasOwn(ACTIONS, name)) return false;
  ACTIONS[name]();
  return true;
}, (key) => Boolean(labelForm()) && fields.takes(labelForm(), key));

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, ({ target }) => {
    if (!target.closest("#panel form")) return;
    drafts.keep();
    connection.wait();
  });
}

const CLICKS = {
  edit: () => editor.open(panel()),
  leave: () => editor.open(panel(), false),
  discard: () => editor.startAnew(panel()),
  keys: () => ACTIONS.keys(),
  guidelines: () => sidePanel.toggle("guidelines"),
  siblings: () => sidePanel.toggle("siblings"),
  comments: () => ACTIONS.comments(),
  close: () => sidePanel.close(),
  goOn: () => goOn(),
};

// A click that was meant for the item before chooses nothing; what only leads the eye may go on.
document.addEventListener(
  "click",
  (event) => {
    if (pressGuard.is() || !event.target.closest?.("#panel [data-label]")) return;
    if (event.target.closest("textarea, summary, [data-piece]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (isStuck()) tell(WAITS);
    else pressGuard.refuse();
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
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step && event.altKey && form?.matches("[data-editor]")) {
    event.preventDefault();
    say(texts.go(panel(), step));
    editor.standAt(panel(), texts.currentChange(panel()));
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const comment = event.target.closest?.("#beside form");
    if (comment) return comment.requestSubmit();
    const wanted = form?.matches("[data-editor]") ? form : labelForm();
    if (wanted) complete(wanted, event);
  }
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (form?.matches("[data-editor]")) editor.open(panel(), false);
  else if (keys.isTyping(event)) focusTarget()?.focus();
  else if (!sidePanel.close() && labelForm()) fields.cancel(labelForm());
});

function complete(form, event) {
  event.preventDefault();
  if (form.matches("[data-editor]")) form.requestSubmit();
  else if (pressGuard.is()) fields.send(form);
  else pressGuard.refuse();
}

ahead.keep(panel());
begin();
tour.begin();
remindOfChoice();
reservations.begin();
outbox.begin({ sent: sentLate, open: openItem, outlook });
if (ahead.isKept()) {
  showKept();
} else {
  if (isStuck()) tell(WAITS);
  drafts.sendLeft();
  bringNext();
  ahead.follow();
  ahead.begin();
}
