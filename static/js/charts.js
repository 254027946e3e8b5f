// Draws every chart of the page from the specification in its script element:
//   <figure class="chart"><div data-chart="spec-1"></div></figure>{{ spec|json_script:"spec-1" }}
// The colours come from the style sheet, so a chart follows light and dark like the rest.
const OPTIONS = {
  mode: "vega-lite",
  ast: true,
  actions: false,
  defaultStyle: false,
  renderer: "svg",
  tooltip: { disableDefaultStyle: true },
};

function colour(name) {
  const probe = document.createElement("span");
  probe.className = "swatch";
  probe.dataset.colour = name;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function theme() {
  const [ink, soft, line] = ["ink", "ink-soft", "line"].map(colour);
  const type = { labelFontSize: 12, titleFontSize: 12 };
  const labels = { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, ...type };
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: line },
    title: { color: ink, anchor: "start", fontSize: 14 },
    range: { category: ["brand", "spot", "added", "removed", "good", "warn"].map(colour) },
    mark: { color: colour("brand") },
    text: { color: ink },
    axis: { ...labels, tickColor: line },
    header: { labelColor: soft, titleColor: ink },
    legend: { labelColor: soft, titleColor: ink, ...type },
  };
}

const drawn = new Map();

async function draw(place) {
  const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  drawn.get(place)?.finalize();
  drawn.set(place, await window.vegaEmbed(place, spec, { ...OPTIONS, config: theme() }));
}

function drawAll() {
  for (const place of drawn.keys()) {
    if (!place.isConnected) forget(place);
  }
  for (const place of document.querySelectorAll("[data-chart]")) draw(place);
}

function forget(place) {
  drawn.get(place).finalize();
  drawn.delete(place);
}

// Made here, or vega-tooltip would put it outside the landmarks of the page.
const tooltip = document.createElement("div");
tooltip.id = "vg-tooltip-element";
document.querySelector("main").append(tooltip);

drawAll();
document.addEventListener("htmx:after:swap", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
