// SPDX-License-Identifier: Apache-2.0
// What Chart.js does not draw by itself: the spread of repeats, and signs of what went wrong. As in the
// pictures of `quarry report --figures`: a red ring where blocks were corrupt or misaligned, a red cross on
// the axis for what was lost.

// All dots with a place: {dot, element, look}.
function placedDots(chart) {
  return chart.data.datasets.flatMap((set, i) =>
    chart.getDatasetMeta(i).data.map((element, k) => ({dot: set.data[k].dot, element, look: set.look})),
  );
}

function lostPlaces(chart) {
  const {x, y} = chart.scales;
  const count = new Map();
  for (const {dot, element} of placedDots(chart)) {
    if (dot.state !== "lost" || chart.options.indexAxis === "y") continue;
    const at = chart.config.type === "bar" ? element.x : x.getPixelForValue(dot.x);
    count.set(at, (count.get(at) || 0) + 1);
  }
  return {count, y: y.bottom};
}

function whisker(chart, dot) {
  if (dot.y === null || dot.least === undefined || dot.most === undefined) return null;
  const scale = chart.options.indexAxis === "y" ? chart.scales.x : chart.scales.y;
  if (scale.type === "logarithmic" && dot.least <= 0) return null;
  const [from, to] = [scale.getPixelForValue(dot.least), scale.getPixelForValue(dot.most)];
  return Math.abs(to - from) > 2 ? [from, to] : null;
}

function drawWhiskers(chart, context) {
  const lying = chart.options.indexAxis === "y";
  for (const {dot, element, look} of placedDots(chart)) {
    const ends = whisker(chart, dot);
    if (!ends || chart.options.stacked) continue;
    context.strokeStyle = chart.config.type === "bar" ? themeColour("ink") : faded(colourOf(look), 0.6);
    context.lineWidth = 1.2;
    context.beginPath();
    context.moveTo(lying ? ends[0] : element.x, lying ? element.y : ends[0]);
    context.lineTo(lying ? ends[1] : element.x, lying ? element.y : ends[1]);
    context.stroke();
  }
}

function drawFaults(chart, context) {
  context.strokeStyle = context.fillStyle = themeColour("fault");
  context.lineWidth = 2;
  for (const {dot, element} of placedDots(chart)) {
    if ((dot.state !== "unsound" && dot.state !== "lost") || dot.y === null || element.skip) continue;
    context.beginPath();
    context.arc(element.x, element.y, 7, 0, 2 * Math.PI);
    context.stroke();
  }
  const {count, y} = lostPlaces(chart);
  context.font = "11px sans-serif";
  for (const [x, n] of count) {
    context.beginPath();
    context.moveTo(x - 5, y - 5);
    context.lineTo(x + 5, y + 5);
    context.moveTo(x - 5, y + 5);
    context.lineTo(x + 5, y - 5);
    context.stroke();
    if (n > 1) context.fillText(n, x + 7, y - 4);
  }
}

// At the end of lying bars, the value.
const lyingText = (dot) =>
  dot.y === null ? dot.state || "–" : numberText(dot.y) + (dot.state ? ` (${dot.state})` : "");

function drawValues(chart, context) {
  if (chart.options.indexAxis !== "y") return;
  context.font = "12px sans-serif";
  context.textBaseline = "middle";
  for (const {dot, element} of placedDots(chart)) {
    const bad = dot.state === "lost" || dot.state === "unsound";
    context.fillStyle = themeColour(bad ? "fault" : "soft");
    const ends = whisker(chart, dot);
    const end = dot.y === null ? chart.chartArea.left : Math.max(element.x, ends ? ends[1] : 0);
    context.fillText(lyingText(dot), end + 6, element.y);
  }
}

const marks = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const context = chart.ctx;
    context.save();
    drawWhiskers(chart, context);
    drawFaults(chart, context);
    drawValues(chart, context);
    context.restore();
  },
};
