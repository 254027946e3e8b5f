// Shared parts of the page: the item's panel, the announcer, and requests to the server.
export const screen = () => document.getElementById("screen");
export const panel = () => document.getElementById("panel");
export const say = (text) => document.getElementById("announcer").replaceChildren(text);
export const address = (name) => screen().dataset.base + name;

// Gives what is kept in this browser another name.
export function rename(name, place) {
  if (localStorage.getItem(place) !== null) return; // until that has been sent
  try {
    localStorage.setItem(place, localStorage.getItem(name));
  } catch {
    return; // until there is room
  }
  localStorage.removeItem(name);
}

// What waits in this browser for the member was kept by names until version 0.2, and names change.
function adopt() {
  const { who, formerly } = screen().dataset;
  for (const kind of ["outbox", "draft", "case"]) {
    const [before, now] = [`${kind}|${formerly}`, `${kind}|${who}`];
    const names = Object.keys(localStorage).filter((name) => name === before || name.startsWith(`${before}|`));
    for (const name of names) rename(name, now + name.slice(before.length));
  }
}
if (screen()?.dataset.formerly) adopt();

const LIFTED = 6000;
let lifted = 0;

// Words in sight as well, beside the last label; where that is scrolled away they come to the person.
export function tell(text) {
  const last = document.querySelector("[data-last]");
  if (last) {
    last.textContent = text;
    delete last.dataset.lifted;
    if (last.getBoundingClientRect().top < 0) last.dataset.lifted = "";
    clearTimeout(lifted);
    lifted = setTimeout(() => delete last.dataset.lifted, LIFTED);
  }
  say(text);
}

const token = () => document.querySelector("[name=csrfmiddlewaretoken]").value;
const TIMEOUT = 8000;

// Markup from the server, parsed and inert.
export function parse(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  return document.importNode(template.content, true);
}

// What became of a request: stored, refused, signed-out, forbidden, server or connection.
function kindOf(response) {
  if (response.redirected || response.status === 401) return "signed-out";
  if (response.ok) return "stored";
  if (response.status === 409 || response.status === 422) return "refused";
  return response.status >= 500 ? "server" : "forbidden";
}

// Why somebody may not do this, in the server's words and with a space after them; "" otherwise.
export function whyNot({ kind, body }) {
  const words = kind === "forbidden" && parse(body).querySelector("[data-why]")?.textContent.trim();
  return words ? `${words} ` : "";
}

// Once what changed is drawn, or soon after in a window that nobody sees.
export const drawn = () => new Promise((go) => {
  requestAnimationFrame(() => setTimeout(go));
  setTimeout(go, 100);
});

export async function ask(url, options = {}) {
  const headers = { "HX-Request": "true", Account: document.body.dataset.account, ...options.headers };
  try {
    const signal = options.signal ?? AbortSignal.timeout(TIMEOUT);
    const response = await fetch(url, { ...options, headers, signal });
    const kind = kindOf(response);
    return { kind, status: response.status, headers: response.headers, body: await response.text() };
  } catch {
    return { kind: "connection", headers: new Headers(), body: "" };
  }
}

// `fields` are pairs of a name and a value; the token is always the present page's.
export function post(url, fields, options = {}) {
  const body = new URLSearchParams(fields);
  body.set("csrfmiddlewaretoken", token());
  return ask(url, { ...options, method: "POST", body });
}

export function postData(url, data, options = {}) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token() };
  return ask(url, { ...options, method: "POST", headers, body: JSON.stringify(data) });
}

// What a form would send, without the token.
export function fieldsOf(form, button) {
  const fields = [...new FormData(form, button ?? undefined)];
  return fields.filter(([name]) => name !== "csrfmiddlewaretoken");
}
