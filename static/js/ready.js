// When a press may count: once the item is painted and no key was pressed for a moment. So keys
// that are pressed fast, for the item before, never meet the next one.
import { panel } from "./page.js";

const QUIET = 300;

let state = "held";
let timer = 0;

export const is = () => state === "ready";

function wait() {
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
  requestAnimationFrame(() => {
    if (state !== "held") return;
    state = "painted";
    wait();
  });
}

for (const kind of ["keydown", "pointerdown"]) {
  document.addEventListener(kind, () => state === "painted" && wait(), true);
}
