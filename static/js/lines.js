// A problem in a text leads to its line in the editor.
const source = () => document.getElementById("source");

function goToLine(number) {
  const lines = source().value.split("\n");
  const start = lines.slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
  source().focus();
  source().setSelectionRange(start, start + lines[number - 1].length);
  const height = source().scrollHeight / lines.length;
  source().scrollTop = Math.max(0, (number - 5) * height);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-line]");
  if (!link) return;
  event.preventDefault();
  goToLine(Number(link.dataset.line));
});
