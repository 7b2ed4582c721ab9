// SPDX-License-Identifier: Apache-2.0
// Light and dark, and how a curve looks: [colour, marker, dash], indices into the tables that the data bring.

const pointStyles = ["circle", "triangle", "rect", "rectRot", "crossRot", "star", "line"]; // the last one upright

const theme = {
  chosen: null, // by the button; null: as the system says
  listeners: [],
  system: matchMedia("(prefers-color-scheme: dark)"),
  get name() {
    return this.chosen || (this.system.matches ? "dark" : "light");
  },
  apply() {
    document.documentElement.dataset.theme = this.name;
    byId("theme").textContent = this.name === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", this.name === "dark" ? "Light colours" : "Dark colours");
    for (const listener of this.listeners) listener();
  },
  start() {
    try {
      this.chosen = localStorage.getItem("quarry-report-theme");
    } catch {
      /* no storage for files */
    }
    this.system.addEventListener("change", () => this.apply());
    byId("theme").addEventListener("click", () => {
      this.chosen = this.name === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("quarry-report-theme", this.chosen);
      } catch {
        /* the same */
      }
      this.apply();
    });
    this.apply();
  },
};

const themeColour = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
const colourOf = (look) => data.palette[theme.name][look[0]];
const dashOf = (look) => data.palette.dashes[look[2]].split(" ").filter(Boolean).map(Number);

function faded(colour, alpha) {
  const part = (i) => parseInt(colour.slice(i, i + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`;
}

// Bars have no dash: the plain form is strong, others are pale with an edge.
const barFill = (look, state, colour = colourOf(look)) => faded(colour, state ? 0.15 : look[2] === 0 ? 0.85 : 0.4);

function markerPath(look, x, y, colour, radius, hollow) {
  const {path, open} = data.palette.markers[look[1]];
  return makeSvg("path", {
    d: path,
    transform: `translate(${x} ${y}) scale(${radius})`,
    fill: open ? "none" : hollow || colour,
    stroke: colour,
    "stroke-width": open ? 0.45 : 0.3,
  });
}

function swatch(look, isBar) {
  const colour = colourOf(look);
  if (isBar)
    return makeSvg(
      "svg",
      {width: 14, height: 12, "aria-hidden": "true"},
      makeSvg("rect", {x: 1, y: 1, width: 12, height: 10, fill: barFill(look), stroke: colour}),
    );
  return makeSvg(
    "svg",
    {width: 30, height: 12, "aria-hidden": "true"},
    makeSvg("path", {
      d: "M1 6h28",
      fill: "none",
      stroke: colour,
      "stroke-width": 1.8,
      "stroke-dasharray": dashOf(look).join(" "),
    }),
    markerPath(look, 15, 6, colour, 3.6),
  );
}
