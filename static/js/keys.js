// Single keys: which press counts, what it means to this person, and the switch that turns them
// off (WCAG 2.1.4). An action is named by the key that it has unless the person changed it.
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

// The action of a press. A key is a character; where digits need Shift (French keyboards) the key
// itself counts without it too.
function nameOf(event) {
  const typed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const digit = event.shiftKey ? null : /^(?:Digit|Numpad)(\d)$/.exec(event.code)?.[1];
  if (names.has(typed)) return names.get(typed);
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

// Calls act(name), which says whether the key meant anything.
export function listen(act) {
  document.addEventListener("keydown", (event) => {
    if (!isForUs(event)) return;
    const name = nameOf(event);
    if (!name || (off() && name !== "?")) return;
    if (act(name, event)) event.preventDefault();
  });
  const box = document.querySelector("[data-single-keys]");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
}
