// SPDX-License-Identifier: Apache-2.0
// Makes a picture that the program drew (tools/chart/svg_chart.hpp) interactive: curves can be
// hidden, and the pointer shows the value of the nearest point. The script only moves what the
// program drew.

const stateTexts = {
  "failed allocations": "some allocations failed",
  unsound: "blocks were corrupt or misaligned",
  lost: "lost",
};

// The lines of the tooltip of a point.
function pointText(view, point) {
  const at = xText(view.x, point.x);
  const unit = view.x.unit && !at.includes(" ") ? " " + view.x.unit : "";
  const lines = [`${axisTitle(view.y)}: ${numberText(point.y)}`];
  if (at) lines.push(`${view.x.name || "at"}: ${at}${unit}`);
  if (point.most > point.least)
    lines.push(`repetitions: ${numberText(point.least)} to ${numberText(point.most)}`);
  if (point.state) lines.push(stateTexts[point.state] || point.state);
  return lines;
}

const translation = (element) => element.transform.baseVal.getItem(0).matrix;

class ChartPicture {
  constructor(view, box) {
    this.view = view;
    this.box = box;
    box.innerHTML = view.svg;
    this.svg = box.querySelector("svg");
    this.group = this.svg.querySelector(".chart");
    this.form = this.group.dataset.form;
    [this.left, this.right, this.top, this.bottom] = this.group.dataset.frame
      .split(" ")
      .map(Number);
    this.width = this.svg.width.baseVal.value;
    this.height = this.svg.height.baseVal.value;
    this.curves = [...this.group.querySelectorAll(".curve")];
    this.ticks = [...this.group.querySelectorAll(".tick")];
    for (const element of [...this.ticks, ...this.group.querySelectorAll("g.point")])
      element.drawnAt = translation(element).f;
    this.tooltip = make("div", {class: "tooltip", hidden: true});
    box.append(this.tooltip);
    box.addEventListener("pointermove", (event) => this.hover(event));
    box.addEventListener("pointerdown", (event) => this.hover(event));
    box.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    this.crop();
  }

  // The page has its own heading and legend: the picture is shown without them.
  crop() {
    const top = Number(this.group.dataset.top);
    const width = this.form === "horizontal" ? this.width : this.right + 30;
    this.svg.setAttribute("viewBox", `0 ${top} ${width} ${this.height - top}`);
    this.svg.removeAttribute("width");
    this.svg.removeAttribute("height");
    this.svg.style.maxWidth = `${Math.round(1.3 * width)}px`;
  }

  get visible() {
    return this.curves.filter((curve) => curve.getAttribute("display") !== "none");
  }

  // Shows the curves with these names and hides all others.
  show(names) {
    for (const curve of this.curves)
      names.has(curve.dataset.name)
        ? curve.removeAttribute("display")
        : curve.setAttribute("display", "none");
    this.tooltip.hidden = true;
    if (this.form === "lines") this.fitAxis();
    if (this.form === "horizontal") this.closeGaps();
    if (this.form === "layers") this.stack();
    this.countLost();
  }

  // The y axis covers the visible curves. A linear function maps pixels of the old axis to pixels
  // of the new one, whether the axis is linear (0 stays at the bottom) or logarithmic.
  fitAxis() {
    const points = this.visible.flatMap((curve) => [...curve.querySelectorAll("g.point")]);
    let factor = 1,
      offset = 0;
    if (points.length && this.visible.length < this.curves.length) {
      const heights = points.map((point) => point.drawnAt);
      for (const path of this.visible.map((curve) => curve.querySelector(".path").getBBox()))
        if (path.height) heights.push(path.y, path.y + path.height);
      const margin = 10,
        high = Math.min(...heights);
      const isLog = this.group.dataset.y === "log";
      const low = isLog ? Math.max(...heights) : this.bottom;
      const room = this.bottom - this.top - (isLog ? 2 : 1) * margin;
      factor = Math.min(room / Math.max(low - high, 1), 30);
      offset = this.top + margin - factor * high;
      if (isLog && low - high < 1) offset = (this.top + this.bottom) / 2 - factor * high;
      if (!isLog) offset = this.bottom - factor * this.bottom;
    }
    for (const curve of this.curves) {
      curve.querySelector(".path").setAttribute("transform", `matrix(1 0 0 ${factor} 0 ${offset})`);
      for (const point of curve.querySelectorAll("g.point"))
        translation(point).f = factor * point.drawnAt + offset;
    }
    this.placeTicks(factor, offset);
  }

  // Minor ticks appear where the enlarged axis has room for them.
  placeTicks(factor, offset) {
    const shown = [];
    for (const tick of this.ticks) {
      const y = factor * tick.drawnAt + offset;
      translation(tick).f = y;
      const isMinor = tick.classList.contains("minor");
      const fits = y >= this.top - 0.5 && y <= this.bottom + 0.5;
      const isFree =
        !isMinor || (factor > 1.3 && shown.every((other) => Math.abs(other - y) >= 30));
      if (fits && isFree) shown.push(y);
      fits && isFree ? tick.removeAttribute("display") : tick.setAttribute("display", "none");
    }
  }

  closeGaps() {
    const rows = this.curves.map((curve) => (curve.drawnAt ??= translation(curve).f));
    this.visible.forEach((curve, i) => (translation(curve).f = rows[i]));
  }

  stack() {
    const tops = new Map();
    for (const bar of this.visible.flatMap((curve) => [...curve.querySelectorAll("rect.point")])) {
      const x = bar.getAttribute("x");
      const top = (tops.get(x) ?? this.bottom) - Number(bar.getAttribute("height"));
      bar.setAttribute("y", top.toFixed(1));
      tops.set(x, top);
    }
  }

  // The number of lost points of visible curves, beside the cross of the last one.
  countLost() {
    const crosses = this.visible.flatMap((curve) => [...curve.querySelectorAll(".cross")]);
    for (const text of this.group.querySelectorAll(".lost-count")) {
      const x = Number(text.dataset.x) - 4;
      const count = crosses.filter(
        (cross) => Math.abs(parseFloat(cross.getAttribute("d").slice(1)) - x) < 0.2,
      ).length;
      text.textContent = count > 1 ? count : "";
    }
  }

  // One curve strong, the others pale; null: all as usual.
  spot(name) {
    for (const curve of this.curves)
      curve.classList.toggle("pale", name !== null && curve.dataset.name !== name);
  }

  // Position of a point in the coordinates of the picture.
  positionOf(curve, point) {
    if (point.tagName === "g") return translation(point);
    const {x, y, width, height} = point.getBBox();
    return this.form === "horizontal"
      ? {e: x + width, f: translation(curve).f + y + height / 2}
      : {e: x + width / 2, f: this.form === "layers" ? y + height / 2 : y};
  }

  // Every point of the visible curves: {curve, point, x, y}.
  positions() {
    return this.visible.flatMap((curve) =>
      [...curve.querySelectorAll(".point")].map((point) => {
        const {e, f} = this.positionOf(curve, point);
        return {curve, point, x: e, y: f};
      }),
    );
  }

  hover(event) {
    const matrix = this.group.getScreenCTM();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const distance = ({x, y}) => Math.hypot(x - at.x, y - at.y);
    const all = this.positions();
    if (!all.length) return;
    const nearest = all.reduce((best, next) => (distance(next) < distance(best) ? next : best));
    const curve = this.view.curves.find((one) => one.name === nearest.curve.dataset.name);
    const lines = pointText(this.view, curve.points[nearest.point.dataset.index]);
    this.tooltip.replaceChildren(
      make("b", {}, curve.name),
      ...lines.map((line) => make("div", {}, line)),
    );
    this.tooltip.hidden = false;
    const place = new DOMPoint(nearest.x, nearest.y).matrixTransform(matrix);
    const box = this.box.getBoundingClientRect();
    const isRight = place.x - box.left > box.width / 2;
    const shift = isRight ? -12 - this.tooltip.offsetWidth : 12;
    this.tooltip.style.left = `${place.x - box.left + shift}px`;
    this.tooltip.style.top = `${place.y - box.top - this.tooltip.offsetHeight / 2}px`;
  }

  // The picture as a file: as it is shown, with heading and labels, on white.
  exported() {
    const copy = this.svg.cloneNode(true);
    copy.removeAttribute("style");
    const size = {
      width: this.width,
      height: this.height,
      viewBox: `0 0 ${this.width} ${this.height}`,
    };
    for (const [name, value] of Object.entries(size)) copy.setAttribute(name, value);
    const isFiltered = this.visible.length < this.curves.length;
    for (const hidden of copy.querySelectorAll("[display=none]")) hidden.remove();
    if (isFiltered)
      copy.querySelectorAll(".label").forEach((label, i) => {
        const x = label.getAttribute("transform").match(/translate\(([\d.]+)/)[1];
        label.setAttribute("transform", `translate(${x} ${this.top + 15 * i})`);
      });
    return {
      text: new XMLSerializer().serializeToString(copy),
      width: this.width,
      height: this.height,
    };
  }
}
