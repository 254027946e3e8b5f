// Shows that a request did not reach the server, keeps its data, and repeats it.
export const AGAIN_AFTER = 5000;

let again = null;
let timer = 0;

export const SAYINGS = {
  connection: "No connection to the server.",
  server: "The server did not answer.",
  "signed-out": "You have been signed out.",
  forbidden: "The server refused this page.",
  refused: "The server refused this.",
};

function action(cause) {
  if (cause === "connection" || cause === "server") {
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", retry);
    button.textContent = "Try again now";
    return button;
  }
  const link = document.createElement("a");
  link.href = location.pathname;
  link.textContent = cause === "signed-out" ? "Sign in and come back" : "Reload the page";
  return link;
}

function retry() {
  const next = again;
  clear();
  next?.();
}

// `what` says what is kept; `repeat` sends it once more, which is tried every few seconds.
export function show(cause, what, repeat) {
  clear();
  again = repeat;
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = "warning";
  const strong = document.createElement("strong");
  strong.textContent = SAYINGS[cause];
  const row = document.createElement("div");
  row.className = "row";
  const next = action(cause);
  next.classList.add("button");
  row.append(next);
  notice.append(strong, what, row);
  notice.dataset.retry = "";
  document.getElementById("trouble").prepend(notice);
  if (next.matches("button")) {
    const how = document.createElement("span");
    how.textContent = "Retrying every few seconds.";
    row.append(how);
    timer = setTimeout(retry, AGAIN_AFTER);
  }
}

const shown = () => document.querySelector("#trouble [data-retry]");

// Said once, and not in place of what is said already.
export function warn(cause, what) {
  if (shown()) return;
  show(cause, what);
  shown().dataset.warning = "";
}

export const endWarning = () => shown()?.matches("[data-warning]") && clear();

// Somebody goes on writing what would be sent again: from now on they say when.
export function wait() {
  if (!timer) return;
  clearTimeout(timer);
  timer = 0;
  shown().querySelector(".row span").textContent = "You kept typing. Press the button to send your text.";
}

// A text that has no place in the form any more and must not be lost.
export function keep(title, text) {
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = "warning";
  const strong = document.createElement("strong");
  strong.textContent = title;
  const words = document.createElement("pre");
  words.className = "text";
  words.tabIndex = 0;
  words.textContent = text;
  const close = document.createElement("button");
  close.className = "button";
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => notice.remove());
  notice.append(strong, words, close);
  document.getElementById("trouble").append(notice);
}

export const keepUnasked = (texts) => keep("You wrote this for a question that is no longer asked:", texts.join("\n\n"));

export function clear() {
  clearTimeout(timer);
  timer = 0;
  again = null;
  shown()?.remove();
}

window.addEventListener("online", () => timer && retry());
