// Forms that are kept nowhere until they are saved: leaving the page is asked about once something
// was changed. `data-changed` says that the page shows changes that were not saved, and
// `data-cancel` is a way out that drops them.
for (const form of document.querySelectorAll("form[data-ask-before-leaving]")) {
  let isChanged = form.dataset.changed !== undefined;
  form.addEventListener("input", () => (isChanged = true));
  form.addEventListener("submit", () => (isChanged = false));
  for (const way of form.querySelectorAll("[data-cancel]")) {
    way.addEventListener("click", (event) => (isChanged &&= event.ctrlKey || event.metaKey || event.shiftKey));
  }
  window.addEventListener("beforeunload", (event) => isChanged && event.preventDefault());
  // A page that would load itself anew waits until the changes are saved.
  document.addEventListener("htmx:before:response", (event) => isChanged && event.detail.ctx.hx.refresh && event.preventDefault());
}
