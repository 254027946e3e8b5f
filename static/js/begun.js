// A text that was begun and not stored as a version: kept in this browser until it is, and brought
// back with a notice when its editor is opened again.
const WORDS = ["source", "note", "reply"];

const editor = document.querySelector("form[data-begun]");
const stored = document.querySelector("[data-stored]");
const { begun: about, who } = (editor ?? stored).dataset;
const prefix = `strategy|${who}|${about}|`;

const read = (name) => JSON.parse(localStorage.getItem(name) ?? "null");

// The page of the strategy shows what is stored; a text that says the same is on no other record.
function forgetStored() {
  const text = stored.textContent.trim();
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith(prefix))) {
    if (read(name).source.trim() === text) localStorage.removeItem(name);
  }
}

function begin() {
  const form = editor;
  const notice = form.querySelector("[data-restored]");
  const name = prefix + (new URLSearchParams(location.search).get("use") ?? "");
  const field = (word) => form.elements[word];
  const { shown } = form.elements;
  const shownAtFirst = shown.value;
  let isKept = true;

  const written = () => Object.fromEntries(WORDS.map((word) => [word, field(word).value]));
  const isFresh = () => WORDS.every((word) => field(word).value === field(word).defaultValue);
  const preview = () => field("source").dispatchEvent(new Event("input", { bubbles: true }));

  function keep() {
    isKept = true;
    if (isFresh() && form.dataset.sent === undefined) return localStorage.removeItem(name);
    try {
      localStorage.setItem(name, JSON.stringify({ ...written(), shown: shown.value }));
    } catch {
      isKept = false;
    }
  }

  // What the page itself brings back from a form that was sent goes before what is kept.
  function restore() {
    const kept = read(name);
    if (form.dataset.sent !== undefined) return keep();
    if (!kept || WORDS.every((word) => kept[word] === field(word).value)) return localStorage.removeItem(name);
    for (const word of WORDS) field(word).value = kept[word];
    // Stored as made from the version that it was made from, so that the server tells what came since.
    shown.value = kept.shown;
    notice.hidden = false;
    // By then htmx listens: it begins in a timer of its own.
    setTimeout(preview);
  }

  function discard() {
    for (const word of WORDS) field(word).value = field(word).defaultValue;
    shown.value = shownAtFirst;
    notice.hidden = true;
    field("source").focus();
    preview();
  }

  form.addEventListener("input", keep);
  form.querySelector("[data-discard]").addEventListener("click", discard);
  form.addEventListener("submit", () => (isKept = true));
  window.addEventListener("load", restore);
  // There is no room in this browser, so leaving would lose it.
  window.addEventListener("beforeunload", (event) => isKept || event.preventDefault());
}

if (editor) begin();
else forgetStored();
