// One box that ticks all boxes of a name on the page.
document.addEventListener("change", ({ target }) => {
  const name = target.dataset.ticks;
  if (!name) return;
  for (const box of document.getElementsByName(name)) box.checked = target.checked;
});
