// What stands beside the item when it is wanted: the guidelines, or the item's siblings.
import * as keys from "./keys.js";
import { ask, panel, parse, say, screen } from "./page.js";

const aside = () => document.getElementById("beside");
const link = (kind) => document.querySelector(`[data-${kind}]`);

let back = null;

export const isOpen = () => !aside().hidden;

function addressOf(kind) {
  const { item } = panel().dataset;
  const url = link(kind).getAttribute("href").split("?")[0];
  return item ? `${url}?item=${encodeURIComponent(item)}` : url;
}

async function fill(kind) {
  const answer = await ask(addressOf(kind));
  if (answer.kind !== "stored" && answer.kind !== "refused") return false;
  aside().replaceChildren(parse(answer.body));
  keys.print(aside());
  aside().dataset.kind = kind;
  aside().hidden = false;
  screen().dataset.beside = kind;
  return true;
}

export function close() {
  if (!isOpen()) return false;
  aside().hidden = true;
  aside().replaceChildren();
  delete screen().dataset.beside;
  back?.isConnected ? back.focus() : panel().querySelector("[data-focus]")?.focus();
  return true;
}

// Opens it, or closes it if it is open; false where there is nothing of this kind.
export function toggle(kind) {
  if (!link(kind)) return false;
  if (isOpen() && aside().dataset.kind === kind) return close();
  back = document.activeElement;
  fill(kind).then((isFilled) => {
    if (isFilled) aside().querySelector("[data-focus]").focus();
    else say("This cannot be shown without a connection.");
  });
  return true;
}

// Another item is painted: guidelines stay, in what they say of that item; siblings were of the last.
export function follow() {
  if (!isOpen()) return;
  if (aside().dataset.kind === "guidelines" && link("guidelines")) fill("guidelines");
  else {
    aside().hidden = true;
    delete screen().dataset.beside;
  }
}
