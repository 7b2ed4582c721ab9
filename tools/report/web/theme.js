// SPDX-License-Identifier: Apache-2.0
// Light and dark theme, and the sample of a curve beside its name in the legend.

const theme = {
  chosen: null, // by the button; null: as the system says
  system: matchMedia("(prefers-color-scheme: dark)"),
  get name() {
    return this.chosen || (this.system.matches ? "dark" : "light");
  },
  apply() {
    document.documentElement.dataset.theme = this.name;
    byId("theme").textContent = this.name === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute(
      "aria-label",
      this.name === "dark" ? "Light colours" : "Dark colours",
    );
  },
  start() {
    try {
      this.chosen = localStorage.getItem("quarry-report-theme");
    } catch {
      /* pages that are opened from a file may have no storage */
    }
    this.system.addEventListener("change", () => this.apply());
    byId("theme").addEventListener("click", () => {
      this.chosen = this.name === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("quarry-report-theme", this.chosen);
      } catch {
        /* no storage */
      }
      this.apply();
    });
    this.apply();
  },
};

// Returns the sample that the picture has in the label of the curve. Where the picture has no
// labels (horizontal bars), the sample is a bar of the same colour.
function sampleOf(curveGroup) {
  const svg = makeSvg("svg", {width: 30, height: 12, viewBox: "0 -6 30 12", "aria-hidden": "true"});
  const colour = [...curveGroup.classList].find((name) => /^c\d+$/.test(name));
  const group = makeSvg("g", {class: "curve " + colour, color: curveGroup.getAttribute("color")});
  const label = curveGroup.querySelector(".label");
  if (label)
    group.append(
      ...[...label.children]
        .filter((part) => part.tagName !== "text")
        .map((part) => part.cloneNode(true)),
    );
  else {
    const bar = curveGroup.querySelector(".point");
    const opacity = bar ? bar.getAttribute("fill-opacity") : 0.15;
    const box = {x: 10, y: -5, width: 12, height: 10, fill: "currentColor", stroke: "currentColor"};
    group.append(makeSvg("rect", {...box, "fill-opacity": opacity}));
  }
  svg.append(group);
  return svg;
}
