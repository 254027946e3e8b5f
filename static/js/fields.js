// The fields of a label form, for hands on the keyboard.
//
// The form (templates/annotation/fields/_form.html, for a context with task, phase, answers,
// difference and texts) is
//   form[data-label] > fieldset[data-field][data-kind][data-title]
//     [data-required] [data-unless="other field"] [data-when-field data-when-values="a b"]
// with radios, checkboxes or textareas named after the field; what a key picks has [data-key] (the
// key's own name, whatever a person made of it). Where one key is a whole label, the options of
// the first field are submit buttons instead. [data-store] sends, [data-cancel] takes a pick back,
// [data-total] shows the sum of the points, [data-fields-said] is the live region.
//
// The screen calls
//   bind(form)          once a form is painted; conditions, active field and total are set
//   press(form, key)    a key by its name; true if it meant something to the active field
//   move(form, step)    -1 or 1: to the field above or below; true if there are others
//   cancel(form)        Esc: takes back a pick that waits for more; true if there was one
//   complete(form)      true if the form can be sent as it is
//   missing(form)       the first field that still needs an answer, or null
//   ask(form)           goes to that field and says what it wants; true if there was one
//   send(form)          Ctrl+Enter: sends, or asks for what is missing
//   answers(form)       what is filled in, by input name, each a list of texts (for drafts)
//   pick(form, value)   takes a pick of the first field up again (from a draft)
// and sees only ordinary submit events: of a quick form the submitter is the button picked, and
// it comes once all that the pick asks for is answered. Every change of an answer is an ordinary
// input event. The form gets [data-bound], the active field [data-active].

const SINGLE = new Set(["choice", "yesno", "scale", "points"]);
const WRITTEN = new Set(["text", "edit"]);

const picks = new WeakMap(); // of a quick form: the button that was picked
let roaming = false; // arrows inside a group of radios pick, but do not move on

const all = (form) => [...form.querySelectorAll("[data-field]")];
const shown = (form) => all(form).filter((field) => !field.hidden);
const named = (form, name) => form.querySelector(`[data-field="${CSS.escape(name)}"]`);
const sends = (field) => Boolean(field.querySelector("button.choice"));
const title = (field) => field.dataset.title;

function say(form, text) {
  form.querySelector("[data-fields-said]")?.replaceChildren(text);
}

function valuesOf(form, field) {
  if (sends(field)) return picks.has(form) ? [picks.get(form).value] : [];
  return [...field.querySelectorAll("input:checked, textarea")].map((input) => input.value.trim()).filter(Boolean);
}

const isAnswered = (form, field) => valuesOf(form, field).length > 0;

function isAsked(form, field) {
  const { whenField, whenValues } = field.dataset;
  if (whenField === undefined) return true;
  const other = named(form, whenField);
  if (!other || other.hidden) return false;
  const wanted = whenValues.split(" ");
  return valuesOf(form, other).some((value) => wanted.includes(value));
}

// Fields are asked, or hidden and disabled, so that a hidden answer is never sent.
function refresh(form) {
  const before = shown(form);
  for (const field of all(form)) {
    field.hidden = !isAsked(form, field);
    if (field.dataset.whenField !== undefined) field.disabled = field.hidden;
  }
  const waits = picks.has(form);
  for (const button of form.querySelectorAll("button[data-store][type=button], button[data-cancel]")) button.hidden = !waits;
  if (active(form)?.hidden) activate(form, shown(form)[0]);
  total(form);
  return shown(form).filter((field) => !before.includes(field));
}

function total(form) {
  const output = form.querySelector("[data-total]");
  if (!output) return;
  const points = shown(form).filter((field) => field.dataset.kind === "points");
  const given = points.flatMap((field) => valuesOf(form, field)).map(Number);
  const sum = given.reduce((one, other) => one + other, 0);
  const left = points.length - given.length;
  output.textContent = given.length === 0 ? "–" : left ? `${sum} so far` : String(sum);
}

const active = (form) => form.querySelector("[data-field][data-active]");

function activate(form, field) {
  if (!field || field === active(form)) return;
  active(form)?.removeAttribute("data-active");
  field.dataset.active = "";
}

function focusIn(field) {
  const input = field.querySelector("input:checked, input, textarea, button.choice");
  input?.focus();
  field.scrollIntoView({ block: "nearest" });
}

function goTo(form, field) {
  activate(form, field);
  focusIn(field);
}

const needs = (form, field) =>
  field.dataset.required !== undefined &&
  !isAnswered(form, field) &&
  !(field.dataset.unless && isAnswered(form, named(form, field.dataset.unless)));

export const missing = (form) => shown(form).find((field) => needs(form, field)) ?? null;
export const complete = (form) => missing(form) === null;

export function ask(form) {
  const field = missing(form);
  if (!field) return false;
  goTo(form, field);
  const verb = WRITTEN.has(field.dataset.kind) ? "Write an answer" : "Choose an answer";
  say(form, `${title(field)}: ${verb} first.`);
  return true;
}

export function send(form) {
  if (ask(form)) return;
  const first = shown(form)[0];
  if (first && sends(first)) form.requestSubmit(picks.get(form));
  else form.requestSubmit(form.querySelector("[data-store]"));
}

export function answers(form) {
  const found = {};
  for (const field of shown(form)) {
    if (sends(field)) {
      if (picks.has(form)) found[field.dataset.field] = valuesOf(form, field);
      continue;
    }
    for (const input of field.querySelectorAll("input:checked, textarea")) {
      if (input.value.trim()) (found[input.name] ??= []).push(input.value);
    }
  }
  return found;
}

export function move(form, step) {
  const fields = shown(form);
  if (fields.length < 2) return false;
  const place = fields.indexOf(active(form));
  const next = fields[Math.min(Math.max(place + step, 0), fields.length - 1)];
  goTo(form, next);
  return true;
}

// After an answer that says all there is to say: to the next field that still has none.
function moveOn(form, field) {
  const fields = shown(form);
  const below = fields.slice(fields.indexOf(field) + 1);
  const open = (other) => !isAnswered(form, other) && (other.dataset.required !== undefined || SINGLE.has(other.dataset.kind));
  const next = below.find(open) ?? missing(form);
  const said = `${title(field)}: ${chosenTitle(form, field)}.`;
  if (picks.has(form) && complete(form) && !next) {
    send(form);
  } else if (next) {
    goTo(form, next);
    say(form, `${said} Next: ${title(next)}.`);
  } else {
    say(form, `${said} All is answered: Ctrl and Enter store it.`);
  }
}

function chosenTitle(form, field) {
  if (sends(field)) return picks.get(form)?.dataset.title ?? "";
  return [...field.querySelectorAll("label.choice:has(:checked)")].map((label) => label.dataset.title).join(", ");
}

export function pick(form, value) {
  const button = form.querySelector(`button.choice[value="${CSS.escape(value)}"]`);
  if (button) take(form, button);
}

// True if the pick asks for more before it can be sent.
function take(form, button) {
  for (const other of form.querySelectorAll("button.choice[data-chosen]")) other.removeAttribute("data-chosen");
  picks.set(form, button);
  button.dataset.chosen = "";
  refresh(form);
  const follows = shown(form).find((field) => field.dataset.whenField !== undefined && !isAnswered(form, field));
  if (!follows) return false;
  goTo(form, follows);
  const how = follows.dataset.required === undefined ? "Answer, or store it as it is with Ctrl and Enter." : "";
  say(form, `${button.dataset.title}. ${title(follows)} ${how}`);
  return true;
}

export function cancel(form) {
  if (!picks.has(form)) return false;
  picks.get(form).removeAttribute("data-chosen");
  picks.delete(form);
  refresh(form);
  goTo(form, shown(form)[0]);
  say(form, "Choose again.");
  return true;
}

// A text takes no keys once it is left: they go to the next field below that does.
function takesKeys(form) {
  const field = active(form);
  if (!field || !WRITTEN.has(field.dataset.kind)) return field;
  const below = shown(form).slice(shown(form).indexOf(field) + 1);
  return below.find((other) => !WRITTEN.has(other.dataset.kind));
}

export function press(form, key) {
  const field = takesKeys(form);
  if (!field || field.hidden) return false;
  const target = field.dataset.kind === "claim_check" ? ofPiece(field, key) : field.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!target) return false;
  const input = target.control;
  if (!input) target.click();
  else if (input.type === "radio" && input.checked) again(form, field, input);
  else input.click();
  return true;
}

// The key of what is chosen already: takes it back where no answer is needed.
function again(form, field, input) {
  if (field.dataset.required !== undefined) return moveOn(form, field);
  input.checked = false;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  refresh(form);
  say(form, `${title(field)}: no answer.`);
}

// The changed pieces are a list; the keys 1 and 2 answer the one with the focus, or the first open.
const pieces = (field) => [...field.querySelectorAll("li:has(input)")];
const openPiece = (field) => pieces(field).find((piece) => !piece.querySelector(":checked"));

function ofPiece(field, key) {
  const focused = pieces(field).find((piece) => piece.contains(document.activeElement));
  const inputs = (focused ?? openPiece(field) ?? pieces(field)[0])?.querySelectorAll("input");
  return inputs?.[Number(key) - 1]?.closest("label");
}

function changed(form, input) {
  const field = input.closest("[data-field]");
  if (!field) return;
  activate(form, field);
  refresh(form);
  if (roaming || WRITTEN.has(field.dataset.kind)) return;
  if (SINGLE.has(field.dataset.kind)) return moveOn(form, field);
  if (field.dataset.kind === "claim_check") return nextPiece(form, field, input);
  say(form, `${title(field)}: ${chosenTitle(form, field) || "none"}.`);
}

function nextPiece(form, field, input) {
  const said = input.value === "explained" ? "Explained by the claim" : "Collateral";
  const next = openPiece(field);
  next?.querySelector("input").focus();
  say(form, next ? `${said}. ${next.getAttribute("aria-label")}.` : `${said}. Every change is answered.`);
}

// A text box keeps its arrows until there is nothing more to go through in it.
function leavesText(input, step) {
  const { selectionStart: start, selectionEnd: end, value } = input;
  return start === end && (step > 0 ? end === value.length : start === 0);
}

function onKey(form, event) {
  const input = event.target;
  const inText = input.matches("textarea");
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const inField = input.closest("[data-field]");
  if (step && inField && (!inText || leavesText(input, step)) && move(form, step)) event.preventDefault();
  if (event.key === "Escape" && inField && cancel(form)) event.preventDefault();
  // Enter on a radio would press the first button of the form, whatever is chosen.
  if (event.key === "Enter" && input.matches("input")) {
    event.preventDefault();
    input.type === "radio" && input.checked ? moveOn(form, inField) : input.click();
  }
  roaming = event.key.startsWith("Arrow");
}

function onClick(form, event) {
  const button = event.target.closest("button.choice, [data-store], [data-cancel]");
  if (!button) return;
  if (button.matches("[data-cancel]")) {
    cancel(form);
  } else if (button.matches("[data-store]")) {
    if (button.type === "button") send(form);
    else if (ask(form)) event.preventDefault();
  } else if (take(form, button)) {
    event.preventDefault();
  } else if (ask(form)) {
    event.preventDefault();
  }
}

function restore(form) {
  const chosen = form.querySelector("button.choice[data-chosen]");
  if (chosen) picks.set(form, chosen);
}

// Arrows go between the fields also while nothing, or the heading of the item, has the focus.
document.addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const isFree = event.target === document.body || event.target.matches?.("[data-focus]");
  if (!step || !isFree || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const form = document.querySelector("#panel form[data-label][data-bound]");
  if (form && move(form, step)) event.preventDefault();
});

export function bind(form) {
  if (form.dataset.bound !== undefined) return;
  form.dataset.bound = "";
  form.noValidate = true;
  for (const hint of form.querySelectorAll("[data-only-if]")) hint.hidden = true;
  form.addEventListener("click", (event) => onClick(form, event));
  form.addEventListener("keydown", (event) => onKey(form, event));
  form.addEventListener("keyup", () => (roaming = false));
  form.addEventListener("change", (event) => changed(form, event.target));
  form.addEventListener("focusin", (event) => activate(form, event.target.closest("[data-field]")));
  restore(form);
  refresh(form);
  activate(form, missing(form) ?? shown(form)[0]);
}
