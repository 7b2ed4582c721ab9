// SPDX-License-Identifier: Apache-2.0
// Files: PNG made from the SVG of a figure, and its numbers as CSV.

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
  const quoted = (value) =>
    /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
  const rows = [
    ["experiment", "backend", "measure", "unit", "series", "x", "value", "least", "most", "state"],
  ];
  for (const view of figure.views)
    for (const curve of view.curves)
      for (const point of curve.points)
        rows.push([
          experiment.id,
          data.backends[figure.backend].label,
          view.field,
          view.y.unit,
          curve.name,
          view.x.scale === "category" ? view.x.categories[point.x] : point.x,
          point.y ?? "",
          point.least ?? "",
          point.most ?? "",
          point.state || "ok",
        ]);
  return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
}
