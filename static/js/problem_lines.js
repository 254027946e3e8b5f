// Links a problem in a source text to its line in the editor.
const source = () => document.getElementById("source");

function goToLine(number) {
  const text = source();
  const lines = text.value.split("\n");
  const start = lines.slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + lines[number - 1].length);
  // Where long lines are wrapped, characters tell better than lines how far down one stands.
  const share = text.wrap === "off" ? (number - 1) / lines.length : start / text.value.length;
  text.scrollTop = share * text.scrollHeight - text.clientHeight / 4;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-line]");
  if (!link) return;
  event.preventDefault();
  goToLine(Number(link.dataset.line));
});
