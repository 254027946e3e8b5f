// Draws formulas with KaTeX, which is loaded with the first formula.
// Uses `render` into the element, never `renderToString`: inline styles in markup violate the policy.
const FOLDER = new URL("../vendor/katex/", import.meta.url);
const SLICE = 12;

// Commands that reach out of the formula are off; sizes and expansions are held in bounds.
const LIMITS = { trust: false, strict: "ignore", throwOnError: false, maxSize: 20, maxExpand: 300 };

let fetched = null;

async function fetchKatex() {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL("katex.min.css", FOLDER);
  document.head.append(sheet);
  await import(new URL("katex.min.js", FOLDER));
  return globalThis.katex;
}

function drawOne(katex, node) {
  node.dataset.drawn = "";
  const displayMode = node.classList.contains("display");
  try {
    katex.render(node.dataset.tex, node, { ...LIMITS, displayMode, errorColor: "currentcolor" });
  } catch {
    return; // Its source stays.
  }
  if (node.scrollWidth > node.clientWidth) node.tabIndex = 0;
}

const isShown = (node) => !node.closest("[hidden]");
const nextFrame = () => new Promise((go) => setTimeout(go));

// Draws what is shown and not drawn yet, some milliseconds at a time so that keys are not held up.
export async function draw(root) {
  const nodes = [...root.querySelectorAll(".math:not([data-drawn])")].filter(isShown);
  if (!nodes.length) return;
  fetched ??= fetchKatex();
  const katex = await fetched.catch(() => (fetched = null));
  let started = performance.now();
  for (const node of katex ? nodes : []) {
    if (!node.isConnected) return;
    drawOne(katex, node);
    if (performance.now() - started > SLICE) {
      await nextFrame();
      started = performance.now();
    }
  }
}
