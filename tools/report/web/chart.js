// SPDX-License-Identifier: Apache-2.0
// A view as Chart.js wants it. `curves` are those to show.

Chart.defaults.animation = false;
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
Chart.register(marks);

// What a view is drawn as: lines, lying (bars, where there is one x), standing (bars), layers.
function formOf(view) {
  if (view.form === "layers") return "layers";
  const xs = new Set(view.curves.flatMap((curve) => curve.dots.map((dot) => dot.x)));
  if (xs.size <= 1) return "lying";
  return view.form === "bars" ? "standing" : "lines";
}

const shown = (axis, v) => v !== null && Number.isFinite(v) && (axis.scale !== "log" || v > 0);

// Ticks of a logarithmic axis: powers of ten, and between them where there are few.
function logTicks(axis) {
  const ticks = [];
  const wideRange = axis.max / axis.min > 100;
  for (let e = Math.floor(Math.log10(axis.min)); e <= Math.log10(axis.max); ++e)
    for (const factor of wideRange ? [1] : [1, 2, 5]) {
      const value = Number((factor * 10 ** e).toPrecision(1));
      if (value >= axis.min && value <= axis.max) ticks.push({value});
    }
  axis.ticks = ticks;
}

// The measured values where someone chose them, as many as have room.
function measuredTicks(axis, values, room) {
  let last = -Infinity;
  axis.ticks = values
    .filter((v) => {
      const place =
        axis.options.type === "logarithmic"
          ? Math.log(v / axis.min) / Math.log(axis.max / axis.min)
          : (v - axis.min) / (axis.max - axis.min);
      if ((place - last) * axis.width < room) return false;
      last = place;
      return true;
    })
    .map((value) => ({value}));
}

function valueAxis(axis, values, isBar) {
  const ink = themeColour("soft"),
    grid = themeColour("line");
  const out = {
    title: {display: true, text: axisTitle(axis), color: ink},
    grid: {color: grid, borderColor: grid},
    ticks: {color: ink, callback: (v) => tickText(v, axis)},
  };
  if (axis.scale === "log") {
    const low = values.length ? Math.min(...values) : 1,
      high = values.length ? Math.max(...values) : 10;
    return {...out, type: "logarithmic", min: isBar ? low / 2 : low / 1.3, max: high * 1.3, afterBuildTicks: logTicks};
  }
  return {...out, type: "linear", beginAtZero: true, grace: "4%"};
}

function xAxis(axis, view) {
  const ink = themeColour("soft"),
    grid = themeColour("line");
  const out = {
    title: {display: axisTitle(axis) !== "", text: axisTitle(axis), color: ink},
    grid: {color: faded(grid, 0.5), borderColor: grid},
    ticks: {color: ink, maxRotation: 40, autoSkipPadding: 8},
  };
  if (axis.scale === "category") return {...out, type: "category", labels: axis.categories, offset: true};
  const xs = [...new Set(view.curves.flatMap((c) => c.dots.map((dot) => dot.x)))]
    .filter((x) => shown(axis, x))
    .sort((a, b) => a - b);
  const chosen = xs.length <= 24 && xs.every(Number.isInteger);
  out.ticks.callback = (v) => tickText(v, axis);
  out.ticks.autoSkip = false;
  const tick = (scale) => (chosen ? measuredTicks(scale, xs, 44) : axis.scale === "log" ? logTicks(scale) : undefined);
  if (axis.scale === "log")
    return {...out, type: "logarithmic", min: xs[0] / 1.04, max: xs[xs.length - 1] * 1.04, afterBuildTicks: tick};
  return {...out, type: "linear", afterBuildTicks: tick};
}

const stateTexts = {
  refused: "some requests were refused",
  unsound: "blocks were corrupt or misaligned",
  lost: "lost",
};

// What the mouse is told about a point, line by line.
function pointText(view, dot) {
  const at = xText(view.x, dot.x);
  const unit = view.x.unit && !at.includes(" ") ? " " + view.x.unit : "";
  const lines = [`${axisTitle(view.y)}: ${numberText(dot.y)}`];
  if (at) lines.push(`${view.x.name || "at"}: ${at}${unit}`);
  if (dot.most > dot.least) lines.push(`repeats: ${numberText(dot.least)} to ${numberText(dot.most)}`);
  if (dot.state) lines.push(stateTexts[dot.state]);
  return lines;
}

function tooltip(view) {
  return {
    padding: 10,
    caretPadding: 8,
    displayColors: false,
    callbacks: {
      title: (items) => items.map((item) => item.dataset.label).join(", "),
      label: (item) => pointText(view, item.raw.dot),
    },
  };
}

function lineSet(curve, view) {
  const colour = colourOf(curve.look),
    paper = themeColour("paper");
  const dots = curve.dots.filter((dot) => shown(view.x, dot.x));
  const stride = dots.length > 40 ? Math.floor(dots.length / 12) : 1; // or markers hide the curve
  const background = dots.map((dot) => (dot.state ? paper : colour));
  const upright = pointStyles[curve.look[1]] === "line";
  return {
    label: curve.name,
    look: curve.look,
    borderColor: colour,
    borderDash: dashOf(curve.look),
    borderWidth: 1.9,
    clip: 12,
    pointStyle: pointStyles[curve.look[1]],
    pointRotation: upright ? 90 : 0,
    pointRadius: dots.map((dot, i) => (i % stride && !dot.state ? 0 : 4)),
    pointHoverRadius: 6,
    pointBackgroundColor: background,
    usualBackground: background,
    pointBorderColor: colour,
    pointBorderWidth: upright ? 3 : data.palette.markers[curve.look[1]].open ? 2 : 1.4,
    pointHoverBorderWidth: 2,
    data: dots.map((dot) => ({x: dot.x, y: shown(view.y, dot.y) ? dot.y : null, dot})),
  };
}

function barSet(curve, dots, point) {
  const colour = colourOf(curve.look);
  return {
    label: curve.name,
    look: curve.look,
    borderWidth: 1.2,
    borderSkipped: false,
    borderColor: dots.map((dot) => (dot.state === "unsound" || dot.state === "lost" ? themeColour("fault") : colour)),
    backgroundColor: dots.map((dot) => barFill(curve.look, dot.state)),
    data: dots.map((dot) => ({...point(dot), dot})),
  };
}

function lyingBars(view, curves) {
  const worth = (curve) => (curve.dots.length && shown(view.y, curve.dots[0].y) ? curve.dots[0].y : Infinity);
  const order = [...curves].filter((c) => c.dots.length).sort((a, b) => worth(a) - worth(b));
  const values = order.map(worth).filter(Number.isFinite);
  return {
    type: "bar",
    data: {
      datasets: order.map((curve, i) => ({
        ...barSet(curve, curve.dots, (dot) => ({x: shown(view.y, dot.y) ? dot.y : null, y: i})),
        grouped: false,
        barThickness: 15,
      })),
    },
    options: {
      indexAxis: "y",
      layout: {padding: {right: 90}},
      scales: {
        x: valueAxis(view.y, values, true),
        y: {
          type: "category",
          labels: order.map((c) => c.name),
          grid: {display: false},
          ticks: {color: themeColour("ink"), autoSkip: false},
        },
      },
    },
  };
}

function standingBars(view, curves, layers) {
  const xs = [...new Set(view.curves.flatMap((c) => c.dots.map((dot) => dot.x)))].sort((a, b) => a - b);
  const values = curves.flatMap((c) => c.dots.map((dot) => dot.y)).filter((v) => shown(view.y, v));
  const axis = {...view.x, scale: "category", categories: xs.map((x) => xText(view.x, x))};
  const y = valueAxis(layers ? {...view.y, scale: "linear"} : view.y, values, true);
  return {
    type: "bar",
    data: {
      datasets: curves.map((curve) =>
        barSet(curve, curve.dots, (dot) => ({x: xs.indexOf(dot.x), y: shown(view.y, dot.y) ? dot.y : null})),
      ),
    },
    options: {stacked: layers, scales: {x: {...xAxis(axis, view), stacked: layers}, y: {...y, stacked: layers}}},
  };
}

function lines(view, curves) {
  const values = curves
    .flatMap((c) => c.dots.flatMap((dot) => [dot.y, dot.least, dot.most]))
    .filter((v) => v !== undefined && shown(view.y, v));
  return {
    type: "line",
    data: {datasets: curves.map((curve) => lineSet(curve, view))},
    options: {layout: {padding: {right: 16}}, scales: {x: xAxis(view.x, view), y: valueAxis(view.y, values, false)}},
  };
}

function chartConfig(view, curves) {
  const form = formOf(view);
  const config =
    form === "lying"
      ? lyingBars(view, curves)
      : form === "lines"
        ? lines(view, curves)
        : standingBars(view, curves, form === "layers");
  Object.assign(config.options, {
    responsive: true,
    maintainAspectRatio: false,
    parsing: false,
    normalized: true,
    interaction: {mode: "nearest", axis: "xy", intersect: false},
    plugins: {legend: {display: false}, tooltip: tooltip(view)},
  });
  return config;
}
