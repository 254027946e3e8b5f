// The editor of a task type, with a preview that can be tried out.
import * as fields from "./fields.js";
import "./problem_lines.js";

function begin() {
  for (const form of document.querySelectorAll("[data-preview]")) fields.bind(form);
  document.querySelector("[data-look]").hidden = true;
}

// Nothing is sent from the preview; it says what would be.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-preview]")) return;
  event.preventDefault();
  const told = event.target.querySelector("[data-fields-said]");
  told.textContent = "Preview: nothing was saved.";
  fields.cancel(event.target);
});

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("[data-preview]");
  if (!form || event.target.matches("textarea") || event.ctrlKey || event.altKey || event.metaKey) return;
  if (fields.press(form, event.key)) event.preventDefault();
});

document.addEventListener("htmx:after:swap", begin);
begin();
