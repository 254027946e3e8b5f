// Reads the fields and answers of a label form; fields.js describes the markup and changes the
// form.

// What the server says of a field's kind (annotation/tasktypes/fields/base.py).
const is = (name) => (field) => field.dataset[name] !== undefined;
export const picksOne = is("picksOne"); // one press answers it
export const isWritten = is("written"); // words are typed
export const isPerChange = is("perChange"); // each changed piece is answered
export const marksTexts = is("marksTexts"); // passages of the texts are marked
const isPartly = is("incomplete"); // what was marked lacks something, which it says
const isSummed = is("summed"); // adds to the total

export const picks = new WeakMap(); // of a quick form: the button that was picked

export const all = (form) => [...form.querySelectorAll("[data-field]")];
export const shown = (form) => all(form).filter((field) => !field.hidden);
export const sends = (field) => Boolean(field.querySelector("button.choice"));
export const title = (field) => field.dataset.title;
export const active = (form) => form.querySelector("[data-field][data-active]");

// One of several options is given by being checked, every other input by its value.
const isOption = (input) => input.matches("[type=radio], [type=checkbox]");
const isGiven = (input) => (isOption(input) ? input.checked : input.value.trim() !== "");
const given = (field) => [...field.querySelectorAll("input, textarea")].filter(isGiven);

// Whether an input needs the arrow keys itself.
export const isTyped = (input) => input.matches("input, textarea") && !isOption(input);

const named = (form, name) => form.querySelector(`[data-field="${CSS.escape(name)}"]`);

function valuesOf(form, field) {
  if (sends(field)) return picks.has(form) ? [picks.get(form).value] : [];
  return given(field).map((input) => input.value.trim());
}

// The changed pieces of a claim check are a list; it is answered once each of them is.
export const pieces = (field) => [...field.querySelectorAll("li:has(input)")];
export const openPiece = (field) => pieces(field).find((piece) => !piece.querySelector(":checked"));

export const isAnswered = (form, field) =>
  isPerChange(field) ? !openPiece(field) : !isPartly(field) && valuesOf(form, field).length > 0;

export function isAsked(form, field) {
  const { whenField, whenValues } = field.dataset;
  if (whenField === undefined) return true;
  const other = named(form, whenField);
  if (!other || other.hidden) return false;
  const wanted = whenValues.split(" ");
  return valuesOf(form, other).some((value) => wanted.includes(value));
}

const needs = (form, field) =>
  isPartly(field) ||
  (field.dataset.required !== undefined &&
    !isAnswered(form, field) &&
    !(field.dataset.unless && isAnswered(form, named(form, field.dataset.unless))));

// Whether a field could be filled in instead of another one, which has its answer.
const isSpared = (form, field) =>
  shown(form).some((other) => other.dataset.unless === field.dataset.field && isAnswered(form, other));

export const missing = (form) => shown(form).find((field) => needs(form, field)) ?? null;
export const complete = (form) => missing(form) === null;

// Whether a field is still to be led to: it needs an answer, or is asked for one in so many words.
export function isOpen(form, field) {
  if (field.dataset.required !== undefined || isPartly(field)) return needs(form, field);
  if (isSpared(form, field)) return false;
  return !isAnswered(form, field) && (picksOne(field) || isPerChange(field) || field.dataset.whenField !== undefined);
}

export function chosenTitle(form, field) {
  if (sends(field)) return picks.get(form)?.dataset.title ?? "";
  return [...field.querySelectorAll("label.choice:has(:checked)")].map((label) => label.dataset.title).join(", ");
}

// What is filled in, by input name, each a list of texts.
export function answers(form) {
  const found = {};
  for (const field of shown(form)) {
    if (sends(field)) {
      if (picks.has(form)) found[field.dataset.field] = valuesOf(form, field);
      continue;
    }
    for (const input of given(field)) (found[input.name] ??= []).push(input.value);
  }
  return found;
}

// Gives an input the one of these answers that is its own.
export function fill(input, values) {
  if (isOption(input)) input.checked = values.includes(input.value);
  else [input.value] = values;
}

// The sum of the points as far as they are given, where the form has a place for it.
export function total(form) {
  const output = form.querySelector("[data-total]");
  if (!output) return;
  const points = shown(form).filter(isSummed);
  const numbers = points.flatMap((field) => valuesOf(form, field)).map(Number);
  const sum = numbers.reduce((one, other) => one + other, 0);
  const left = points.length - numbers.length;
  output.textContent = numbers.length === 0 ? "—" : left ? `${sum} so far` : String(sum);
}
