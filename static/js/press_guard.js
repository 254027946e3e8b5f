// Accepts key presses and clicks only once the item has been on the screen for a moment, so that a
// fast press meant for the last item never applies to the next one. An ignored press is always
// indicated.
import { panel, say, screen } from "./page.js";

const GUARD = 300;
// So long nothing is pressed before keys count, where a text that was being written has gone.
const PAUSE = 1000;
const SIGN = 1600;
// Two presses of one key within this time are one press of a worn key, or of a hand that trembles.
const BOUNCE = 100;
const EARLY = "Key ignored: this item has just appeared. Look at it first.";
const WRITING = "Key ignored: a new item appeared while you were typing. Pause a moment.";
const TWICE = "Key ignored: it was pressed twice at once.";
const OUT = "Key ignored: your last answer is still being sent.";

let isOnWay = true; // something was sent, and its answer or the next item is not here yet
let opened = Infinity; // since when presses count
let pause = 0; // how long nothing may be pressed before
let last = null; // the press that gave the last answer, while no other key was pressed since
let isEarly = false; // whether the press that goes on now began before that
let frame = 0;
let timer = 0;
let fading = 0;

// Whether something is on its way: what is begun on the painted item now would go with it.
export const isOut = () => isOnWay;

export const is = () => !isEarly && opened !== Infinity;

// Whether this press of a key gives an answer; if not, that is shown.
export function takes({ key, timeStamp }) {
  if (!is()) {
    refuse();
    return dropBurst();
  }
  if (last?.key === key && timeStamp - last.timeStamp < BOUNCE) return refuse(TWICE);
  last = { key, timeStamp };
  return true;
}

// Nothing counts from now on, and the choices show it.
export function hold() {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  isOnWay = true;
  opened = Infinity;
  pause = 0;
  delete panel().dataset.ready;
  panel().dataset.guarded = "";
  lock(true);
}

// What is written while it is sent would not be sent.
function lock(isLocked) {
  for (const text of panel().querySelectorAll(":is([data-label], [data-editor]) :is(textarea, input:not([type]))")) text.readOnly = isLocked;
}

function open() {
  isOnWay = false;
  opened = performance.now();
  last = null;
  delete panel().dataset.guarded;
  panel().dataset.ready = "";
}

// Where keys answer one field after another, those typed right after one that did not count would
// answer the fields before theirs. They count only after a pause.
function dropBurst() {
  if (isOnWay || panel().querySelectorAll("[data-label] [data-field]:not([hidden])").length < 2) return false;
  opened = Infinity;
  pause ||= GUARD;
  delete panel().dataset.ready;
  panel().dataset.guarded = "";
  clearTimeout(timer);
  timer = setTimeout(open, pause);
  return false;
}

// The item is on the screen, or there again. `wasWriting`: in place of a text that somebody was
// writing, so that keys count only after a pause.
export function release(wasWriting = false) {
  hold();
  lock(false);
  frame = requestAnimationFrame(() => {
    isOnWay = wasWriting;
    pause = wasWriting ? PAUSE : 0;
    timer = setTimeout(open, pause || GUARD);
  });
}

// The sign that a press was seen and not taken, at the form that it was meant for. Returns false.
export function refuse(why = pause ? WRITING : isOut() ? OUT : EARLY) {
  say(why);
  screen().style.setProperty("--refused", `"${why}"`);
  screen().dataset.refused = "";
  clearTimeout(fading);
  fading = setTimeout(() => delete screen().dataset.refused, SIGN);
  return false;
}

// By the time of the press itself: where the page was busy, presses wait and come all at once. A key
// that is held down is one press.
function look(event) {
  if (event.repeat) return;
  isEarly = event.timeStamp < opened;
  if (event.key !== last?.key) last = null;
  if (!pause || opened !== Infinity || event.type !== "keydown") return;
  clearTimeout(timer);
  timer = setTimeout(open, pause);
}

for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, look, true);
for (const kind of ["keyup", "pointerup", "pointercancel"]) {
  document.addEventListener(kind, () => setTimeout(() => (isEarly = false)), true);
}
