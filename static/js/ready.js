// When a press counts: once the item has been on the screen for a moment. So a key that is pressed
// fast, for the item before, never meets the next one; and no press is dropped without a sign.
import { panel, say, screen } from "./page.js";

const GUARD = 300;
const SIGN = 800;
const EARLY = "Not taken: this item has only just come. Look at it first.";
const OUT = "Not taken: your last answer is still being sent.";

let isOnWay = true; // something was sent, and its answer or the next item is not here yet
let opened = Infinity; // since when presses count
let isEarly = false; // whether the press that goes on now began before that
let frame = 0;
let timer = 0;
let fading = 0;

// Whether something is on its way: what is begun on the painted item now would go with it.
export const isOut = () => isOnWay;

export const is = () => !isEarly && opened !== Infinity;

// Nothing counts from now on, and the choices show it.
export function hold() {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  isOnWay = true;
  opened = Infinity;
  delete panel().dataset.ready;
  panel().dataset.guarded = "";
}

function open() {
  opened = performance.now();
  delete panel().dataset.guarded;
  panel().dataset.ready = "";
}

// The item is on the screen, or there again.
export function release() {
  hold();
  frame = requestAnimationFrame(() => {
    isOnWay = false;
    timer = setTimeout(open, GUARD);
  });
}

// The sign that a press was seen and not taken, at the form that it was meant for.
export function refuse() {
  const why = isOut() ? OUT : EARLY;
  say(why);
  screen().style.setProperty("--refused", `"${why}"`);
  screen().dataset.refused = "";
  clearTimeout(fading);
  fading = setTimeout(() => delete screen().dataset.refused, SIGN);
}

// By the time of the press itself: where the page was busy, presses wait and come all at once. A key
// that is held down is one press.
for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, (event) => event.repeat || (isEarly = event.timeStamp < opened), true);
}
for (const kind of ["keyup", "pointerup", "pointercancel"]) {
  document.addEventListener(kind, () => setTimeout(() => (isEarly = false)), true);
}
