// Single-key shortcuts: which key presses count, what they mean to this user, and the switch that
// turns them off (WCAG 2.1.4). An action is named by its default key.
const SWITCH = "single-keys";
const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";

const changed = JSON.parse(document.getElementById("changed-keys").textContent);
const names = new Map(Object.entries(changed).map(([name, key]) => [key, name]));

const off = () => localStorage.getItem(SWITCH) === "off";

export const isTyping = (event) => Boolean(event.target.closest?.(TYPING));

// The key that this person presses for an action.
export const keyOf = (name) => changed[name] ?? name;

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

// The action of a press. A key is the character that it types; what types none that means anything
// here may be a digit.
function nameOf(event, isAnswer) {
  const typed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (names.has(typed)) return names.get(typed);
  const digit = isAnswer(typed) ? undefined : digitOf(event);
  if (names.has(digit)) return names.get(digit);
  const name = digit ?? typed;
  return Object.hasOwn(changed, name) ? "" : name;
}

// Prints the person's own keys where the server printed those that everybody has.
export function print(root) {
  if (!names.size) return;
  for (const element of root.querySelectorAll("[aria-keyshortcuts]:not([data-printed])")) {
    const keys = element.getAttribute("aria-keyshortcuts").split(" ");
    element.setAttribute("aria-keyshortcuts", keys.map(keyOf).join(" "));
    element.dataset.printed = "";
  }
  for (const element of root.querySelectorAll("kbd:not([data-printed])")) {
    element.textContent = keyOf(element.textContent);
    element.dataset.printed = "";
  }
}

// Calls act(name), which says whether the key meant anything. isAnswer(key) says whether a character
// answers what is asked now.
export function listen(act, isAnswer) {
  document.addEventListener("keydown", (event) => {
    if (!isForUs(event)) return;
    const name = nameOf(event, isAnswer);
    if (!name || (off() && name !== "?")) return;
    if (act(name, event)) event.preventDefault();
  });
  const box = document.querySelector("[data-single-keys]");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
}
