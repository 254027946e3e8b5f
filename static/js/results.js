// Gives each view chosen by a switch its own URL, so that it can be shared and revisited.
const figures = () => document.getElementById("figures");

function follow() {
  const address = figures()?.dataset.address;
  if (address !== undefined && address !== decodeHere()) history.pushState(null, "", address);
}

const decodeHere = () => location.search || "?";

document.addEventListener("htmx:after:swap", follow);
window.addEventListener("popstate", () => location.reload());
