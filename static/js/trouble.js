// When a submission does not reach the server: nothing is lost, and the page says so.
const AGAIN_AFTER = 5000;

let failed = null;
let timer = 0;

const SAYINGS = {
  connection: "No connection to the server.",
  server: "The server could not answer.",
  "signed-out": "You have been signed out.",
  refused: "The server refused this page.",
};

function what(form, button) {
  if (form.matches("[data-label]")) return `Your label “${button?.dataset.title}” is kept here and not stored yet.`;
  if (form.matches("[data-editor]")) return "Your correction is kept here and not stored yet.";
  return "Nothing was undone yet.";
}

function action(cause) {
  if (cause === "connection" || cause === "server") {
    const button = document.createElement("button");
    button.addEventListener("click", retry);
    button.textContent = "Try again now";
    return button;
  }
  const link = document.createElement("a");
  link.href = location.pathname;
  link.textContent = cause === "signed-out" ? "Sign in and come back" : "Load the page again";
  return link;
}

export function show(form, button, cause) {
  clear();
  failed = { form, button };
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = "warning";
  const strong = document.createElement("strong");
  strong.textContent = SAYINGS[cause];
  const row = document.createElement("div");
  row.className = "row";
  const next = action(cause);
  next.className = "button";
  row.append(next);
  notice.append(strong, what(form, button), row);
  document.getElementById("trouble").replaceChildren(notice);
  if (next.matches("button")) {
    notice.querySelector(".row").append("It is sent again every few seconds.");
    timer = setTimeout(retry, AGAIN_AFTER);
  }
}

export function clear() {
  clearTimeout(timer);
  failed = null;
  document.getElementById("trouble").replaceChildren();
}

export const isRetry = (form) => failed?.form === form && failed.again === true;

// The submission carries its own key, so the server takes it once however often it is sent.
function retry() {
  if (!failed?.form.isConnected) return clear();
  clearTimeout(timer);
  failed.again = true;
  failed.form.requestSubmit(failed.button ?? undefined);
}

window.addEventListener("online", retry);
