// Single keys: which press counts, what it means to this person, and the switch that turns them
// off (WCAG 2.1.4). Actions and their keys come from the server (annotation/accounts/keymap.py).
const SWITCH = "single-keys";
const TYPING = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]";
const OPTION = "option-";

const pressed = JSON.parse(document.getElementById("hotkeys").textContent);
const slugs = new Map(Object.entries(pressed).map(([slug, key]) => [key, slug]));

const off = () => localStorage.getItem(SWITCH) === "off";

export const isTyping = (event) => Boolean(event.target.closest?.(TYPING));

// The key that this person presses for an action, and for an option of a field.
export const keyOf = (slug) => pressed[slug];
export const keyOfOption = (key) => pressed[OPTION + key] ?? key;

function isForUs(event) {
  if (event.defaultPrevented || event.repeat || event.isComposing) return false;
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  return !isTyping(event) && !document.querySelector("dialog[open]");
}

// Where digits need Shift (French keyboards), the digit of a key that was pressed without it.
function digitOf(event) {
  if (event.shiftKey || event.key.length !== 1 || /\d/.test(event.key)) return undefined;
  return /^Digit(\d)$/.exec(event.code)?.[1];
}

// What a character means: the slug of an action, or the key of an option. One that this person gave
// to no option any more means nothing; any other is the page's own.
function meaningOf(character) {
  const slug = slugs.get(character);
  if (slug?.startsWith(OPTION)) return slug.slice(OPTION.length);
  return slug ?? (OPTION + character in pressed ? "" : character);
}

// What a press means. A key is the character that it types; what types none that means anything here
// may be a digit.
function nameOf(event, isAnswer) {
  const typed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (slugs.has(typed)) return meaningOf(typed);
  const digit = isAnswer(typed) ? undefined : digitOf(event);
  return meaningOf(digit ?? typed);
}

// Calls act(name), which says whether the key meant anything. isAnswer(key) says whether a character
// answers what is asked now.
export function listen(act, isAnswer) {
  document.addEventListener("keydown", (event) => {
    if (!isForUs(event)) return;
    const name = nameOf(event, isAnswer);
    if (!name || (off() && name !== "keys")) return;
    if (act(name, event)) event.preventDefault();
  });
  const box = document.querySelector("[data-single-keys]");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
}
