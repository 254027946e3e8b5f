// The form of new runs: an estimate holds only while the form is as it was estimated. The server
// checks this too before it starts a run, so the page works without this module.
const form = document.getElementById("start");
const free = new Set(form?.dataset.notEstimated.split(" "));
let estimated = "";

const read = () => JSON.stringify([...new FormData(form)].filter(([name, value]) => value && !free.has(name)));

// Which button is the main one depends on whether the estimate holds.
function show() {
  const notice = form.querySelector(".start-stale");
  if (!notice) return;
  const isStale = read() !== estimated;
  if (isStale) notice.textContent = "The form was changed after this estimate. Estimate again.";
  notice.hidden = !isStale;
  const [start, again] = ["[data-start]", "#estimate [name=estimate]"].map((one) => form.querySelector(one));
  // A run that cannot start has no button to start it.
  start?.toggleAttribute("disabled", isStale);
  const [main, other] = isStale || !start ? [again, start] : [start, again];
  main.dataset.kind = "primary";
  if (other) delete other.dataset.kind;
}

// A ticked generator that draws opens the fold in which its shares can be set.
function openDraws() {
  if (form.querySelector("[data-draws]:checked")) form.querySelector(".start-own").open = true;
}

if (form) {
  estimated = read();
  form.addEventListener("change", ({ target }) => target.matches("[data-draws]:checked") && openDraws());
  window.addEventListener("pageshow", openDraws);
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  // The form may be changed while the server estimates, so what was sent counts. Requests for the
  // progress of pilots, which are no posts, leave the estimate as it is.
  let sent = estimated;
  let shown = form.querySelector("[name=estimated]");
  document.addEventListener("htmx:before:request", ({ target }) => target.matches?.("[hx-post]") && (sent = read()));
  document.addEventListener("htmx:after:swap", () => {
    const fresh = form.querySelector("[name=estimated]");
    if (fresh !== shown) estimated = sent;
    shown = fresh;
    show();
  });
  window.addEventListener("pageshow", show);
}
