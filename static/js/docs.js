// A button beside each block of code or data, which copies it.
const COPY = "Copy";
const TOLD = 2000;

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    return "The browser does not allow it";
  }
}

for (const block of document.querySelectorAll(".docs-text pre")) {
  const box = document.createElement("div");
  const button = document.createElement("button");
  box.className = "docs-code";
  button.className = "button";
  button.type = "button";
  button.textContent = COPY;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = await copy(block.textContent);
    setTimeout(() => (button.textContent = COPY), TOLD);
  });
  block.replaceWith(box);
  box.append(block, button);
}
