// Single keys: which press counts, and the switch that turns them off (WCAG 2.1.4).
const SWITCH = "single-keys";
const TYPING = "input:not([type=checkbox]), textarea, select, [contenteditable]";

const off = () => localStorage.getItem(SWITCH) === "off";

function isForUs(event) {
  if (event.defaultPrevented || event.repeat || event.isComposing) return false;
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  return !event.target.closest?.(TYPING) && !document.querySelector("dialog[open]");
}

// Where digits need Shift (French keyboards) the key itself counts without it too.
function nameOf(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  return digit && !event.shiftKey ? digit[1] : event.key;
}

// Calls act(name), which says whether the key meant anything.
export function listen(act) {
  document.addEventListener("keydown", (event) => {
    const name = nameOf(event);
    if (!isForUs(event) || (off() && name !== "?")) return;
    if (act(name)) event.preventDefault();
  });
  const box = document.querySelector("[data-single-keys]");
  box.checked = !off();
  box.addEventListener("change", () => localStorage.setItem(SWITCH, box.checked ? "on" : "off"));
}
