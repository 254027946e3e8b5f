// What a person typed or chose and the server does not have yet, kept for this tab.
// A comment speaks of the item and outlives a correction; a text or a choice is of one revision.
const nameOf = (panel, field) => {
  const revision = field === "comment" ? "" : panel.dataset.revision;
  return ["draft", location.pathname, panel.dataset.item, revision, field].join("|");
};

export const put = (panel, field, value) => sessionStorage.setItem(nameOf(panel, field), value);
export const get = (panel, field) => sessionStorage.getItem(nameOf(panel, field));
export const drop = (panel, field) => sessionStorage.removeItem(nameOf(panel, field));

export function keep(panel, input) {
  if (input.value === input.defaultValue) drop(panel, input.dataset.draft);
  else put(panel, input.dataset.draft, input.value);
}

// Fills in what was kept for the painted item and says which fields that were.
export function restore(panel) {
  const restored = [];
  for (const input of panel.querySelectorAll("[data-draft]")) {
    const kept = get(panel, input.dataset.draft);
    if (kept === null || kept === input.value) continue;
    input.value = kept;
    restored.push(input.dataset.draft);
  }
  return restored;
}

export function forget(panel, fields) {
  for (const field of fields) drop(panel, field);
}
