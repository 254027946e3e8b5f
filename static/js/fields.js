// The fields of a label form, for use with the keyboard.
//
// The form (templates/annotation/fields/_form.html, for a context with task, phase, answers,
// difference and texts) is
//   form[data-label] > fieldset[data-field][data-kind][data-title]
//     [data-required] [data-unless="other field"] [data-when-field data-when-values="a b"]
// with inputs or textareas named after the field; each option with a key has [data-key]
// (the default key, even if the user changed it). If one key is a whole label, the options of the
// first field are submit buttons instead. [data-store] sends, [data-cancel] takes a choice back,
// [data-total] shows the sum of the points, [data-fields-said] is the live region. A problem with
// an answer is shown at its field in [data-problem] until it is fixed.
//
// The screen calls
//   bind(form)          once a form is painted; sets conditions, active field and total
//   press(form, key)    handles a key by its name; true if the active field uses it
//   takes(form, key)    whether the active field uses a key
//   deny(form, keyOf)   says at the active field that it has no such key, and which keys it has
//   move(form, step)    -1 or 1: goes to the field above or below; true if there are others
//   cancel(form)        Esc: takes back a choice that waits for more answers; true if there was one
//   complete(form)      true if the form can be sent as it is
//   missing(form)       the first field that still needs an answer, or null
//   ask(form)           goes to that field and says there what is missing; true if there was one
//   send(form)          Ctrl+Enter: sends, or asks for what is missing
//   answers(form)       the answers, by input name, each a list of texts (for drafts)
//   mark(form)          marks the selected passage, or lets one be chosen by keyboard
//   fill(input, values) restores the answer of an input (from a draft)
//   pick(form, value)   restores a choice of the first field (from a draft)
// and handles only ordinary submit events. In a quick form the submitter is the chosen button, and
// the event comes once everything else in the form is answered, or when the user sends it. Every
// change of an answer is an ordinary input event. The form gets [data-bound], the active field
// [data-active].

import * as spans from "./spans.js";
import { active, all, chosenTitle, isAsked, isOpen, isPerChange, isWritten, marksTexts, missing } from "./field_values.js";
import { isTyped, openPiece, picks, picksOne, pieces, sends, shown, title, total } from "./field_values.js";

export { answers, complete, fill, missing } from "./field_values.js";
export { mark } from "./spans.js";

let roaming = false; // arrows inside a group of radios pick, but do not move on

function say(form, text) {
  form.querySelector("[data-fields-said]")?.replaceChildren(text);
}

function hush(form) {
  for (const problem of form.querySelectorAll("[data-problem]")) {
    const field = problem.closest("[data-field]");
    const others = field.getAttribute("aria-describedby").split(" ").filter((id) => id !== problem.id);
    if (others.length) field.setAttribute("aria-describedby", others.join(" "));
    else field.removeAttribute("aria-describedby");
    problem.remove();
  }
}

// A title that asks ends with its own mark.
const asked = (field) => (title(field).endsWith("?") ? title(field) : `${title(field)}:`);

// In sight and with the field's own description, for who comes to it by a screen reader.
function complain(form, field, text) {
  hush(form);
  const problem = document.createElement("p");
  problem.className = "asked-problem";
  problem.dataset.problem = "";
  problem.id = `asked-${field.dataset.field}-problem`;
  problem.textContent = text;
  field.querySelector("legend").after(problem);
  field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${problem.id}`.trim());
  activate(form, field);
  // A button that sends would take the next press of Space or Enter.
  if (sends(field)) field.scrollIntoView({ block: "nearest" });
  else focusIn(field);
  say(form, `${asked(field)} ${text}`);
}

// Fields are asked, or hidden and disabled, so that a hidden answer is never sent.
function refresh(form) {
  hush(form);
  for (const field of all(form)) {
    field.hidden = !isAsked(form, field);
    if (field.dataset.whenField !== undefined) field.disabled = field.hidden;
  }
  const waits = picks.has(form);
  for (const button of form.querySelectorAll("button[data-store][type=button], button[data-cancel]")) button.hidden = !waits;
  if (active(form)?.hidden) activate(form, shown(form)[0]);
  total(form);
}

function activate(form, field) {
  if (!field || field === active(form)) return;
  active(form)?.removeAttribute("data-active");
  field.dataset.active = "";
}

function focusIn(field) {
  const open = isPerChange(field) ? openPiece(field) : null;
  const input = (open ?? field).querySelector("input:checked, input:not([type=hidden]), textarea, button.choice, button[data-mark]");
  input?.focus();
  field.scrollIntoView({ block: "nearest" });
}

function goTo(form, field) {
  activate(form, field);
  focusIn(field);
}

export function ask(form) {
  const field = missing(form);
  if (!field) return false;
  const wanted = marksTexts(field) ? "Mark a passage first." : isWritten(field) ? "Write an answer first." : "Choose an answer first.";
  const instead = shown(form).find((other) => other.dataset.field === field.dataset.unless);
  const text = instead ? `${wanted} Or write it in “${title(instead)}”.` : wanted;
  complain(form, field, field.dataset.incomplete ?? text);
  return true;
}

// A check of the changes that was begun and not ended may have been left by mistake: asked once.
function askForRest(form) {
  const field = shown(form).find((one) => isPerChange(one) && openPiece(one) && pieces(one).some((piece) => piece.querySelector(":checked")));
  if (!field || form.dataset.unfinished !== undefined) return false;
  form.dataset.unfinished = "";
  const open = pieces(field).filter((piece) => !piece.querySelector(":checked")).length;
  const left = open === 1 ? "1 change has no answer" : `${open} changes have no answer`;
  complain(form, field, `${left}. Answer, or press Ctrl+Enter again to save without.`);
  return true;
}

export function send(form) {
  if (ask(form) || askForRest(form)) return;
  const first = shown(form)[0];
  if (first && sends(first)) form.requestSubmit(picks.get(form));
  else form.requestSubmit(form.querySelector("[data-store]"));
}

export function move(form, step) {
  const fields = shown(form);
  if (fields.length < 2) return false;
  const place = fields.indexOf(active(form));
  const next = fields[Math.min(Math.max(place + step, 0), fields.length - 1)];
  goTo(form, next);
  return true;
}

// Of an answer that the form began with, as of a draft or an undone label, the same keys give it
// anew: they go from field to field as if it were open.
const touched = new WeakSet();
const isUntouched = (field) => !touched.has(field) && !isKeyless(field);

// After an answer that says all there is to say: to the next field that is open, if any is. A pick
// that waits goes out by itself only once nothing is.
function moveOn(form, field, said = `${asked(field)} ${chosenTitle(form, field)}.`) {
  const fields = shown(form);
  const open = fields.filter((other) => other !== field && isOpen(form, other));
  // Several passages are marked one after the other.
  const stays = marksTexts(field) && field.dataset.required === undefined;
  const below = (other) => fields.indexOf(other) > fields.indexOf(field);
  const next = open.find(below) ?? missing(form) ?? (picks.has(form) ? null : fields.filter(below).find(isUntouched));
  if (next && !stays) {
    goTo(form, next);
    say(form, `${said} Next: ${title(next).replace(/([^.?!])$/, "$1.")}`);
  } else if (picks.has(form) && !open.length && !marksTexts(field)) {
    send(form);
  } else {
    say(form, `${said} ${open.length ? "The rest is optional" : "All fields are answered"}: Ctrl+Enter saves.`);
  }
}

export function pick(form, value) {
  const button = form.querySelector(`button.choice[value="${CSS.escape(value)}"]`);
  if (button) take(form, button);
}

// True if more is asked before the pick can be sent.
function take(form, button) {
  for (const other of form.querySelectorAll("button.choice[data-chosen]")) other.removeAttribute("data-chosen");
  picks.set(form, button);
  button.dataset.chosen = "";
  refresh(form);
  const follows = shown(form).find((field) => !sends(field) && isOpen(form, field));
  if (!follows) return false;
  goTo(form, follows);
  const how = follows.dataset.required === undefined ? "Answer, or press Ctrl+Enter to save without an answer." : "";
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

// A text takes no keys once it is left, and passages without labels take no digits: they go to the
// next field below that does, or else to the first that is open.
const isKeyless = (field) => isWritten(field) || (marksTexts(field) && !field.querySelector("[data-key]"));

function takesKeys(form) {
  const field = active(form);
  if (!field || !isKeyless(field)) return field;
  const others = shown(form).filter((other) => !isKeyless(other));
  const below = others.filter((other) => field.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
  return below[0] ?? others.find((other) => isOpen(form, other)) ?? others[0];
}

function targetOf(field, key) {
  if (!field || field.hidden) return null;
  return isPerChange(field) ? ofPiece(field, key) : field.querySelector(`[data-key="${CSS.escape(key)}"]`);
}

export const takes = (form, key) => Boolean(targetOf(takesKeys(form), key));

export function press(form, key) {
  const field = takesKeys(form);
  const target = targetOf(field, key);
  if (!target) return false;
  const input = target.control;
  if (!input) target.click();
  else if (input.type === "radio" && input.checked) again(form, field, input);
  else input.click();
  // Where nothing else is asked for, the eye and the arrow keys stay at what was chosen.
  if (input && !isPerChange(field) && field.contains(document.activeElement)) input.focus({ preventScroll: true });
  return true;
}

export function deny(form, keyOf) {
  const field = takesKeys(form) ?? active(form);
  const keyed = [...field.querySelectorAll("[data-key]")].map((option) => option.dataset.key);
  const keys = pieces(field).length ? ["1", "2", "0"] : keyed.filter(Boolean);
  const text = keys.length ? `This key does nothing here. Use ${keys.map(keyOf).join(", ")}.` : "This field has no keys. Use the arrow keys to go to another field.";
  complain(form, field, text);
  return true;
}

// The key of what is chosen already: takes it back where no answer is needed.
function again(form, field, input) {
  touched.add(field);
  if (field.dataset.required !== undefined) return moveOn(form, field);
  input.checked = false;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  refresh(form);
  say(form, `${asked(field)} no answer.`);
}

// The keys 1 and 2 answer the changed piece that is shown in the texts, or the first open one; 0
// explains all that are open.
function ofPiece(field, key) {
  if (key === "0") return field.querySelector("[data-rest-explained]");
  const piece = pieces(field).find((one) => "current" in one.dataset) ?? openPiece(field) ?? pieces(field)[0];
  return piece?.querySelectorAll("input")[Number(key) - 1]?.closest("label");
}

function changed(form, input) {
  const field = input.closest("[data-field]");
  if (!field) return;
  touched.add(field);
  activate(form, field);
  refresh(form);
  if (roaming || isWritten(field) || marksTexts(field)) return;
  if (picksOne(field)) return moveOn(form, field);
  if (isPerChange(field)) return nextPiece(form, field, input);
  say(form, `${asked(field)} ${chosenTitle(form, field) || "none"}.`);
}

function nextPiece(form, field, input) {
  const said = input.value === "explained" ? "Explained by the claim" : "Collateral";
  const next = openPiece(field);
  const piece = pieces(field).find((one) => one.contains(input));
  const isCorrection = "answered" in piece.dataset;
  piece.dataset.answered = "";
  if (!next && isCorrection) return say(form, `${said}. Every change is answered: save when you are done.`);
  if (!next) return moveOn(form, field, `${said}. Every change is answered.`);
  next.querySelector("input").focus();
  say(form, `${said}. ${next.getAttribute("aria-label")}.`);
}

// A text box keeps its arrows until there is nothing more to go through in it; a number and a slider
// need them always.
function leavesText(input, step) {
  const { selectionStart: start, selectionEnd: end, value } = input;
  if (start === null) return false;
  return start === end && (step > 0 ? end === value.length : start === 0);
}

function onKey(form, event) {
  const input = event.target;
  const isText = isTyped(input);
  if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const inField = input.closest("[data-field]");
  if (step && inField && (!isText || leavesText(input, step)) && move(form, step)) event.preventDefault();
  if (event.key === "Escape" && inField && cancel(form)) event.preventDefault();
  // Enter on a radio would press the first button of the form, whatever is chosen.
  if (event.key === "Enter" && input.matches("input")) {
    event.preventDefault();
    isText || (input.type === "radio" && input.checked) ? moveOn(form, inField) : input.click();
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
  } else if (take(form, button) || ask(form)) {
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
  for (const piece of all(form).filter(isPerChange).flatMap(pieces)) {
    if (piece.querySelector("input:checked")) piece.dataset.answered = "";
  }
  for (const hint of form.querySelectorAll("[data-only-if]")) hint.hidden = true;
  form.addEventListener("click", (event) => onClick(form, event));
  form.addEventListener("keydown", (event) => onKey(form, event));
  form.addEventListener("keyup", () => (roaming = false));
  form.addEventListener("input", () => hush(form));
  form.addEventListener("change", (event) => changed(form, event.target));
  form.addEventListener("focusin", ({ target }) => {
    const field = target.closest("[data-field]");
    if (field === active(form)) return;
    activate(form, field);
    // The field that was left shrinks, so on a small screen the option may have moved out of sight.
    if (target.matches("input")) target.scrollIntoView({ block: "nearest" });
  });
  restore(form);
  spans.bind(form, { say, complain, moveOn });
  refresh(form);
  // A choice that was restored is followed by what it left open.
  const follows = picks.has(form) && shown(form).find((field) => !sends(field) && isOpen(form, field));
  activate(form, missing(form) ?? (follows || shown(form)[0]));
}

// The server takes at most a thousand entries of a form, and a long text may have more changes: their
// answers are sent as one entry, as JSON.
document.addEventListener("formdata", ({ target, formData }) => {
  for (const { dataset } of all(target).filter(isPerChange)) {
    const prefix = `${dataset.field}.`;
    const said = [...formData].filter(([name]) => name.startsWith(prefix));
    for (const [name] of said) formData.delete(name);
    const answers = said.map(([name, value]) => [name.slice(prefix.length), value]);
    if (said.length) formData.set(dataset.field, JSON.stringify(Object.fromEntries(answers)));
  }
});
