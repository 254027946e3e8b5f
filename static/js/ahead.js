// The next item, fetched and drawn while the person works on the present one.
import * as keys from "./keys.js";
import { address, ask, panel, parse } from "./page.js";

let next = null;
let asking = null;

export const isHere = () => next !== null;

export function drop() {
  asking?.abort();
  asking = next = null;
}

// Asks for the next item. `reached` is called once the server has answered at all.
export async function bring(reached) {
  drop();
  const { item, phase, reopened } = panel().dataset;
  if (!item || phase === "practice" || reopened !== undefined) return;
  const mine = (asking = new AbortController());
  const answer = await ask(address("next/"), { signal: mine.signal });
  if (asking !== mine) return;
  asking = null;
  if (answer.kind !== "stored") return;
  reached();
  const found = answer.status === 200 ? parse(answer.body).querySelector("#panel") : null;
  // Until a label that waits for the connection is sent, the server does not know of the step.
  if (!found || found.dataset.item === panel().dataset.item) return;
  keys.print(found);
  next = found;
}

export function take() {
  const found = next;
  next = null;
  return found;
}
