// Fetches and renders the next item while the user works on the present one.
import * as ahead from "./ahead.js";
import * as drafts from "./drafts.js";
import * as outbox from "./outbox.js";
import { address, ask, panel, parse } from "./page.js";

let next = null;
let asking = null;
let coming = null;

export const isHere = () => next !== null;
export const name = () => next?.dataset.item;
// Settles when what was asked for last is here, or will not come.
export const arrived = () => coming;

export function drop() {
  asking?.abort();
  asking = next = null;
}

// Asks for the next item, and for the desk as it stands. `reached` gets what the server sent.
export function bring(reached) {
  drop();
  const { item, phase, reopened } = panel().dataset;
  if (!item || phase === "qualification" || reopened !== undefined) return;
  asking = new AbortController();
  coming = receive(asking, reached);
}

// An item that was shown without a connection is held by nobody; now it can be.
const shown = () => (panel().dataset.ahead === undefined ? {} : { "Label-Shown": panel().querySelector("[name=key]").value });

async function receive(mine, reached) {
  await drafts.settled();
  if (asking !== mine) return;
  const answer = await ask(address("next/"), { headers: shown(), signal: mine.signal });
  if (asking !== mine) return;
  asking = null;
  if (answer.kind !== "stored") return;
  const sent = parse(answer.body);
  reached(sent);
  const found = sent.querySelector("#panel");
  // Until a label that waits for the connection is sent, the server does not know of the step.
  if (!found || found.dataset.item === panel().dataset.item || outbox.holds(found.dataset.item)) return;
  next = found;
  ahead.keep(found);
  ahead.follow(found.dataset.item);
}

export function take() {
  const found = next;
  next = null;
  return found;
}
