// The editor that corrects a text in place.
import * as drafts from "./drafts.js";
import * as texts from "./texts.js";

const formOf = (panel) => panel.querySelector("[data-editor]");

// The place of a change in the text as it was sent. What the person has typed before it moves it.
function placeOf(text, number) {
  const places = new Map((text.dataset.places ?? "").split(" ").map((entry) => entry.split(":")));
  const place = Number(places.get(number) ?? 0);
  const stored = storedOf(text.form);
  let same = 0;
  while (same < place && text.value[same] === stored[same]) same += 1;
  return same < place ? Math.max(same, place + text.value.length - stored.length) : place;
}

// The cursor stands at the change, a third from the top of the box. How far down that is, only a
// box of the same width can tell.
export function standAt(panel, number) {
  const text = formOf(panel).elements.text;
  const place = placeOf(text, number);
  text.setSelectionRange(place, place);
  const twin = text.cloneNode();
  twin.value = text.value.slice(0, place);
  twin.rows = 1;
  Object.assign(twin, { id: "", name: "", tabIndex: -1, className: `${text.className} twin` });
  twin.style.setProperty("width", `${text.offsetWidth}px`);
  text.after(twin);
  text.scrollTop = twin.scrollHeight - text.clientHeight / 3;
  twin.remove();
}

export function open(panel, isOpen = true) {
  const form = formOf(panel);
  if (!form) return false;
  form.hidden = !isOpen;
  for (const part of panel.querySelectorAll("[data-answers]")) part.hidden = isOpen;
  markBegun(panel);
  const target = isOpen ? form.elements.text : panel.querySelector("[data-focus]");
  target.focus();
  const compared = panel.querySelector("[data-compared]");
  if (isOpen) standAt(panel, compared ? texts.currentChange(panel) : "");
  return true;
}

export const storedOf = (form) => form.elements.text.dataset.stored ?? form.elements.text.defaultValue;

// Whether the corrected text differs from the stored one, in sight or not.
export function hasUnsaved(panel) {
  const form = formOf(panel);
  return Boolean(form) && form.elements.text.value !== storedOf(form);
}

// Asks what becomes of a corrected text before the person would `act`: "save" it, go on "without" it,
// or "" for back.
export function askUnsaved(panel, act) {
  const dialog = document.getElementById("unsaved");
  for (const word of dialog.querySelectorAll("[data-act]")) word.textContent = act;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => dialog.addEventListener("close", () => answer(dialog.returnValue), { once: true }));
}

document.getElementById("unsaved")?.addEventListener("keydown", (event) => {
  // A key that is still held down answers nothing.
  if (event.repeat) event.preventDefault();
  else if (event.key === "w") event.currentTarget.close("without");
});

// A label leaves a correction that is begun behind, so the way back to it is marked.
export function markBegun(panel) {
  const mark = panel.querySelector("[data-begun]");
  if (mark) mark.hidden = !hasUnsaved(panel);
}

// Says that the text in the editor is not the stored one.
export function showRestored(panel) {
  formOf(panel).querySelector("[data-restored]").hidden = false;
}

export function startAnew(panel) {
  const form = formOf(panel);
  form.elements.text.value = storedOf(form);
  form.elements.note.value = "";
  form.querySelector("[data-restored]").hidden = true;
  form.elements.text.focus();
  drafts.keep();
}
