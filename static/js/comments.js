// An unsent comment is kept in this browser until it is sent.
import { rename } from "./page.js";

const text = () => document.querySelector("#comments textarea");
const name = () => `comment|${text().dataset.begun}`;

export function restore() {
  if (!text()) return;
  const former = `comment|${text().dataset.formerly}`;
  if (localStorage.getItem(former) !== null) rename(former, name());
  if (!text().value.trim()) text().value = localStorage.getItem(name()) ?? "";
}

function keep() {
  try {
    if (text().value.trim()) localStorage.setItem(name(), text().value);
    else localStorage.removeItem(name());
  } catch {
    // No room in this browser: it stays on this page alone.
  }
}

document.addEventListener("input", ({ target }) => target === text() && keep());
// It is sent, or stands there again with what is wrong with it.
document.addEventListener("htmx:after:swap", () => text() && keep());
document.addEventListener("htmx:error", () => {
  if (!text()) return;
  const problem = document.querySelector("#comments [data-unsent]") ?? document.createElement("p");
  problem.className = "field-error";
  problem.dataset.unsent = "";
  problem.setAttribute("role", "alert");
  problem.textContent = "Not sent: no connection. Your text is still here; send it again.";
  text().after(problem);
});
restore();
