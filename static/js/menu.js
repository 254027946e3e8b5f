// Closes the account menu on Escape and on a click elsewhere.
const menus = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", (event) => {
  for (const menu of menus()) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// What went wrong with a part of the page stands until the next is asked for.
document.addEventListener("htmx:before:request", () => document.getElementById("refused")?.replaceChildren());
