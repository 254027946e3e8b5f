// The form of a task type: what is typed is previewed, and not lost by leaving the page.
const form = document.querySelector("[data-task-form]");
let isKept = form.dataset.unsaved === undefined;

form.addEventListener("input", () => (isKept = false));
form.addEventListener("submit", () => (isKept = true));
window.addEventListener("beforeunload", (event) => isKept || event.preventDefault());
