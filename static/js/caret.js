// Choosing words of a text by keyboard. The chosen words are the selection of the page.
//
//   ← →               the word on the left or right    Shift: from the first word to this one
//   ↑ ↓               the line above or below           Shift: as well
//   Ctrl Shift ← →    one letter less or more at the end
//   Home End          the first or the last word        Page Up, Page Down: the text above or below
//   letters           the next place with these words   Backspace: one letter less
//   Enter takes the words, Esc leaves.
import { bringIntoView, passageOf, rangesOf, sources, stringOf } from "./places.js";

const wordsIn = new Intl.Segmenter(undefined, { granularity: "word" });
const letters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

let state = null; // { texts, at, words, anchor, focus, more, sought, take, say, leave }

export const HELP = "Choose words with the arrow keys, or type them. Shift: more words. Enter: mark. Esc: leave.";

export const isOn = () => state !== null;

function wordsOf(string) {
  const found = [...wordsIn.segment(string)].filter((one) => one.isWordLike);
  const words = found.length ? found : [...wordsIn.segment(string)].filter((one) => one.segment.trim());
  return words.map(({ index, segment }) => ({ start: index, end: index + segment.length }));
}

// Begins at what is selected, else in the text that is judged: `take(passage)` gets the words, and
// `say(text)` tells what is chosen. False if no text is there to choose from.
export function begin({ take, say, leave }) {
  const there = sources().map((source) => ({ source, string: stringOf(source) }));
  const isShown = ({ source, string }) =>
    wordsOf(string).slice(0, 20).some((word) => rangesOf(passageOf(source, string, word))[0]?.getClientRects().length);
  const texts = there.filter((one) => one.string !== null).filter(isShown);
  if (!texts.length) return false;
  const judged = texts.findIndex(({ source }) => source.side === "after");
  state = { texts, take, say, leave, more: 0, sought: "" };
  enter(judged < 0 ? texts.length - 1 : judged, 0);
  say(`${HELP} ${quote()}`);
  return true;
}

function enter(at, word) {
  const words = wordsOf(state.texts[at].string);
  Object.assign(state, { at, words, more: 0 });
  const place = word < 0 ? seen(words.length - 1, -1) : seen(word, 1);
  Object.assign(state, { anchor: place, focus: place });
  show();
}

export function end() {
  if (!state) return;
  const { leave } = state;
  state = null;
  getSelection().removeAllRanges();
  leave();
}

function place() {
  const { words, anchor, focus, more } = state;
  const [first, last] = anchor < focus ? [anchor, focus] : [focus, anchor];
  return { start: words[first].start, end: words[last].end + more };
}

function passage() {
  const { source, string } = state.texts[state.at];
  return passageOf(source, string, place());
}

const quote = () => passage().quote;

function show() {
  const ranges = rangesOf(passage());
  const pane = state.texts[state.at].source.pane;
  if (document.activeElement !== pane) pane.focus({ preventScroll: true });
  if (!ranges.length) return getSelection().removeAllRanges();
  const [first, last] = [ranges[0], ranges.at(-1)];
  getSelection().setBaseAndExtent(first.startContainer, first.startOffset, last.endContainer, last.endOffset);
  bringIntoView(state.focus < state.anchor ? ranges : [last]);
}

// -------------------------------------------------------------------------------------------- moving

// Words in a drawn formula cannot be shown one by one: they are passed over.
function seen(word, step) {
  const { words, texts, at } = state;
  const { source, string } = texts[at];
  const isShown = (place) => rangesOf(passageOf(source, string, words[place])).length > 0;
  while (words[word] && !isShown(word)) word += step;
  return word;
}

// The word on the left or the right comes before or after as the text is written.
function goSideways(step, isLonger) {
  const { source, string } = state.texts[state.at];
  const [range] = rangesOf(passageOf(source, string, state.words[state.focus]));
  const isRightToLeft = range && getComputedStyle(range.startContainer.parentElement).direction === "rtl";
  const turned = isRightToLeft ? -step : step;
  go(state.focus + turned, isLonger, turned);
}

function go(wanted, isLonger, step) {
  const { words, texts, at } = state;
  const word = seen(wanted, step);
  const beyond = word < 0 ? -1 : word >= words.length ? 1 : 0;
  if (beyond && !isLonger && texts[at + beyond]) return enter(at + beyond, beyond < 0 ? -1 : 0);
  state.focus = Math.min(Math.max(word, 0), words.length - 1);
  if (!isLonger) state.anchor = state.focus;
  state.more = 0;
  show();
}

function boxOf(word) {
  const { source, string } = state.texts[state.at];
  return rangesOf(passageOf(source, string, state.words[word])).at(-1)?.getBoundingClientRect();
}

// The word of the next line that stands nearest below or above.
function wordOfLine(step) {
  const here = boxOf(state.focus);
  let best = null;
  let line = null;
  for (let word = state.focus + step; here && word >= 0 && word < state.words.length; word += step) {
    const box = boxOf(word);
    if (!box || Math.abs(box.top - here.top) < here.height / 2) continue;
    line ??= box.top;
    if (Math.abs(box.top - line) > here.height / 2) break;
    const far = Math.abs(box.left - here.left);
    if (best === null || far < best.far) best = { word, far };
  }
  return best?.word ?? (step < 0 ? 0 : state.words.length - 1);
}

function stretch(step) {
  const { string } = state.texts[state.at];
  const { start, end: stop } = place();
  const found = letters.segment(string).containing(step > 0 ? stop : stop - 1);
  if (!found || (step < 0 && found.index <= start)) return;
  state.more += step * found.segment.length;
  show();
}

function otherText(step) {
  if (state.texts[state.at + step]) enter(state.at + step, 0);
}

// The next place with these words, from the present one on and then from the top; says so if there
// is none.
function seek(sought) {
  state.sought = sought;
  if (!sought) return "";
  const { words, anchor, texts, at } = state;
  const isHere = (word) => texts[at].string.slice(words[word].start, words[word].start + sought.length).toLowerCase() === sought.toLowerCase();
  const from = anchor + (sought.length === 1 ? 1 : 0);
  const first = [...words.keys()].map((step) => (from + step) % words.length).find(isHere);
  if (first === undefined) return `“${sought}” is not in this text.`;
  const stop = words[first].start + sought.trimEnd().length;
  const last = words.findIndex((word, place) => place >= first && word.end >= stop);
  Object.assign(state, { anchor: first, focus: last < 0 ? words.length - 1 : last, more: 0 });
  show();
  return "";
}

const MOVES = {
  ArrowLeft: ({ shiftKey }) => goSideways(-1, shiftKey),
  ArrowRight: ({ shiftKey }) => goSideways(1, shiftKey),
  ArrowUp: ({ shiftKey }) => go(wordOfLine(-1), shiftKey, -1),
  ArrowDown: ({ shiftKey }) => go(wordOfLine(1), shiftKey, 1),
  Home: ({ shiftKey }) => go(0, shiftKey, 1),
  End: ({ shiftKey }) => go(state.words.length - 1, shiftKey, -1),
  PageUp: () => otherText(-1),
  PageDown: () => otherText(1),
};

function press(event) {
  const { key } = event;
  let missed = "";
  if (key === "Enter") {
    const { take } = state;
    const found = passage();
    end();
    take(found);
  } else if (key === "Escape") {
    end();
  } else if (event.ctrlKey && event.shiftKey && key.startsWith("Arrow")) {
    stretch(key === "ArrowRight" ? 1 : -1);
  } else if (event.ctrlKey || event.altKey || event.metaKey) {
    return false;
  } else if (MOVES[key]) {
    state.sought = "";
    MOVES[key](event);
  } else if (key === "Backspace") {
    missed = seek([...state.sought].slice(0, -1).join(""));
  } else if ([...key].length === 1 && !(key === " " && !state.sought)) {
    missed = seek(state.sought + key);
  } else {
    return false;
  }
  state?.say(missed || quote());
  return true;
}

document.addEventListener(
  "keydown",
  (event) => {
    if (!state || event.isComposing || document.querySelector("dialog[open]")) return;
    if (!state.texts[state.at].source.pane.isConnected) return end();
    if (!press(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

for (const kind of ["pointerdown", "focusin"]) {
  document.addEventListener(kind, (event) => {
    if (state && event.target !== state.texts[state.at].source.pane) end();
  });
}
