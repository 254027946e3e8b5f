// A mark before the title of the tab once what the page waits for is ready, while nobody looks at it.
const MARK = "✓ ";
const waits = () => Boolean(document.querySelector('[aria-busy="true"], [data-look-again]'));
let waited = waits();

function unmark() {
  if (!document.hidden) document.title = document.title.replace(MARK, "");
}

new MutationObserver(() => {
  const isReady = waited && !waits();
  waited = waits();
  if (isReady && document.hidden && !document.title.startsWith(MARK)) document.title = MARK + document.title;
}).observe(document.body, { subtree: true, childList: true, attributeFilter: ["aria-busy"] });

document.addEventListener("visibilitychange", unmark);
