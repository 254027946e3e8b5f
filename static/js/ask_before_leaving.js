// Forms that are kept nowhere until they are saved: leaving the page is asked about once something
// was changed. `data-changed` says that the page shows changes that were not saved.
for (const form of document.querySelectorAll("form[data-ask-before-leaving]")) {
  let isChanged = form.dataset.changed !== undefined;
  form.addEventListener("input", () => (isChanged = true));
  form.addEventListener("submit", () => (isChanged = false));
  form.querySelector("[data-cancel]")?.addEventListener("click", (event) => (isChanged &&= event.ctrlKey || event.metaKey || event.shiftKey));
  window.addEventListener("beforeunload", (event) => isChanged && event.preventDefault());
}
