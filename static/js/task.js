// The editor of a task type: the preview can be tried out, and a problem leads to its line.
import * as fields from "./fields.js";

const source = () => document.getElementById("source");

function begin() {
  for (const form of document.querySelectorAll("[data-preview]")) fields.bind(form);
  document.querySelector("[data-look]").hidden = true;
}

function goToLine(number) {
  const lines = source().value.split("\n");
  const start = lines.slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
  source().focus();
  source().setSelectionRange(start, start + lines[number - 1].length);
  const height = source().scrollHeight / lines.length;
  source().scrollTop = Math.max(0, (number - 5) * height);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-line]");
  if (!link) return;
  event.preventDefault();
  goToLine(Number(link.dataset.line));
});

// Nothing is sent from the preview; it says what would be.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-preview]")) return;
  event.preventDefault();
  const told = event.target.querySelector("[data-fields-said]");
  told.textContent = "This would be stored now. It is a preview, so nothing is.";
  fields.cancel(event.target);
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("[data-preview]");
  if (!form || event.target.matches("textarea") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (fields.press(form, event.key)) event.preventDefault();
});

document.addEventListener("htmx:after:swap", begin);
begin();
