// Unsaved changes in an editor: kept in this browser until they are saved, and restored with a
// notice when the editor is opened again.
//
// An editor is form[data-begun="what it edits"][data-who] and contains [data-restored] with
// [data-discard]; it has [data-sent] if the page shows submitted data again. A page that shows the
// saved version has it in [data-stored] with the same data-begun and data-who. Until version 0.2,
// what it edits was named [data-formerly], after the project.
import { rename } from "./page.js";

const isWord = "textarea, input[name=note]";
const isBase = "input[type=hidden]:not([name=csrfmiddlewaretoken], [name=action])";

const prefixOf = ({ dataset }) => `begun|${dataset.who}|${dataset.begun}|`;
const read = (name) => JSON.parse(localStorage.getItem(name) ?? "null");

function adopt(edited) {
  const former = `begun|${edited.dataset.who}|${edited.dataset.formerly}|`;
  const names = Object.keys(localStorage).filter((one) => one.startsWith(former));
  for (const name of names) rename(name, prefixOf(edited) + name.slice(former.length));
}

// What a page shows as stored is on no other record.
function forgetStored(stored) {
  const text = stored.textContent.trim();
  if (!text) return;
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith(prefixOf(stored)))) {
    if (Object.values(read(name)).some((kept) => kept.trim() === text)) localStorage.removeItem(name);
  }
}

function begin(form) {
  const notice = form.querySelector("[data-restored]");
  const name = prefixOf(form) + (new URLSearchParams(location.search).get("use") ?? "");
  const words = [...form.querySelectorAll(isWord)];
  const fields = [...words, ...form.querySelectorAll(isBase)];
  const nameOf = (field) => field.id || field.name;
  const atFirst = new Map(fields.map((field) => [field, field.value]));
  let isKept = true;

  const preview = () => words[0].dispatchEvent(new Event("input", { bubbles: true }));

  function keep() {
    isKept = true;
    const isFresh = words.every((field) => field.value === field.defaultValue);
    if (isFresh && form.dataset.sent === undefined) return localStorage.removeItem(name);
    // What is as it was is not kept: the page that shows it stored would take the rest for stored too.
    const kept = fields.filter((field) => form.dataset.sent !== undefined || !words.includes(field) || field.value !== field.defaultValue);
    try {
      localStorage.setItem(name, JSON.stringify(Object.fromEntries(kept.map((field) => [nameOf(field), field.value]))));
    } catch {
      isKept = false;
    }
  }

  // What is saved may have lost white space at its ends. A note is gone with the version it is about.
  function isStored(kept) {
    const isSame = (field) => (kept[nameOf(field)] ?? field.value).trim() === field.value.trim();
    const isNewer = fields.some((field) => !words.includes(field) && !isSame(field));
    return words.every((field) => isSame(field) || (isNewer && field.matches("input")));
  }

  // What the page itself brings back from a form that was sent goes before what is kept.
  function restore() {
    const kept = read(name);
    if (form.dataset.sent !== undefined) return keep();
    if (!kept || isStored(kept)) return localStorage.removeItem(name);
    // With what it was begun on, so that the server tells what came since.
    for (const field of fields) field.value = kept[nameOf(field)] ?? field.value;
    notice.hidden = false;
    for (const closed of form.querySelectorAll("details:not([open])")) closed.open = words.some((field) => closed.contains(field) && field.value !== field.defaultValue);
    form.closest("details")?.setAttribute("open", "");
    // By then htmx listens: it begins in a timer of its own.
    setTimeout(preview);
  }

  function discard() {
    for (const field of fields) field.value = words.includes(field) ? field.defaultValue : atFirst.get(field);
    notice.hidden = true;
    words[0].focus();
    preview();
  }

  form.addEventListener("input", keep);
  form.querySelector("[data-discard]").addEventListener("click", discard);
  form.addEventListener("submit", () => (isKept = true));
  window.addEventListener("load", restore);
  // There is no room in this browser, so leaving would lose it.
  window.addEventListener("beforeunload", (event) => isKept || event.preventDefault());
}

document.querySelectorAll("[data-who][data-begun]").forEach(adopt);
document.querySelectorAll("[data-stored]").forEach(forgetStored);
document.querySelectorAll("form[data-begun]").forEach(begin);
