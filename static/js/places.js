// Places in the stored texts of an item: where a selection on the page stands in its text, and where
// a passage of a text stands on the page. Places count Unicode code points of the stored text, as the
// server does; a page counts UTF-16.
//
// A text is stored as its plain pane shows it (invisible signs are in the page, white space is kept).
// Other panes leave characters out: Markdown its signs, side by side the line breaks. There a passage
// is found again by what is left of it, if it stands as often in the pane as in the text.

const AROUND = 20; // characters on each side that tell equal passages apart
const LOOSE = /[\s*_`~#>|\\$]/;
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

const reading = () => document.querySelector("[data-reading]");

// ------------------------------------------------------------------------------------ texts and panes

// What the page has of the item's texts, in its order; of two compared texts the later one first.
// `side` tells these two apart, `alternative` texts of the same name (from 1).
export function sources() {
  const found = [];
  const beside = document.querySelectorAll("[data-beside]");
  for (const sheet of [...(reading()?.querySelectorAll("[data-compared], [data-text]") ?? []), ...beside]) {
    const panes = [...sheet.querySelectorAll("[data-panes]")];
    if (sheet.dataset.text === undefined) {
      for (const side of ["after", "before"]) found.push({ text: sheet.dataset[side], side, pane: panes[0] });
    } else {
      panes.forEach((pane, at) => {
        const alternative = panes.length > 1 ? { alternative: at + 1 } : {};
        found.push({ text: sheet.dataset.text, ...alternative, pane });
      });
    }
  }
  return found;
}

export const sourceOf = ({ text, alternative }) =>
  sources().find((one) => one.text === text && (one.alternative ?? 1) === (alternative ?? 1));

const shownWay = ({ pane }) => pane.querySelector(":scope > [data-serves]:not([hidden])");

// The source text itself, on the page or in wait there; null where a long text is not sent.
function plainWay({ pane, side }) {
  const name = side ? "inline" : "*:plain";
  const way = pane.querySelector(`:scope > [data-serves~="${name}"]`);
  return way ?? pane.querySelector(`:scope > template[data-pane~="${name}"]`)?.content.firstElementChild ?? null;
}

function isOf(node, way, side) {
  const parent = node.parentElement;
  if (parent.closest(".math[data-drawn]")) return false;
  if (!side) return true;
  if (way.matches(".diff-inline")) return !parent.closest(side === "after" ? "del" : "ins");
  if (way.matches(".diff-raw")) return side === "after";
  const column = side === "after" ? 1 : 0;
  if (way.matches("table")) return parent.closest("td")?.cellIndex === column;
  if (way.matches(".diff-columns")) return way.children[column].contains(node);
  return way.dataset.serves.startsWith(side);
}

// The text nodes of a way of reading, where each begins, and what they say together. Kept until the
// script that asks is done: one key asks many times, and a long text takes milliseconds.
const kept = new Map();

function contentOf(way, side) {
  if (!kept.size) queueMicrotask(() => kept.clear());
  const known = kept.get(way) ?? new Map();
  kept.set(way, known);
  if (!known.has(side)) known.set(side, readContent(way, side));
  return known.get(side);
}

function readContent(way, side) {
  const nodes = [];
  const starts = [];
  let string = "";
  const walker = way && document.createTreeWalker(way, NodeFilter.SHOW_TEXT);
  while (walker?.nextNode()) {
    if (!isOf(walker.currentNode, way, side)) continue;
    nodes.push(walker.currentNode);
    starts.push(string.length);
    string += walker.currentNode.data;
  }
  return { nodes, starts, string };
}

const shownOf = (source) => contentOf(shownWay(source), source.side);

export function stringOf(source) {
  const way = plainWay(source);
  return way && contentOf(way, source.side).string;
}

// ------------------------------------------------------------------------------------------- counting

const pointsIn = (string) => [...string].length;

function unitsOf(string, points) {
  let at = 0;
  for (let left = points; left > 0 && at < string.length; left -= 1) at += string.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

function loosened(string) {
  let kept = "";
  const at = [];
  for (let place = 0; place < string.length; place += 1) {
    if (LOOSE.test(string[place])) continue;
    kept += string[place];
    at.push(place);
  }
  return { kept, at };
}

function everyPlace(string, wanted) {
  const found = [];
  for (let at = string.indexOf(wanted); at >= 0; at = string.indexOf(wanted, at + 1)) found.push(at);
  return found;
}

// A passage of one string, from start to end, in another that says the same with other signs; null if
// it is not there, or it cannot be told which of several it is.
function carry(from, to, start, end) {
  if (from === to) return { start, end };
  const [one, other] = [loosened(from), loosened(to)];
  const wanted = loosened(from.slice(start, end)).kept;
  if (!wanted) return null;
  const here = everyPlace(one.kept, wanted);
  const there = everyPlace(other.kept, wanted);
  const first = one.at.findIndex((place) => place >= start);
  const which = here.indexOf(first);
  if (which < 0) return null;
  const at = here.length === there.length ? there[which] : mostAlike(one.kept, first, other.kept, there, wanted.length);
  return at === null ? null : { start: other.at[at], end: other.at[at + wanted.length - 1] + 1 };
}

// Where the passage that begins at `first` is meant, of several places in another string, by what
// stands before and after; null if that fits none of them, or several alike.
function mostAlike(one, first, other, there, length) {
  const sides = there.map((at) => {
    let [before, after] = [0, 0];
    while (before < AROUND && one[first - 1 - before] === other[at - 1 - before]) before += 1;
    while (after < AROUND && one[first + length + after] === other[at + length + after]) after += 1;
    return before + after;
  });
  const best = Math.max(0, ...sides);
  return best > 0 && sides.filter((side) => side === best).length === 1 ? there[sides.indexOf(best)] : null;
}

// Without white space at its ends, and with whole letters: no accent is cut off, no emoji halved.
function tidied(string, start, end) {
  const passage = string.slice(start, end);
  start += passage.length - passage.trimStart().length;
  end -= passage.length - passage.trimEnd().length;
  if (start >= end) return null;
  const letters = graphemes.segment(string);
  const last = letters.containing(end - 1);
  return { start: letters.containing(start).index, end: last.index + last.segment.length };
}

// A passage as it is stored, from a place in UTF-16.
export function passageOf(source, string, place) {
  const quote = string.slice(place.start, place.end);
  const start = pointsIn(string.slice(0, place.start));
  const alternative = source.alternative ? { alternative: source.alternative } : {};
  return { text: source.text, ...alternative, start, end: start + pointsIn(quote), quote };
}

// Where a stored passage stands in its text, in UTF-16; of a text that changed, the only place with
// the same words. Null if there is none.
function placeOf(string, { start, end, quote }) {
  const at = unitsOf(string, start);
  const stop = at + unitsOf(string.slice(at), end - start);
  const alike = (one) => one.replaceAll("\r", "\n");
  if (alike(string.slice(at, stop)) === alike(quote)) return { start: at, end: stop };
  const found = everyPlace(string, quote);
  return found.length === 1 ? { start: found[0], end: found[0] + quote.length } : null;
}

// How often the words of a passage stand in its text.
export function occurrences(passage) {
  const source = sourceOf(passage);
  const string = source && stringOf(source);
  return string ? everyPlace(string, passage.quote).length : 0;
}

// The stored passage at its place in the text as it is now; null if the text no longer has it. One
// whose text is not on the page stays as it is.
export function settled(passage) {
  const source = sourceOf(passage);
  const string = source && stringOf(source);
  if (!source) return reading() ? null : passage;
  if (string === null) return passage;
  const place = placeOf(string, passage);
  return place && { ...passage, ...passageOf(source, string, place) };
}

// -------------------------------------------------------------------------------------- the selection

// The part of the content that a range selects, in UTF-16; null if it selects none.
function partOf({ nodes, starts }, range) {
  let [start, end] = [null, null];
  nodes.forEach((node, at) => {
    if (!range.intersectsNode(node)) return;
    const from = node === range.startContainer ? range.startOffset : 0;
    const to = node === range.endContainer ? range.endOffset : node.length;
    if (from >= to) return;
    start ??= starts[at] + from;
    end = starts[at] + to;
  });
  return start === null ? null : { start, end };
}

// Which of two compared texts is meant, where both are selected: what was removed alone is of the
// text before; else the column where the selection began, or the later text.
function sideMeant(range, way, anchor) {
  if (way.matches(".diff-inline")) {
    const { view } = reading().dataset;
    if (view === "after" || view === "before") return view;
    const touches = (tag) => [...way.querySelectorAll(tag)].some((one) => range.intersectsNode(one) && one.getClientRects().length);
    return touches("del") && !touches("ins") ? "before" : "after";
  }
  const column = way.matches("table") ? anchor.parentElement?.closest("td")?.cellIndex : [...way.children].findIndex((one) => one.contains(anchor));
  return column === 0 ? "before" : "after";
}

const isHere = (one, range) => one.pane.getClientRects().length > 0 && range.intersectsNode(one.pane);

// What is selected: { passage }, or { problem } in words; null if nothing is.
export function selected() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  let found = sources().filter((one) => isHere(one, range));
  found = found.map((source) => ({ source, content: shownOf(source) }));
  found = found.map((one) => ({ ...one, part: partOf(one.content, range) }));
  found = found.filter(({ content, part }) => part && content.string.slice(part.start, part.end).trim());
  if (!found.length) return null;
  if (new Set(found.map(({ source }) => source.pane)).size > 1) return { problem: "Select words of one text only." };
  const way = shownWay(found[0].source);
  const side = found.length > 1 ? sideMeant(range, way, selection.anchorNode) : found[0].source.side;
  const { source, content, part } = found.find((one) => one.source.side === side) ?? found[0];
  const string = stringOf(source);
  const shown = tidied(content.string, part.start, part.end);
  const place = string !== null && shown && carry(content.string, string, shown.start, shown.end);
  if (!place) return { problem: `This passage cannot be found in the source text. Turn to ${source.side ? "the view Inline and the format Plain" : "the format Plain"}, and select it there.` };
  const whole = tidied(string, place.start, place.end);
  return { passage: passageOf(source, string, whole), box: range.getBoundingClientRect() };
}

// --------------------------------------------------------------------------------------- on the page

// Ranges that cover a stored passage where it is shown, one for each text node.
export function rangesOf(passage) {
  const source = sourceOf(passage);
  const string = source && stringOf(source);
  if (!string) return [];
  const place = placeOf(string, passage);
  const { nodes, starts, string: shown } = shownOf(source);
  const there = place && carry(string, shown, place.start, place.end);
  if (!there) return [];
  const found = [];
  nodes.forEach((node, at) => {
    const from = Math.max(there.start - starts[at], 0);
    const to = Math.min(there.end - starts[at], node.length);
    if (from >= to) return;
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    found.push(range);
  });
  return found;
}

// A third from the top of its pane, if it is not in view there.
export function bringIntoView(ranges) {
  const pane = ranges[0]?.startContainer.parentElement.closest(".pane, .label-claims");
  if (!pane) return;
  const [box, frame] = [ranges[0].getBoundingClientRect(), pane.getBoundingClientRect()];
  if (box.top < frame.top || box.bottom > frame.bottom) pane.scrollTop += box.top - frame.top - pane.clientHeight / 3;
  const now = ranges[0].getBoundingClientRect();
  if (now.top < 0 || now.bottom > innerHeight) scrollBy(0, now.top - innerHeight / 3);
}
