// When a press may count: once the item is painted and no key was pressed for a moment. So keys
// that are pressed fast, for the item before, never meet the next one.
import { panel } from "./page.js";

const QUIET = 300;

// held: something is on its way. painted: on the screen, not quiet yet. ready: quiet so far.
// sure: a press came after a quiet moment, and from then on fast presses are meant.
let state = "held";
let since = 0;
let timer = 0;

// Whether the painted item is on its way out: what is begun on it now would go with it.
export const isOut = () => state === "held";

export const is = () => state === "ready" || state === "sure";

function wait(from) {
  since = from;
  state = "painted";
  clearTimeout(timer);
  timer = setTimeout(() => {
    state = "ready";
    panel().dataset.ready = "";
  }, QUIET);
}

// Nothing counts from now on: what was pressed is on its way.
export function hold() {
  clearTimeout(timer);
  state = "held";
  delete panel().dataset.ready;
}

// The item is on the screen, or there again.
export function release() {
  hold();
  requestAnimationFrame(() => state === "held" && wait(performance.now()));
}

// By the time of the press itself: where the page was busy, presses wait and come all at once.
function look({ timeStamp }) {
  if (state === "held" || state === "sure") return;
  if (timeStamp - since < QUIET) {
    delete panel().dataset.ready;
    wait(timeStamp);
  } else {
    state = "sure";
  }
}

for (const kind of ["keydown", "pointerdown"]) document.addEventListener(kind, look, true);
