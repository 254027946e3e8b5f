// The tour of the label screen: notes, each beside the part that it is about. It is offered to who has
// labelled nothing in the project, can be left at any note and gone on with later, on any item. What was
// said of it is kept in this browser, for each account.
import { panel, screen } from "./page.js";

const OVER = "over";
const GAP = 12;

const dialog = () => document.getElementById("tour");
const offer = () => document.getElementById("tour-offer");
const store = () => `tour|${document.body.dataset.account}`;
const kept = () => localStorage.getItem(store());
const hasItem = () => "item" in panel().dataset;

let notes = []; // those whose part is on the screen
let at = 0;

const partOf = (note) => document.querySelector(note.dataset.about);

function findNotes() {
  const all = [...dialog().querySelector("template").content.children];
  return all.filter((note) => partOf(note)?.getClientRects().length);
}

function keep(state) {
  try {
    localStorage.setItem(store(), state);
  } catch {
    // No room in this browser: the tour is offered again.
  }
}

function showOffer() {
  const left = kept();
  const isWanted = left === null ? "new" in screen().dataset : left !== OVER;
  offer().hidden = !isWanted || !hasItem();
  offer().querySelector("[data-notes]").textContent = findNotes().length;
  offer().querySelector("[data-left]").hidden = left === null;
  offer().querySelector("[data-left] b").textContent = Number(left) + 1;
  offer().querySelector("[data-tour]").textContent = left === null ? "Take the tour" : "Go on with the tour";
}

// Below the part if there is room, else above it, else at the foot of the window.
function place(part) {
  part.scrollIntoView({ block: "nearest" });
  const [box, own] = [part.getBoundingClientRect(), dialog().getBoundingClientRect()];
  const lowest = window.innerHeight - own.height - GAP;
  const above = box.top - own.height - GAP;
  const top = box.bottom + GAP <= lowest ? box.bottom + GAP : above >= GAP ? above : lowest;
  const left = Math.min(Math.max(GAP, box.left), window.innerWidth - own.width - GAP);
  dialog().style.inset = `${top}px auto auto ${left}px`;
}

function unmark() {
  document.querySelector("[data-toured]")?.removeAttribute("data-toured");
}

function show(number) {
  at = Math.min(Math.max(number, 0), notes.length - 1);
  const [title, text] = notes[at].children;
  document.getElementById("tour-title").replaceChildren(...title.cloneNode(true).childNodes);
  document.getElementById("tour-text").replaceChildren(...text.cloneNode(true).childNodes);
  dialog().querySelector("[data-number]").textContent = `${at + 1} of ${notes.length}`;
  dialog().querySelector("[data-back]").disabled = at === 0;
  dialog().querySelector("[data-on]").firstChild.textContent = at + 1 < notes.length ? "Next " : "Done ";
  keep(at);
  unmark();
  partOf(notes[at]).dataset.toured = "";
  place(partOf(notes[at]));
  document.getElementById("tour-title").focus({ preventScroll: true });
}

function start() {
  document.getElementById("keys").close();
  notes = findNotes();
  if (!notes.length) return;
  offer().hidden = true;
  dialog().showModal();
  show(kept() === OVER ? 0 : Number(kept()));
}

function goOn() {
  if (at + 1 < notes.length) return show(at + 1);
  keep(OVER);
  dialog().close();
}

export function begin() {
  showOffer();
  window.addEventListener("resize", () => dialog().open && place(partOf(notes[at])));
  dialog().addEventListener("close", () => {
    unmark();
    showOffer();
    panel().querySelector("[data-focus]")?.focus({ preventScroll: true });
  });
  dialog().addEventListener("keydown", ({ key }) => {
    if (key === "ArrowRight") goOn();
    if (key === "ArrowLeft") show(at - 1);
  });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("button");
    if (!button) return;
    if ("tour" in button.dataset) start();
    if ("noTour" in button.dataset) {
      keep(OVER);
      showOffer();
    }
    if (!dialog().contains(button)) return;
    if ("on" in button.dataset) goOn();
    if ("back" in button.dataset) show(at - 1);
    if ("end" in button.dataset) dialog().close();
  });
}
