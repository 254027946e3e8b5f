// Passages that are marked in the texts, for the fields of a label form (templates/annotation/fields/
// _span.html). The answer is JSON in the field's hidden input; places.js says what stands where.
//
// fields.js calls bind(form, desk) for each painted form, and mark(form) for the key. `desk` has what
// the form does with an answer: say(form, text), complain(form, field, text), moveOn(form, field, text).
import * as caret from "./caret.js";
import { bringIntoView, occurrences, rangesOf, selected, settled } from "./places.js";

const HIGHLIGHT = "passage";
const CURRENT = "passage-current";
const KINDS = ["label", "severity"];
const BUTTONS = "[data-mark], [data-span-undo], [data-span-kinds] button";

let bound = null; // the form whose passages are drawn
let desk = null;
let used = null; // the field that got the last passage
let held = null; // what was selected when a button was pressed: a touch may drop the selection
let bar = null;
const states = new WeakMap(); // of a field: { passages, before, open, current }

const inputOf = (field) => field.querySelector("[data-passages]");
const fieldsOf = (form) => [...form.querySelectorAll("[data-field][data-marks-texts]")];
const kindsOf = (field, kind) => [...field.querySelectorAll(`[data-span-kinds="${kind}"] button`)];
const declared = (field) => KINDS.filter((kind) => kindsOf(field, kind).length);
const lacks = (field, passage) => declared(field).find((kind) => !passage[kind]);
const short = (quote) => `“${quote.length > 60 ? `${quote.slice(0, 60).trimEnd()}…` : quote}”`.replace(/\s+/g, " ");

// The field that a passage is for: the active one, the one that got the last, or the first.
function target(form) {
  const shown = fieldsOf(form).filter((field) => !field.hidden);
  return shown.find((field) => field.dataset.active !== undefined) ?? shown.find((field) => field === used) ?? shown[0];
}

// ------------------------------------------------------------------------------------------ the answer

function read(field) {
  try {
    const found = JSON.parse(inputOf(field).value || "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.quote === "string") : [];
  } catch {
    return [];
  }
}

const samePlace = (one, other) => ["text", "alternative", "start", "end"].every((name) => one[name] === other[name]);

function write(field, passages) {
  inputOf(field).value = passages.length ? JSON.stringify(passages) : "";
}

const lostText = (passage) => (occurrences(passage) > 1 ? "stands in the changed text more than once" : "is not in the text any more");

// Why the field cannot be sent yet, for the checks of the form.
function check(field) {
  const { passages, lost } = states.get(field);
  const open = passages.find((one) => lacks(field, one));
  const gone = passages.find((one) => lost.has(one));
  const problem = gone ? `${short(gone.quote)} ${lostText(gone)}. Remove it (✕), and mark it again if it is still meant.` : open ? `Choose the ${lacks(field, open)} of ${short(open.quote)}.` : "";
  if (problem) field.dataset.incomplete = problem;
  else delete field.dataset.incomplete;
}

function change(field, passages, current = null) {
  const state = states.get(field);
  state.before.push(state.passages);
  Object.assign(state, { passages, current });
  store(field);
}

function store(field) {
  write(field, states.get(field).passages);
  draw(field);
  for (const kind of ["input", "change"]) inputOf(field).dispatchEvent(new Event(kind, { bubbles: true }));
}

function undo(field) {
  const state = states.get(field);
  if (!state.before.length) return false;
  const passages = state.before.pop();
  Object.assign(state, { passages, current: null });
  store(field);
  desk.say(bound, `Undone. ${countOf(passages)}.`);
  return true;
}

const countOf = (passages) => (passages.length ? `${passages.length} passage${passages.length === 1 ? "" : "s"} marked` : "No passage is marked");

function add(form, field, passage, kinds) {
  const state = states.get(field);
  const marked = { ...passage, ...kinds };
  const twin = state.passages.find((one) => samePlace(one, marked) && declared(field).every((kind) => !marked[kind] || one[kind] === marked[kind]));
  used = field;
  getSelection().removeAllRanges();
  hideBar();
  if (twin) return desk.say(form, `${short(passage.quote)} is marked already.`);
  change(field, [...state.passages, marked], marked);
  advance(form, field, marked, `Marked ${short(passage.quote)}.`);
}

// Leads to what a passage still lacks; a field that asks for nothing more is done with the first.
function advance(form, field, passage, said) {
  const lacking = lacks(field, passage);
  if (lacking) {
    desk.say(form, `${said} Choose the ${lacking}.`);
    kindsOf(field, lacking)[0].scrollIntoView({ block: "nearest" });
  } else if (declared(field).length) desk.say(form, `${said} ${countOf(states.get(field).passages)}.`);
  else desk.moveOn(form, field, said);
}

// A label or a severity: of what is selected, else of the passage that lacks it, else of the last one.
function choose(form, field, kind, button) {
  const found = held ?? selected();
  held = null;
  const given = { [kind]: button.value };
  if (found?.problem) return desk.complain(form, field, found.problem);
  if (found) return add(form, field, found.passage, given);
  const { passages, current } = states.get(field);
  const open = passages.find((one) => lacks(field, one) === kind) ?? passages.find((one) => one === current);
  if (!open) return desk.complain(form, field, "Select words in a text first.");
  const marked = { ...open, ...given };
  change(field, passages.map((one) => (one === open ? marked : one)), marked);
  advance(form, field, marked, `${button.dataset.title}: ${short(marked.quote)}.`);
}

// The key: marks what is selected; without a selection, words are chosen by keyboard.
export function mark(form, field = target(form)) {
  if (!field) return desk.say(form, "Passages are not asked for here.");
  const found = held ?? selected();
  held = null;
  if (found?.problem) return desk.complain(form, field, found.problem);
  if (found) return add(form, field, found.passage, {});
  const back = document.activeElement;
  const begun = caret.begin({
    take: (passage) => add(form, field, passage, {}),
    say: (text) => desk.say(form, text),
    leave: () => {
      hint(field);
      if (back?.isConnected && back !== document.body) back.focus({ preventScroll: true });
    },
  });
  if (begun) field.querySelector("[data-span-hint]").textContent = caret.HELP;
  else desk.complain(form, field, "Select words in a text first, then mark them.");
}

// ----------------------------------------------------------------------------------------- what is shown

const hints = new WeakMap();
const hint = (field) => field.querySelector("[data-span-hint]").replaceChildren(...hints.get(field));

function element(name, attributes, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function picker(field, kind, passage, at) {
  const made = element("select", { "aria-label": `${kind === "label" ? "Label" : "Severity"} of ${short(passage.quote)}`, "data-span-kind": kind, "data-span-at": at });
  made.append(new Option(`${kind}…`, "", !passage[kind], !passage[kind]));
  for (const { value, dataset } of kindsOf(field, kind)) made.append(new Option(dataset.title, value, false, value === passage[kind]));
  return made;
}

function entry(field, passage, at) {
  const made = element("li", {});
  const { current, lost } = states.get(field);
  if (passage === current) made.dataset.current = "";
  const show = element("button", { type: "button", class: "span-quote", dir: "auto", "data-span-show": at }, passage.quote);
  made.append(show);
  if (lost.has(passage)) made.append(element("small", { class: "asked-problem" }, lostText(passage)));
  made.append(...declared(field).map((kind) => picker(field, kind, passage, at)));
  const remove = element("button", { type: "button", class: "button", "data-kind": "quiet", "data-span-remove": at, "aria-label": `Remove ${short(passage.quote)}` }, "✕");
  made.append(remove);
  return made;
}

// The digits answer what the open passage lacks; of a field without one, the first list.
function giveKeys(field) {
  const { passages } = states.get(field);
  const open = passages.map((one) => lacks(field, one)).find(Boolean) ?? declared(field)[0];
  for (const kind of declared(field)) {
    for (const button of kindsOf(field, kind)) {
      if (kind === open && button.dataset.ownKey) button.dataset.key = button.dataset.ownKey;
      else delete button.dataset.key;
    }
  }
}

function draw(field) {
  const { passages, before } = states.get(field);
  const list = field.querySelector("[data-span-list]");
  list.replaceChildren(...passages.map((passage, at) => entry(field, passage, at)));
  list.hidden = !passages.length;
  field.querySelector("[data-span-undo]").disabled = !before.length;
  giveKeys(field);
  check(field);
  paint();
}

// Marked in the texts by the browser, without a change of the page.
function paint() {
  if (!globalThis.CSS?.highlights) return;
  CSS.highlights.delete(HIGHLIGHT);
  CSS.highlights.delete(CURRENT);
  const shown = bound?.isConnected ? fieldsOf(bound).filter((field) => !field.hidden && states.has(field)) : [];
  const ranges = { [HIGHLIGHT]: [], [CURRENT]: [] };
  for (const { passages, current } of shown.map((field) => states.get(field))) {
    for (const one of passages) ranges[one === current ? CURRENT : HIGHLIGHT].push(...rangesOf(one));
  }
  for (const [name, found] of Object.entries(ranges)) if (found.length) CSS.highlights.set(name, new Highlight(...found));
}

function show(form, field, at) {
  const state = states.get(field);
  state.current = state.passages[at];
  const ranges = rangesOf(state.current);
  draw(field);
  field.querySelectorAll("[data-span-show]")[at]?.focus({ preventScroll: true });
  if (ranges.length) bringIntoView(ranges);
  else desk.say(form, "This view of the text does not show the passage. Turn to the format Plain.");
}

function remove(form, field, at) {
  const { passages } = states.get(field);
  change(field, passages.filter((_, place) => place !== at));
  desk.say(form, `Removed ${short(passages[at].quote)}.`);
  (field.querySelectorAll("[data-span-remove]")[at] ?? field.querySelector("[data-mark]")).focus();
}

// ------------------------------------------------------------------------- beside what is selected, for touch

function hideBar() {
  bar?.remove();
  bar = null;
}

function offer() {
  const field = bound?.isConnected && !caret.isOn() ? target(bound) : null;
  const found = field ? selected() : null;
  if (!found?.passage) return hideBar();
  if (!bar) {
    bar = field.querySelector("[data-mark]").cloneNode(true);
    bar.classList.add("span-bar");
    bar.removeAttribute("aria-keyshortcuts");
    (bound.closest("#panel") ?? bound).append(bar);
  }
  const { left, bottom, top } = found.box;
  const y = bottom + 8 + bar.offsetHeight > innerHeight ? Math.max(top - bar.offsetHeight - 8, 4) : bottom + 8;
  bar.style.setProperty("left", `${Math.min(Math.max(left, 4), innerWidth - bar.offsetWidth - 4)}px`);
  bar.style.setProperty("top", `${y}px`);
}

let waiting = 0;
function offerSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(offer, 150);
}

document.addEventListener("selectionchange", offerSoon);
document.addEventListener("scroll", () => bar && offerSoon(), { capture: true, passive: true });

// A press on a button must not take the selection with it, nor unfold a hint above the button.
for (const kind of ["pointerdown", "mousedown", "keydown"]) {
  document.addEventListener(kind, (event) => {
    const isButton = kind !== "keydown" && event.target.closest?.(BUTTONS);
    if (kind !== "mousedown") held = isButton ? selected() : null;
    else if (isButton) event.preventDefault();
  }, true);
}

// -------------------------------------------------------------------------------------------- the controls

const fieldOf = (node) => node.closest("[data-field][data-marks-texts]");

function onClick(form, event) {
  const button = event.target.closest("button");
  const field = button && fieldOf(button);
  if (!field) return;
  const { spanShow, spanRemove } = button.dataset;
  const kind = button.closest("[data-span-kinds]")?.dataset.spanKinds;
  if (kind) choose(form, field, kind, button);
  else if (button.matches("[data-mark]")) mark(form, field);
  else if (button.matches("[data-span-undo]")) undo(field);
  else if (spanShow) show(form, field, Number(spanShow));
  else if (spanRemove) remove(form, field, Number(spanRemove));
}

function onChange(event) {
  const { spanKind, spanAt } = event.target.dataset;
  if (!spanKind) return;
  const field = fieldOf(event.target);
  const { passages } = states.get(field);
  const marked = { ...passages[spanAt], [spanKind]: event.target.value };
  if (!marked[spanKind]) delete marked[spanKind];
  change(field, passages.map((one, at) => (at === Number(spanAt) ? marked : one)), marked);
  field.querySelector(`[data-span-kind="${spanKind}"][data-span-at="${spanAt}"]`)?.focus();
}

document.addEventListener("click", (event) => {
  if (bound && event.target.closest(".span-bar")) mark(bound);
});

document.addEventListener("keydown", (event) => {
  const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key === "z";
  if (!isUndo || event.defaultPrevented || !bound?.isConnected || event.target.closest?.("textarea, input:not([type=radio], [type=checkbox])")) return;
  const field = target(bound);
  if (field && undo(field)) event.preventDefault();
});

document.addEventListener("texts-shown", paint);

export function bind(form, does) {
  bound = form;
  desk = does;
  used = null;
  held = null;
  hideBar();
  for (const field of fieldsOf(form)) {
    const passages = [];
    const lost = new Set();
    for (const one of read(field)) {
      const now = settled(one);
      passages.push(now ?? one);
      if (!now) lost.add(one);
    }
    write(field, passages);
    states.set(field, { passages, lost, before: [], current: null });
    hints.set(field, [...field.querySelector("[data-span-hint]").childNodes]);
    for (const part of field.querySelectorAll("[data-span-hint], [data-span-marks], [data-span-kinds]")) part.hidden = false;
    draw(field);
  }
  form.addEventListener("click", (event) => onClick(form, event));
  form.addEventListener("change", onChange);
  paint();
}
