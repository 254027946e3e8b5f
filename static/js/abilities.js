// Sorts prompts into abilities by keys. Each key presses a button of the form; the requests are
// sent in order, and the server renders the changed rows again.
import * as keys from "./keys.js";

const form = document.querySelector("[data-sorting]");
const dialog = document.getElementById("keys");
const said = () => document.getElementById("sort-said");
const rows = () => [...form.querySelectorAll("[data-row]")];
const current = () => document.activeElement?.closest("[data-row]");

let sent = Promise.resolve();
let waiting = 0; // so many presses are not stored yet

function go(row) {
  if (!row) return false;
  row.focus();
  row.scrollIntoView({ block: "nearest" });
  return true;
}

// From the prompt with the focus, or to the first one.
function move(step) {
  const all = rows();
  const place = all.indexOf(current());
  return go(place < 0 ? all[0] : all[Math.min(Math.max(place + step, 0), all.length - 1)]);
}

// --------------------------------------------------------------------------------------------- sending

function replace(fresh) {
  const old = document.getElementById(fresh.id);
  if (!old) return;
  const had = old.contains(document.activeElement);
  const open = old.querySelector("details")?.open;
  old.replaceWith(fresh);
  if (open) fresh.querySelector("details").open = true;
  if (had && fresh.matches("[data-row]")) fresh.focus();
}

async function ask(name, value) {
  const data = new FormData(form);
  data.append(name, value);
  const answer = await fetch(location.href, { method: "POST", body: data, headers: { "HX-Request": "true" } });
  if (answer.redirected || (!answer.ok && answer.status !== 422)) throw new Error(String(answer.status));
  const drawn = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [...drawn.querySelectorAll("[data-part]")].map((fresh) => document.adoptNode(fresh));
  for (const fresh of parts) replace(fresh);
  if (name === "undo") go(parts.find((part) => part.matches("[data-row]") && part.isConnected));
}

function send(button) {
  const { name, value } = button;
  waiting += 1;
  sent = sent
    .then(() => ask(name, value))
    .catch(({ message }) => {
      const why = message === "401" ? "you are signed out" : "there is no connection";
      said().textContent = `This was not saved: ${why}. Reload the page.`;
    })
    .finally(() => (waiting -= 1));
}

window.addEventListener("beforeunload", (event) => waiting && event.preventDefault());

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter) send(event.submitter);
});

// ------------------------------------------------------------------------------------------------ keys

function choose(button) {
  if (!button) return false;
  const row = current();
  send(button);
  const all = rows();
  go(all[all.indexOf(row) + 1] ?? row);
  return true;
}

const open = () => dialog.showModal() ?? true;

function toggle(row) {
  const fold = row?.querySelector("details");
  if (fold) fold.open = !fold.open;
  return Boolean(fold);
}

const ACTS = {
  j: () => move(1),
  ArrowDown: () => move(1),
  k: () => move(-1),
  ArrowUp: () => move(-1),
  x: () => current()?.querySelector("[data-tick]").click() ?? Boolean(current()),
  o: () => toggle(current()),
  next: () => sent.then(() => document.querySelector("[data-go-on]").click()) && true,
  undo: () => send(form.querySelector("[data-undo]")) ?? true,
  keys: open,
  // On a button or a link Enter is theirs.
  Enter: () => document.activeElement === current() && choose(current()?.querySelector("[data-take]")),
};

function act(name) {
  if (ACTS[name]) return ACTS[name]();
  return /^[1-9]$/.test(name) && choose(current()?.querySelectorAll("[data-ability]")[Number(name) - 1]);
}

document.querySelector("[data-open-keys]").addEventListener("click", open);
keys.listen(act, (typed) => /^[1-9]$/.test(typed));
rows()[0].focus({ preventScroll: true });
