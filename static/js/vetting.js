// The label screen. The server draws; this acts only for the item that is painted.
import * as drafts from "./drafts.js";
import { listen } from "./keys.js";
import * as reading from "./reading.js";
import * as trouble from "./trouble.js";

// The second press of a double press comes within this time: it must not meet the next item.
const GUARD = 350;

let ready = false;
let waiting = false;
let shownAt = 0;
let sent = null;

const panel = () => document.getElementById("panel");
const say = (text) => document.getElementById("announcer").replaceChildren(text);

function hold(held) {
  ready = !held;
  const choices = panel().querySelector(".choices");
  if (choices) choices.disabled = held;
}

function begin() {
  hold(true);
  waiting = !panel().dataset.item;
  shownAt = performance.now();
  panel().querySelector("[data-keys]").hidden = false;
  const restored = drafts.restore(panel());
  if (restored.includes("text")) panel().querySelector("[data-restored]").hidden = false;
  requestAnimationFrame(() => setTimeout(() => hold(false), GUARD));
}

function tell(text) {
  panel().querySelector("[data-last]").textContent = text;
  say(text);
}

// A label that was chosen before the person was signed out is offered again, never sent unasked.
function remindOfChoice() {
  const chosen = panel().dataset.item && drafts.get(panel(), "chosen");
  const button = chosen && panel().querySelector(`.choice[value="${CSS.escape(chosen)}"]`);
  if (!button) return;
  drafts.drop(panel(), "chosen");
  button.dataset.chosen = "";
  tell(`You chose “${button.dataset.title}” for this item before; it was not stored. Choose again to store it.`);
}

function painted() {
  const { said, next } = panel().dataset;
  const goesOnWaiting = waiting && !said && !panel().dataset.item;
  begin();
  // A page that looked again and found nothing new has nothing to say, and focus stays elsewhere.
  if (goesOnWaiting && document.activeElement !== document.body) return;
  say(`${said} ${next}`);
  window.scrollTo(0, 0);
  panel().querySelector("[data-focus]").focus({ preventScroll: true });
}

function press(selector) {
  const button = panel().querySelector(selector);
  if (ready && button) button.click();
  return Boolean(button);
}

const ACTIONS = {
  d: () => reading.toggle(panel()),
  e: () => reading.edit(panel()),
  c: () => document.getElementById("comment")?.focus(),
  u: () => press("[data-undo] button[aria-keyshortcuts]"),
  n: () => say(reading.go(panel(), 1)),
  p: () => say(reading.go(panel(), -1)),
  "?": () => document.getElementById("keys").showModal(),
};

listen((name) => {
  if (/^\d$/.test(name)) return press(`.choice[aria-keyshortcuts="${name}"]`);
  if (!Object.hasOwn(ACTIONS, name)) return false;
  ACTIONS[name]();
  return true;
});

// Why a submission must not go out now; empty if it may. `null` needs no word: it is a double press.
function objection(form) {
  if (trouble.isRetry(form)) return "";
  if (!ready) return null;
  const unsaved = !form.matches("[data-editor]") && reading.hasUnsaved(panel());
  return unsaved ? "The corrected text is not saved yet: save it, or leave the editor, then go on." : "";
}

// Before htmx: a submission counts for the painted item only, and once.
document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (!form.matches("[data-label], [data-undo], [data-editor]")) return;
    const why = objection(form);
    if (why !== "") {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (why) tell(why);
      return;
    }
    sent = { form, button: event.submitter };
    if (!form.matches("[data-label]")) return;
    form.elements.seconds.value = ((performance.now() - shownAt) / 1000).toFixed(1);
    event.submitter.dataset.chosen = "";
  },
  true,
);

document.addEventListener("htmx:before:request", ({ detail }) => {
  if (detail.ctx.sourceElement.matches("form")) hold(true);
});

document.addEventListener("htmx:before:response", (event) => {
  const { sourceElement: form, response } = event.detail.ctx;
  if ([200, 409, 422].includes(response.status) && !response.raw.redirected) {
    trouble.clear();
    if (response.status === 200) stored(form);
    return;
  }
  event.preventDefault();
  fail(form, response.raw.redirected ? "signed-out" : response.status >= 500 ? "server" : "refused");
});

document.addEventListener("htmx:error", ({ detail }) => {
  if (detail.ctx) fail(detail.ctx.sourceElement, "connection");
});

document.addEventListener("htmx:after:swap", painted);

function stored(form) {
  if (form.matches("[data-label]")) drafts.forget(panel(), ["comment", "text", "note", "chosen"]);
  if (form.matches("[data-editor]")) drafts.forget(panel(), ["text", "note"]);
}

function fail(form, cause) {
  if (!form.matches("form")) return;
  if (form.matches("[data-label]")) drafts.put(panel(), "chosen", sent.button.value);
  trouble.show(form, sent.button, cause);
}

document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-draft]")) drafts.keep(panel(), target);
});

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("[data-view], [data-edit], [data-leave], [data-discard], [data-keys]");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (target.matches("[data-view]")) reading.show(panel(), target.dataset.view);
  if (target.matches("[data-edit]")) reading.edit(panel());
  if (target.matches("[data-leave]")) reading.edit(panel(), false);
  if (target.matches("[data-discard]")) reading.startAnew(panel());
  if (target.matches("[data-keys]")) ACTIONS["?"]();
});

document.addEventListener("keydown", (event) => {
  const editor = event.target.closest?.("[data-editor]");
  if (editor && event.key === "Escape") reading.edit(panel(), false);
  if (editor && event.key === "Enter" && event.ctrlKey) editor.requestSubmit();
  if (event.target.id === "comment" && event.key === "Escape") panel().querySelector("[data-focus]").focus();
});

begin();
remindOfChoice();
