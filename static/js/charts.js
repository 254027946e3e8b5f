// Draws every chart of the page from the specification in its script element:
//   <figure class="chart"><div data-chart="spec-1"></div></figure>{{ spec|json_script:"spec-1" }}
// The colours come from the style sheet, so charts follow the light and dark themes.
const OPTIONS = {
  mode: "vega-lite",
  ast: true,
  actions: false,
  defaultStyle: false,
  renderer: "svg",
  tooltip: { disableDefaultStyle: true },
};

// The names of the style sheet's colours, which the browser looks up: on paper they are others.
const tokens = (...names) => names.map((name) => `var(--${name})`);
const [INK, SOFT, LINE, BRAND] = tokens("ink", "ink-soft", "line", "brand");
const TYPE = { labelFontSize: 12, titleFontSize: 12 };
const LABELS = { labelColor: SOFT, titleColor: INK, labelSeparation: 4, ...TYPE };
const THEME = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: LINE },
  title: { color: INK, anchor: "start", fontSize: 14 },
  range: { category: tokens("brand", "spot", "added", "removed", "good", "warn") },
  mark: { color: BRAND },
  text: { color: INK },
  axis: { ...LABELS, gridColor: LINE, domainColor: LINE, tickColor: LINE },
  header: { labelColor: SOFT, titleColor: INK },
  // One below the other, since a telephone has no room beside.
  legend: {
    labelColor: SOFT,
    titleColor: INK,
    layout: { bottom: { direction: "vertical" } },
    ...TYPE,
  },
};

const drawn = new Map();

// Panels stand in as many columns as the page has room for. Beside a panel are its axis and a gap.
const AXIS = 60;
const GAP = 20;

function fitted(spec, width) {
  // Plots one above the other are as wide as the page, which Vega-Lite does for a single plot alone.
  if (spec.vconcat) {
    const across = Math.max(100, width - AXIS - GAP);
    return { ...spec, vconcat: spec.vconcat.map((plot) => ({ ...plot, width: across })) };
  }
  if (!spec.concat) return spec;
  const panel = spec.concat[0].width + AXIS + (spec.spacing ?? GAP);
  return { ...spec, columns: Math.max(1, Math.min(spec.columns, Math.floor(width / panel))) };
}

async function draw(place) {
  const said = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const spec = fitted(said, place.clientWidth);
  drawn.get(place)?.finalize();
  drawn.set(place, await window.vegaEmbed(place, spec, { ...OPTIONS, config: THEME }));
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
