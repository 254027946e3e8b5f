// Reading the item: inline or side by side, from change to change, and the editor.
import * as drafts from "./drafts.js";

const YEAR = 365 * 24 * 3600;

export function show(panel, view) {
  for (const part of panel.querySelectorAll("[data-shows]")) part.hidden = part.dataset.shows !== view;
  for (const link of panel.querySelectorAll("[data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  // The server draws the next item in this view at once.
  document.cookie = `diff=${view}; path=/; max-age=${YEAR}; samesite=lax`;
}

export function toggle(panel) {
  const other = panel.querySelector("[data-view]:not([aria-current])");
  if (other) show(panel, other.dataset.view);
}

// Goes to the next change (step 1) or the one before (step -1); gives "Change 2 of 5" to be said.
export function go(panel, step) {
  const marks = [...panel.querySelectorAll("[data-shows]:not([hidden]) [data-change]")];
  const changes = [...new Set(marks.map((mark) => mark.dataset.change))];
  if (!changes.length) return "";
  const at = changes.indexOf(marks.find((mark) => "current" in mark.dataset)?.dataset.change);
  const next = at < 0 && step < 0 ? changes.length - 1 : (at + step + changes.length) % changes.length;
  for (const mark of marks) {
    if (mark.dataset.change === changes[next]) mark.dataset.current = "";
    else delete mark.dataset.current;
  }
  marks.find((mark) => "current" in mark.dataset).scrollIntoView({ block: "center", behavior: "smooth" });
  return `Change ${next + 1} of ${changes.length}`;
}

export function edit(panel, open = true) {
  const form = panel.querySelector("[data-editor]");
  if (!form) return;
  form.hidden = !open;
  panel.querySelector("[data-answers]").hidden = open;
  const target = open ? form.elements.text : panel.querySelector("[data-focus]");
  target.focus();
  if (open) target.setSelectionRange(0, 0);
}

export function hasUnsaved(panel) {
  const form = panel.querySelector("[data-editor]:not([hidden])");
  return Boolean(form) && form.elements.text.value !== form.elements.text.defaultValue;
}

export function startAnew(panel) {
  const form = panel.querySelector("[data-editor]");
  drafts.forget(panel, ["text", "note"]);
  form.reset();
  form.querySelector("[data-restored]").hidden = true;
  form.elements.text.focus();
}
