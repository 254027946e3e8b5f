// What a switch brings belongs to an address of its own, so that it can be sent on and gone back to.
const figures = () => document.getElementById("figures");

function follow() {
  const address = figures()?.dataset.address;
  if (address !== undefined && address !== decodeHere()) history.pushState(null, "", address);
}

const decodeHere = () => location.search || "?";

document.addEventListener("htmx:after:swap", follow);
window.addEventListener("popstate", () => location.reload());
