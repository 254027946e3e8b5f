// The side panel of an item: guidelines, related items, or comments. If the item has no label yet,
// it shows the comments on the item labelled last.
import { restore } from "./comments.js";
import { ask, panel, parse, screen, tell } from "./page.js";
import { SAYINGS } from "./connection.js";

const aside = () => document.getElementById("beside");
const link = (kind) => panel().querySelector(`[data-${kind}]`) ?? document.querySelector(`#screen [data-${kind}]`);

let back = null;

export const isOpen = () => !aside().hidden;

function addressOf(kind) {
  const url = new URL(link(kind).href);
  const { item } = panel().dataset;
  if (kind === "comments") url.searchParams.set("beside", "yes");
  else if (item) url.searchParams.set("item", item);
  return url;
}

// What kept it from being shown; nothing if it is there.
async function fill(kind) {
  const answer = await ask(addressOf(kind));
  if (answer.kind !== "stored" && answer.kind !== "refused") return SAYINGS[answer.kind];
  aside().replaceChildren(parse(answer.body));
  window.htmx.process(aside());
  restore();
  aside().dataset.kind = kind;
  aside().hidden = false;
  screen().dataset.beside = kind;
  return "";
}

export function close() {
  if (!isOpen()) return false;
  aside().hidden = true;
  aside().replaceChildren();
  delete screen().dataset.beside;
  back?.isConnected ? back.focus() : panel().querySelector("[data-focus]")?.focus();
  return true;
}

// Where nothing is to be read, what is typed is meant for the text box and not for the item.
const text = () => aside().querySelector("textarea");
const beginning = () => (aside().querySelector(".entries") ? null : text()) ?? aside().querySelector("[data-focus]");

// Opens it, or closes it if it is open; false where there is nothing of this kind.
export function toggle(kind) {
  if (!link(kind)) return false;
  if (isOpen() && aside().dataset.kind === kind) return close();
  back = document.activeElement;
  fill(kind).then((why) => {
    if (why) tell(`This could not be loaded. ${why}`);
    else beginning().focus();
  });
  return true;
}

// Another item is painted: guidelines stay, in what they say of that item; all else was of the last.
export function follow() {
  if (!isOpen()) return;
  if (aside().dataset.kind === "guidelines" && link("guidelines")) fill("guidelines");
  else {
    aside().hidden = true;
    delete screen().dataset.beside;
  }
}

// A comment is sent, or stands there again with what is wrong with it.
document.addEventListener("htmx:after:swap", () => {
  text()?.focus();
});
