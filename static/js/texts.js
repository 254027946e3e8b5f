// Shows the texts of an item: all views, and navigation between changes.
import * as maths from "./maths.js";

const YEAR = 365 * 24 * 3600;

const textsIn = (panel) => (panel.matches?.("[data-reading]") ? panel : panel.querySelector("[data-reading]"));
// The texts next to the item too.
const panesOf = (texts) => [...texts.querySelectorAll("[data-panes]"), ...texts.getRootNode().querySelectorAll("[data-beside] [data-panes]")];
const paneOf = (texts) => texts.querySelector('[data-panes="compared"]');

// The server draws the next item in the same way at once.
function remember(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR}; samesite=lax`;
}

function choose(links, name, value) {
  for (const link of links) {
    if (link.dataset[name] === value) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// ---------------------------------------------------------------------------------- what is shown

function wanted({ view, format }) {
  return [view, `${view}:${format}`, `*:${format}`];
}

const meets = (serves, names) => serves.split(" ").some((name) => names.includes(name));

// Shows what serves these names, if it is there; what waits in a template is drawn now.
function bring(pane, names) {
  for (const kept of pane.querySelectorAll("template[data-pane]")) {
    if (meets(kept.dataset.pane, names)) kept.replaceWith(kept.content);
  }
  const ways = [...pane.querySelectorAll("[data-serves]")];
  if (!ways.some((way) => meets(way.dataset.serves, names))) return false;
  for (const way of ways) way.hidden = !meets(way.dataset.serves, names);
  return true;
}

// Of a long text only the chosen way is on the page; another is asked for.
async function fetchWays(texts) {
  const address = new URL(location.href);
  address.searchParams.set("view", texts.dataset.view);
  address.searchParams.set("format", texts.dataset.format);
  const answer = await fetch(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector(`[data-reading="${texts.dataset.reading}"]`);
  if (!fresh) throw new Error("The texts have changed.");
  for (const pane of panesOf(texts)) {
    const twin = page.querySelector(`[data-panes="${CSS.escape(pane.dataset.panes)}"]`);
    for (const way of twin.querySelectorAll(":scope > [data-serves]")) {
      if (!pane.querySelector(`:scope > [data-serves="${way.dataset.serves}"]`)) pane.append(way);
    }
  }
}

async function turn(texts) {
  const panes = panesOf(texts);
  const missing = () => panes.filter((pane) => !bring(pane, wanted(texts.dataset))).length > 0;
  if (missing()) {
    try {
      await fetchWays(texts);
      missing();
    } catch {
      note(texts, "This view of the text could not be loaded. Reload the page.");
      return;
    }
  }
  await settle(texts);
}

// Whether the next item is shown in the same way: its view shows what changed.
export const lasts = (panel) => Boolean(textsIn(panel).querySelector("[data-view][data-lasts][aria-current]"));

export function show(panel, view) {
  const texts = textsIn(panel);
  texts.dataset.view = view;
  choose(texts.querySelectorAll("[data-view]"), "view", view);
  if (lasts(panel)) remember("diff", view);
  turn(texts);
}

// The next view, and behind the last one the first.
export function toggle(panel) {
  const links = [...panel.querySelectorAll("a[data-view]")];
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  if (links.length) show(panel, links[(at + 1) % links.length].dataset.view);
}

export function format(panel, name) {
  const texts = textsIn(panel);
  texts.dataset.format = name;
  delete texts.dataset.findsFormat;
  const links = [...texts.querySelectorAll("[data-format-choice]")];
  choose(links, "formatChoice", name);
  texts.querySelector("[data-format-shown]").textContent = links.find((link) => link.dataset.formatChoice === name).textContent;
  remember(`format-${texts.dataset.project}`, name);
  turn(texts);
}

// Folds changes of white space and formatting, or shows them; says what it did.
export function fold(panel) {
  const texts = textsIn(panel);
  const link = texts?.querySelector("[data-fold-switch]");
  if (!link) return "There is nothing to fold here.";
  const words = link.querySelector("span");
  [words.textContent, link.dataset.foldSwitch] = [link.dataset.foldSwitch, words.textContent];
  texts.dataset.fold = texts.dataset.fold === "on" ? "off" : "on";
  remember("fold", texts.dataset.fold);
  delete texts.dataset.at;
  note(texts, countOf(texts));
  settle(texts);
  return texts.dataset.fold === "on" ? "Folded." : "Shown.";
}

// -------------------------------------------------------------------------- from change to change

const shownMark = (texts, number) =>
  [...paneOf(texts).querySelectorAll(`[data-serves]:not([hidden]) [data-change="${number}"]`)].find(
    (mark) => mark.getClientRects().length,
  );

// The places to go to, in order: each change, both ends of a move one after the other, and all
// changes that fold at once. `marks` are the numbers that belong to the place.
function stops(texts) {
  const all = (texts?.querySelector("[data-compared]")?.dataset.changes ?? "").split(" ").filter(Boolean);
  const shown = texts?.dataset.fold === "on" ? all.filter((entry) => !entry.endsWith("f")) : all;
  return shown.flatMap((entry, at) => {
    const marks = entry.replace("f", "").split(/[+,]/);
    const ends = entry.includes("+") ? marks : marks.slice(0, 1);
    return ends.map((number) => ({ number, marks, said: `Change ${at + 1} of ${shown.length}` }));
  });
}

const countOf = (texts) => {
  const count = new Set(stops(texts).map(({ said }) => said)).size;
  return `${count} change${count === 1 ? "" : "s"}`;
};

const stopOf = (texts, number) =>
  stops(texts).find((stop) => stop.number === number) ?? stops(texts).find((stop) => stop.marks.includes(number));

function mark(texts, numbers, at) {
  for (const old of paneOf(texts).querySelectorAll("[data-current]")) delete old.dataset.current;
  for (const number of numbers) {
    for (const part of paneOf(texts).querySelectorAll(`[data-change="${number}"]`)) part.dataset.current = "";
  }
  texts.dataset.at = at;
}

// How far from the top of the page the item begins, and in it what is judged: the style sheet has
// both fill the window from there on, whatever stands above.
function fit() {
  const panel = document.querySelector("#panel.label-panel");
  if (!panel) return;
  const pane = panel.querySelector(".pane-row > .pane") ?? [...panel.querySelectorAll(".pane")].at(-1);
  const [top, paneTop] = [panel, pane].map((part) => part && part.getBoundingClientRect().top + scrollY);
  panel.querySelector(".label-side")?.style.setProperty("--top", `${top}px`);
  if (pane?.getClientRects().length) pane.style.setProperty("--top", `${paneTop}px`);
  const others = panel.querySelectorAll(".texts:not(:has(.texts-compared)) :is(.texts-sheet, .texts-pair .pane), [data-editor]:not([hidden]) textarea.text");
  const tops = [...others].map((other) => other.getBoundingClientRect().top + scrollY);
  others.forEach((other, at) => other.style.setProperty("--top", `${tops[at]}px`));
}

// A third from the top of its pane. Chunks out of sight have only a guessed height until they are
// laid out, hence the second look.
function bringIntoPane(target) {
  const pane = target.closest(".pane");
  const place = () => {
    const off = target.getBoundingClientRect().top - pane.getBoundingClientRect().top;
    pane.scrollTop += off - pane.clientHeight / 3;
  };
  place();
  requestAnimationFrame(place);
}

// What a formatted text does not show of the changes is told, since nobody would look for it.
function tellUnseen(texts) {
  const pane = paneOf(texts).querySelector(":scope > :is(.prose, .diff-columns):not([hidden])");
  const place = texts.querySelector("[data-unseen]");
  if (!place) return;
  const seen = new Set([...(pane?.querySelectorAll("[data-change]") ?? [])].map((part) => part.dataset.change));
  const all = pane ? stops(texts) : [];
  const unseen = new Set(all.filter(({ marks }) => !marks.some((number) => seen.has(number))).map(({ said }) => said)).size;
  place.hidden = !unseen;
  place.textContent = `${unseen} not shown in this view`;
}

function note(texts, text) {
  const place = texts.querySelector("[data-at-change]");
  if (place) place.textContent = text;
  return text;
}

function goTo(texts, number) {
  const target = shownMark(texts, number);
  const stop = target && stopOf(texts, number);
  if (!stop) return "";
  mark(texts, stop.marks, stop.number);
  bringIntoPane(target);
  target.scrollIntoView({ block: "nearest" });
  followInCheck(stop.marks[0]);
  const kinds = (target.dataset.mark ?? "").split(" ").filter(Boolean).join(" and ");
  const all = stop.marks.length > 1 && target.dataset.folds !== undefined ? ` in ${stop.marks.length} places` : "";
  return note(texts, `${stop.said}${kinds && `, ${target.dataset.where ?? kinds}${all}`}`);
}

// The number of the change that was gone to last; if there was none, goes to the first one.
export function currentChange(panel) {
  const texts = textsIn(panel);
  if (texts.dataset.at === undefined) go(panel, 1);
  return texts.dataset.at ?? "";
}

// Goes to the next change (step 1) or the one before (step -1); gives "Change 2 of 5, number" to
// be said. A change that the chosen view does not show is passed over.
export function go(panel, step) {
  const texts = textsIn(panel);
  const order = stops(texts).map((stop) => stop.number);
  let at = order.indexOf(texts?.dataset.at ?? "");
  if (at < 0 && step < 0) at = 0;
  for (let tries = 0; tries < order.length; tries += 1) {
    at = (at + step + order.length) % order.length;
    const said = goTo(texts, order[at]);
    if (said) return said;
  }
  return "";
}

// The strip shows every place; it is of use only beside a pane that scrolls.
function goNear(texts, strip, event) {
  const box = strip.getBoundingClientRect();
  const y = ((event.clientY - box.top) / box.height) * 1000;
  const far = (place) => Math.abs(Number(place.getAttribute("y")) - y);
  const places = [...strip.querySelectorAll("[data-place]")].sort((a, b) => far(a) - far(b));
  for (const place of places) {
    const said = goTo(texts, place.dataset.place);
    if (said) return said;
  }
  return "";
}

// ------------------------------------------------------------------------------------- once painted

async function settle(texts) {
  await maths.draw(texts);
  const pane = paneOf(texts);
  if (!texts.isConnected) return;
  document.dispatchEvent(new Event("texts-shown")); // for what is marked in them
  fit();
  if (!pane) return;
  tellUnseen(texts);
  const strip = texts.querySelector("[data-strip]");
  if (strip) strip.toggleAttribute("hidden", pane.scrollHeight <= pane.clientHeight + 1);
  const stop = stops(texts).find(({ number }) => number === texts.dataset.at) ?? stops(texts)[0];
  const target = stop && shownMark(texts, stop.number);
  if (texts.dataset.at && stop) mark(texts, stop.marks, stop.number);
  if (target) bringIntoPane(target);
  if (target && texts.closest(".label-screen")) target.scrollIntoView({ block: "nearest" });
}

// What the category and the choices mean is read once, the claim at every item. So meanings are
// open where all has room beside them, until the person opens or folds them.
const HIGH = "(width >= 60rem) and (height >= 52rem)";

function foldMeanings(panel) {
  const meanings = panel.querySelector("[data-meanings]");
  if (!meanings) return;
  const chosen = /(?:^|; )meanings=(\w+)/.exec(document.cookie)?.[1];
  meanings.open = chosen ? chosen === "open" : matchMedia(HIGH).matches;
  if (chosen || !meanings.open) return;
  fit();
  const form = panel.querySelector(".label-side form");
  if (form && form.scrollHeight > form.clientHeight) meanings.open = false;
}

// Called after each paint: formulas, and the first change in view.
export function draw(panel) {
  foldMeanings(panel);
  const texts = textsIn(panel);
  const steps = texts?.querySelector("[data-steps]");
  if (steps) steps.hidden = false;
  for (const button of panel.querySelectorAll("[data-rest-explained]")) button.hidden = false;
  return texts ? settle(texts) : Promise.resolve();
}

// --------------------------------------------------------------------------------------- the controls

const say = (text) => document.getElementById("announcer")?.replaceChildren(text);

const CONTROLS = {
  "[data-view]:not([data-reading])": (texts, link) => show(texts, link.dataset.view),
  "[data-format-choice]": (texts, link) => {
    format(texts, link.dataset.formatChoice);
    link.closest("details").open = false;
    link.closest("details").querySelector("summary").focus();
  },
  "[data-fold-switch]": (texts) => say(fold(texts)),
  "[data-step]": (texts, button) => say(go(texts, Number(button.dataset.step))),
  "[data-strip]": (texts, strip, event) => say(goNear(texts, strip, event)),
  "[data-piece]": (texts, button) => say(goTo(texts, button.dataset.piece)),
  "[data-rest-explained]": (texts, button) => explainRest(button.closest("[data-claim-check]")),
};

// Answers that were given stay. The last one tells the form that all are there.
function explainRest(check) {
  const open = [...check.querySelectorAll("li:not(:has(:checked))")];
  for (const piece of open) {
    piece.querySelector('input[value="explained"]').checked = true;
    if (piece !== open.at(-1)) piece.dataset.answered = "";
  }
  for (const kind of ["input", "change"]) {
    open.at(-1)?.querySelector(":checked").dispatchEvent(new Event(kind, { bubbles: true }));
  }
}

// The piece of a claim check that is about a change, and the change that a piece is about, follow
// each other: the keys of the check answer the piece that is shown.
function followInCheck(number) {
  const piece = document.querySelector(`#panel [data-piece="${CSS.escape(number)}"]`)?.closest("li");
  const form = piece?.closest("form");
  // Before there is a choice, the keys are for the choice.
  if (!piece || (form.querySelector("button.choice") && !form.querySelector("button.choice[data-chosen]"))) return;
  for (const other of piece.parentElement.children) other.toggleAttribute("data-current", other === piece);
  if (!piece.contains(document.activeElement) && !document.activeElement.matches("textarea")) piece.querySelector("input:checked, input").focus();
  else if (piece.offsetParent) piece.scrollIntoView({ block: "nearest" });
}

document.addEventListener("focusin", ({ target }) => {
  const piece = target.closest?.("#panel [data-claim-check] li:not([data-current])");
  if (!piece) return;
  const { piece: number } = piece.querySelector("[data-piece]").dataset;
  if (!goTo(document.querySelector("#panel [data-reading]"), number)) followInCheck(number);
});

document.addEventListener("click", ({ target }) => {
  const meanings = target.closest?.("[data-meanings] > summary")?.parentElement;
  if (meanings) remember("meanings", meanings.open ? "folded" : "open");
  const originals = target.closest?.(".item-originals > summary")?.parentElement;
  if (originals) remember("originals", originals.open ? "folded" : "open");
});

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
  for (const [selector, act] of Object.entries(CONTROLS)) {
    const target = event.target.closest?.(selector);
    const texts = target && (target.closest("[data-reading]") ?? document.querySelector("[data-reading]"));
    if (!texts) continue;
    event.preventDefault();
    act(texts, target, event);
    return;
  }
});

new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.getElementById("main"));
