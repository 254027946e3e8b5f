// Renews the reservations of the page's items while the user works; otherwise they expire.
import { address, panel, postData, screen } from "./page.js";

const minutes = () => Number(screen().dataset.holdMinutes) * 60_000;

let renewed = Date.now();
let worked = Date.now();
let isLost = false;
let told = false;

// The server has just held the items of this page.
export function reached() {
  renewed = Date.now();
  isLost = told = false;
}

const isWorking = () => document.visibilityState === "visible" && Date.now() - worked < minutes();
const isOver = () => isLost || Date.now() - renewed > minutes();

// Whether the painted item is still the person's, as far as the server can be asked.
async function renew() {
  const answer = await postData(address("hold/"), {});
  if (answer.kind !== "stored") return !isOver();
  const { held } = JSON.parse(answer.body);
  const { item, reopened, ahead } = panel().dataset;
  isLost = Boolean(item) && reopened === undefined && ahead === undefined && !held.includes(item);
  if (!isLost) reached();
  return !isLost;
}

const keepOn = () => isWorking() && Date.now() - renewed > minutes() / 4 && renew();

// Whether a label may go out; said once if the item may have gone to somebody else meanwhile.
export async function mayGo(warn) {
  if (!isOver() || told || panel().dataset.ahead !== undefined || (await renew())) return true;
  told = true;
  warn("You were away for a while. The item may have been reassigned. Your label will still be saved: press the key again.");
  return false;
}

export function begin() {
  for (const kind of ["keydown", "pointerdown", "input", "scroll"]) {
    document.addEventListener(kind, () => (worked = Date.now()), { capture: true, passive: true });
  }
  document.addEventListener("visibilitychange", keepOn);
  setInterval(keepOn, minutes() / 3);
}
