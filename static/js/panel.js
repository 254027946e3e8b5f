// Shows an item on the screen, and updates what surrounds it.
import * as ahead from "./ahead.js";
import * as prefetch from "./prefetch.js";
import * as sidePanel from "./side_panel.js";
import * as drafts from "./drafts.js";
import * as editor from "./editor.js";
import * as reservations from "./reservations.js";
import * as maths from "./maths.js";
import * as outbox from "./outbox.js";
import { address, ask, panel, parse, say, tell } from "./page.js";
import * as texts from "./texts.js";
import * as pressGuard from "./press_guard.js";
import * as connection from "./connection.js";

const LOOK_AGAIN = 30_000;

let shownAt = 0;
let looking = 0;

export const hasItem = () => "item" in panel().dataset;
export const labelForm = () => panel().querySelector("[data-label]");
export const focusTarget = () => panel().querySelector("[data-focus]");
export const seconds = () => ((performance.now() - shownAt) / 1000).toFixed(1);

// The next item, in the background; the desk as it stands comes with it.
export const bringNext = () =>
  prefetch.bring((sent) => {
    ahead.arrived();
    reservations.reached();
    placeDesk(sent, document.querySelector("[data-last]").textContent);
  });

// A choice that was made and could not be stored is offered again, never sent unasked.
export function remindOfChoice() {
  const chosen = hasItem() && drafts.remembered();
  const button = chosen && labelForm().querySelector(`button.choice[value="${CSS.escape(chosen)}"]`);
  if (!button) return;
  button.dataset.chosen = "";
  tell(`You chose “${button.dataset.title}” for this item, but it was not saved. Choose again to save it.`);
}

// The item on the screen takes what the person does from now on.
export function begin(wasWriting) {
  shownAt = performance.now();
  document.querySelector("[data-keys]").hidden = false;
  clearTimeout(looking);
  if (panel().querySelector("[data-look-again]")) looking = setTimeout(lookAgain, LOOK_AGAIN);
  const stale = drafts.stale();
  if (drafts.restore()) editor.showRestored(panel());
  if (stale) connection.keep("Your draft corrects an earlier revision:", stale);
  if (drafts.unasked().length) connection.keepUnasked(drafts.unasked());
  const elsewhere = drafts.elsewhere();
  if (elsewhere) connection.keep("You went on with this draft in another browser. In this one you wrote:", elsewhere);
  editor.markBegun(panel());
  texts.draw(panel());
  const side = panel().querySelector(".label-side");
  if (side) maths.draw(side);
  pressGuard.release(wasWriting);
}

// The next item may have been drawn before the person turned to another way of reading.
function readAlike(section) {
  const [was, is] = [panel(), section].map((one) => one.querySelector("[data-reading]")?.dataset);
  if (!was || !is) return;
  if (was.view !== is.view && texts.lasts(panel())) texts.show(section, was.view);
  const isChosen = was.findsFormat === undefined;
  if (was.format !== is.format && isChosen) texts.format(section, was.format);
  if (was.fold !== is.fold) texts.fold(section);
}

// A reload, or a signed-in return, shows the same item again.
function keepAddress() {
  const { item, reopened } = panel().dataset;
  const url = reopened === undefined ? address("") : `${address("")}?item=${encodeURIComponent(item)}`;
  if (location.pathname + location.search !== url) history.replaceState(null, "", url);
}

export function paint(section, said = section.dataset.said) {
  const goesOnWaiting = !said && !hasItem() && !("item" in section.dataset) && !section.matches("[data-lesson]");
  const hadFocus = document.activeElement;
  const wasWriting = Boolean(hadFocus?.matches("#panel textarea"));
  document.getElementById("unsaved").close("");
  readAlike(section);
  panel().replaceWith(section);
  begin(wasWriting);
  keepAddress();
  ahead.follow(prefetch.name());
  // A page that looked again and found nothing new has nothing to say, and focus stays elsewhere.
  const staysQuiet = goesOnWaiting && hadFocus?.isConnected && hadFocus !== document.body;
  if (!staysQuiet) {
    say(`${said} ${section.dataset.next}`.trim());
    window.scrollTo(0, 0);
    focusTarget()?.focus({ preventScroll: true });
    // On a telephone it lies below the texts.
    panel().querySelector(".label-lesson")?.scrollIntoView({ block: "nearest" });
  }
  remindOfChoice();
  sidePanel.follow();
}

// `said` where what was said last is still to be read.
function placeDesk(sent, said) {
  const desk = sent.querySelector("#desk");
  if (!desk) return;
  desk.querySelector("[data-keys]").hidden = false;
  if (said !== undefined) desk.querySelector("[data-last]").textContent = said;
  const old = document.getElementById("desk");
  const at = [...old.querySelectorAll("a, button")].indexOf(document.activeElement);
  old.replaceWith(desk);
  // Who was on their way through it with the keyboard stays where they were.
  if (at >= 0) [...desk.querySelectorAll("a, button")][at]?.focus({ preventScroll: true });
}

// A panel with its desk, as the server sends them together.
export function place(markup, said) {
  const sent = parse(markup);
  const section = sent.querySelector("#panel");
  ahead.arrived();
  prefetch.drop();
  ahead.keep(section);
  placeDesk(sent);
  paint(section, said);
  reservations.reached();
  bringNext();
}

export async function load(said) {
  await drafts.settled();
  const answer = await ask(address(""));
  if (answer.kind === "stored") place(answer.body, said);
  return answer.kind === "stored";
}

// The page comes from the browser's cache: the first kept item without a label is shown, until the
// server is reached.
export async function showKept() {
  pressGuard.hold();
  const found = await ahead.restore(outbox.holds).catch(() => null);
  paint(found ?? nothingKept(), "No connection.");
  outbox.show();
  reachServer();
}

function nothingKept() {
  const section = document.createElement("section");
  section.id = "panel";
  section.className = "label-panel";
  section.setAttribute("aria-label", "Item");
  Object.assign(section.dataset, { said: "", next: "No item is left in this browser." });
  const box = document.createElement("div");
  box.className = "empty label-waiting";
  const title = document.createElement("h2");
  title.textContent = "No item is left in this browser";
  title.tabIndex = -1;
  title.dataset.focus = "";
  const words = document.createElement("p");
  words.textContent = "The next item follows when you are connected.";
  box.append(title, words);
  section.append(box);
  return section;
}

// Where labels wait, the outbox tries, and says so.
async function reachServer() {
  if (!ahead.isKept() || outbox.isLate()) return;
  const answer = await ask(address("next/"));
  if (!ahead.isKept()) return;
  if (answer.kind !== "stored") {
    const text = hasItem() ? "You can go on: your labels are kept in this browser and sent when you are connected." : "";
    connection.show(answer.kind, text, reachServer);
    return;
  }
  ahead.arrived();
  tell("You are connected again.");
  if (hasItem()) bringNext();
  else load("You are connected again.");
}

async function lookAgain() {
  await load();
  if (!hasItem()) looking = setTimeout(lookAgain, LOOK_AGAIN);
}
