// SPDX-License-Identifier: Apache-2.0
// A figure as it is shown, for papers: SVG (always on white), PNG made from it, and the numbers as CSV.

const exportLook = {ink: "#222222", soft: "#555555", grid: "#e2e2e2", fault: "#d00000"};
const lightColour = (look) => data.palette.light[look[0]];

function axisParts(chart, out) {
  const {x, y} = chart.scales,
    {left, right, top, bottom} = chart.chartArea;
  const line = (x1, y1, x2, y2, stroke) => out.push(makeSvg("line", {x1, y1, x2, y2, stroke}));
  const text = (content, attributes) => out.push(svgText(content, attributes));
  const lying = chart.options.indexAxis === "y";
  y.ticks.forEach((tick, i) => {
    const at = y.getPixelForTick(i);
    if (!lying) line(left, at, right, at, exportLook.grid);
    text(tick.label, {x: left - 8, y: at + 4, "text-anchor": "end"});
  });
  x.ticks.forEach((tick, i) => {
    const at = x.getPixelForTick(i);
    line(at, lying ? top : bottom, at, bottom + 4, lying ? exportLook.grid : "#888888");
    text(
      tick.label,
      x.labelRotation > 0
        ? {x: at, y: bottom + 14, "text-anchor": "end", transform: `rotate(${-x.labelRotation} ${at} ${bottom + 14})`}
        : {x: at, y: bottom + 18, "text-anchor": "middle"},
    );
  });
  line(left, bottom, right, bottom, "#888888");
  text(x.options.title.text || "", {x: (left + right) / 2, y: x.bottom - 4, "text-anchor": "middle"});
  if (!lying)
    text(y.options.title.text || "", {
      x: 12,
      y: (top + bottom) / 2,
      "text-anchor": "middle",
      transform: `rotate(-90 12 ${(top + bottom) / 2})`,
    });
}

function curveParts(set, elements, out) {
  const colour = lightColour(set.look);
  let path = "",
    pen = "M";
  elements.forEach((element) => {
    if (element.skip) {
      pen = "M";
      return;
    }
    path += `${pen}${element.x.toFixed(1)} ${element.y.toFixed(1)}`;
    pen = "L";
  });
  out.push(
    makeSvg("path", {
      d: path,
      fill: "none",
      stroke: colour,
      "stroke-width": 1.8,
      "stroke-linejoin": "round",
      "stroke-dasharray": dashOf(set.look).join(" "),
    }),
  );
  elements.forEach((element, i) => {
    if (element.skip || !(element.options.radius > 0)) return;
    out.push(markerPath(set.look, element.x, element.y, colour, 3.6, set.data[i].dot.state ? "white" : null));
  });
}

function barParts(set, elements, out) {
  const colour = lightColour(set.look);
  elements.forEach((element, i) => {
    const {x, y, base, width, height, horizontal} = element.getProps(
      ["x", "y", "base", "width", "height", "horizontal"],
      true,
    );
    if (set.data[i][horizontal ? "x" : "y"] === null) return;
    const box = horizontal
      ? {x: Math.min(x, base), y: y - height / 2, width: Math.abs(x - base), height}
      : {x: x - width / 2, y: Math.min(y, base), width, height: Math.abs(y - base)};
    out.push(makeSvg("rect", {...box, fill: barFill(set.look, set.data[i].dot.state, colour), stroke: colour}));
  });
}

function faultParts(chart, out) {
  const lying = chart.options.indexAxis === "y";
  for (const {dot, element, look} of placedDots(chart)) {
    const ends = whisker(chart, dot);
    if (ends && !chart.options.stacked) {
      const d = lying ? `M${ends[0]} ${element.y}H${ends[1]}` : `M${element.x} ${ends[0]}V${ends[1]}`;
      out.push(makeSvg("path", {d, stroke: lightColour(look), "stroke-opacity": 0.6}));
    }
    if ((dot.state === "unsound" || dot.state === "lost") && dot.y !== null && !element.skip) {
      const ring = {cx: element.x, cy: element.y, r: 7, fill: "none", stroke: exportLook.fault, "stroke-width": 1.8};
      out.push(makeSvg("circle", ring));
    }
    if (lying) {
      const end = dot.y === null ? chart.chartArea.left : Math.max(element.x, ends ? ends[1] : 0);
      out.push(svgText(lyingText(dot), {x: end + 6, y: element.y + 4, fill: exportLook.soft}));
    }
  }
  const {count, y} = lostPlaces(chart);
  for (const [x, n] of count) {
    const cross = {d: `M${x - 5} ${y - 5}l10 10m0-10l-10 10`, stroke: exportLook.fault, "stroke-width": 2};
    out.push(makeSvg("path", cross));
    if (n > 1) out.push(svgText(n, {x: x + 7, y: y - 4, fill: exportLook.fault}));
  }
}

function svgText(content, attributes) {
  const element = makeSvg("text", attributes);
  element.textContent = content;
  return element;
}

// A row for each curve at the right; lying bars have their names already.
function legendParts(chart, out) {
  chart.data.datasets.forEach((set, i) => {
    const x = chart.width + 14,
      y = 10 + 17 * i,
      colour = lightColour(set.look);
    if (chart.config.type === "bar")
      out.push(
        makeSvg("rect", {
          x: x + 9,
          y: y - 5,
          width: 12,
          height: 10,
          fill: barFill(set.look, "", colour),
          stroke: colour,
        }),
      );
    else
      out.push(
        makeSvg("path", {
          d: `M${x} ${y}h28`,
          stroke: colour,
          "stroke-width": 1.8,
          "stroke-dasharray": dashOf(set.look).join(" "),
        }),
        markerPath(set.look, x + 14, y, colour, 3.6),
      );
    out.push(svgText(set.label, {x: x + 36, y: y + 4}));
  });
}

function svgOf(chart, title, subtitle) {
  const parts = [],
    lying = chart.options.indexAxis === "y",
    sets = chart.data.datasets;
  axisParts(chart, parts);
  sets.forEach((set, i) => {
    const elements = chart.getDatasetMeta(i).data;
    if (chart.config.type === "bar") barParts(set, elements, parts);
    else curveParts(set, elements, parts);
  });
  faultParts(chart, parts);
  if (!lying) legendParts(chart, parts);
  const beside = lying ? 0 : 66 + 7 * Math.max(0, ...sets.map((set) => set.label.length));
  const width = Math.max(chart.width + beside, 30 + 8.5 * title.length);
  const height = Math.max(chart.height, lying ? 0 : 20 + 17 * sets.length) + 58;
  const svg = makeSvg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-family": "Helvetica, Arial, sans-serif",
      "font-size": 12,
      fill: exportLook.ink,
    },
    makeSvg("rect", {width: "100%", height: "100%", fill: "white"}),
    svgText(title, {x: 14, y: 22, "font-size": 15, "font-weight": "bold"}),
    svgText(subtitle, {x: 14, y: 40, fill: exportLook.soft}),
    makeSvg("g", {transform: "translate(0 52)"}, ...parts),
  );
  return {text: new XMLSerializer().serializeToString(svg), width, height};
}

function pngOf({text, width, height}) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas", {width: 2 * width, height: 2 * height});
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = reject;
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  });
}

function csvOf(experiment, figure) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
  const rows = [["experiment", "backend", "measure", "unit", "series", "x", "value", "least", "most", "state"]];
  for (const view of figure.views)
    for (const curve of view.curves)
      for (const dot of curve.dots)
        rows.push([
          experiment.id,
          data.backends[figure.backend].label,
          view.field,
          view.y.unit,
          curve.name,
          view.x.scale === "category" ? view.x.categories[dot.x] : dot.x,
          dot.y ?? "",
          dot.least ?? "",
          dot.most ?? "",
          dot.state || "ok",
        ]);
  return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}
