// SPDX-License-Identifier: Apache-2.0
// One experiment on one backend: its chart, legend, what went wrong, the commands, the numbers.

// Figures are drawn when they come into sight: a page may have a hundred.
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        entry.target.drawFigure();
      }
  },
  {rootMargin: "400px"},
);

class Figure {
  constructor(experiment, figure) {
    this.experiment = experiment;
    this.figure = figure;
    this.hidden = new Set(); // names of curves
    this.view = figure.views[0];
    this.seen = false;
    this.canvas = make("canvas", {role: "img"});
    this.box = make("div", {class: "canvas"}, this.canvas);
    this.legend = make("ul", {class: "legend", "aria-label": "Curves"});
    this.key = make("p", {class: "key"});
    this.numbers = make("div", {});
  }

  get curves() {
    return this.view.curves.filter((curve) => !this.hidden.has(curve.name));
  }

  draw() {
    const lying = formOf(this.view) === "lying";
    this.box.style.height = lying ? `${70 + 24 * Math.max(this.curves.length, 2)}px` : "";
    if (!this.seen) return; // the place is kept all the same
    if (this.chart) this.chart.destroy();
    this.canvas.setAttribute(
      "aria-label",
      `${this.experiment.title}: ${axisTitle(this.view.y)}; the numbers are in the table below`,
    );
    this.chart = new Chart(this.canvas, chartConfig(this.view, this.curves));
  }

  choose(view) {
    this.view = view;
    for (const button of this.viewButtons) button.setAttribute("aria-pressed", button.view === view);
    this.fillLegend();
    this.fillKey();
    this.numbers.replaceChildren(wide(makeTable(view.grid.head, view.grid.rows)));
    this.draw();
  }

  show(names, visible) {
    for (const name of names) visible ? this.hidden.delete(name) : this.hidden.add(name);
    for (const button of this.legend.querySelectorAll("button[data-name]"))
      button.setAttribute("aria-pressed", !this.hidden.has(button.dataset.name));
    this.draw();
  }

  // One curve strong, the others pale; null: all as usual.
  spot(name) {
    if (!this.chart || this.chart.config.type !== "line") return;
    for (const set of this.chart.data.datasets) {
      const pale = name !== null && set.label !== name;
      set.borderColor = set.pointBorderColor = pale ? faded(colourOf(set.look), 0.15) : colourOf(set.look);
      set.pointBackgroundColor = pale ? "transparent" : set.usualBackground;
      set.borderWidth = set.label === name ? 3.5 : 1.9;
    }
    this.chart.update();
  }

  fillLegend() {
    const names = this.view.curves.map((curve) => curve.name);
    const one = (curve) => {
      const button = make(
        "button",
        {
          type: "button",
          "data-name": curve.name,
          "aria-pressed": !this.hidden.has(curve.name),
          title: "Click: show or hide. Double click: this one alone.",
          onclick: () => this.show([curve.name], this.hidden.has(curve.name)),
          onmouseenter: () => this.spot(this.hidden.has(curve.name) ? null : curve.name),
          onmouseleave: () => this.spot(null),
          ondblclick: () => {
            this.show(names, false);
            this.show([curve.name], true);
          },
        },
        swatch(curve.look, formOf(this.view) !== "lines"),
        curve.name,
      );
      return make("li", {}, button);
    };
    const all = (text, visible) =>
      make("li", {}, make("button", {type: "button", class: "act", onclick: () => this.show(names, visible)}, text));
    this.legend.replaceChildren(
      ...this.view.curves.map(one),
      ...(names.length > 3 ? [all("all", true), all("none", false)] : []),
    );
  }

  // Explains only the signs that this view has.
  fillKey() {
    const states = new Set(this.view.curves.flatMap((curve) => curve.dots.map((dot) => dot.state)));
    const parts = [];
    const sign = (mark, text) => parts.push(make("span", {}, mark ? make("b", {}, mark) : null, text));
    if (states.has("lost")) sign("✕", " lost");
    if (states.has("unsound")) sign("◯", " corrupt or misaligned blocks");
    if (states.has("refused")) sign(null, "hollow: some requests refused");
    if (this.view.not_shown) sign(null, `${this.view.not_shown} points are zero and have no place on this axis`);
    this.key.replaceChildren(...parts);
    this.key.hidden = parts.length === 0;
  }

  views() {
    this.viewButtons = this.figure.views.map((view) => {
      const button = make(
        "button",
        {type: "button", "data-field": view.field, onclick: () => this.choose(view)},
        view.y.name,
      );
      button.view = view;
      return button;
    });
    return make(
      "div",
      {class: "views", role: "group", "aria-label": "What is shown", hidden: this.viewButtons.length < 2},
      this.viewButtons,
    );
  }

  tools() {
    const name = () => `${this.figure.anchor}--${this.view.field}`;
    const picture = () =>
      svgOf(
        this.chart,
        this.experiment.title,
        [this.experiment.source, data.backends[this.figure.backend].label].filter(Boolean).join("; "),
      );
    const button = (text, action) => make("button", {type: "button", "data-export": text, onclick: action}, text);
    const csv = button("CSV", () =>
      save(this.figure.anchor + ".csv", new Blob([csvOf(this.experiment, this.figure)], {type: "text/csv"})),
    );
    if (this.experiment.form === "table") return make("div", {class: "tools"}, csv);
    return make(
      "div",
      {class: "tools"},
      button("PNG", async () => save(name() + ".png", await pngOf(picture()))),
      button("SVG", () => save(name() + ".svg", new Blob([picture().text], {type: "image/svg+xml"}))),
      csv,
    );
  }

  element() {
    const where = data.backends[this.figure.backend].label;
    const head = make("div", {class: "head"}, make("h3", {}, where, anchorTo(this.figure.anchor)));
    const whole = make(
      "article",
      {class: "figure", id: this.figure.anchor, "data-backends": this.figure.backend},
      head,
    );
    if (this.experiment.form === "table") {
      head.append(this.tools());
      whole.append(wide(makeTable(this.figure.grid.head, this.figure.grid.rows, 2)));
    } else {
      head.append(this.views(), this.tools());
      whole.append(this.box, this.legend, this.key);
      this.choose(this.view);
      this.box.drawFigure = () => {
        this.seen = true;
        this.draw();
      };
      watcher.observe(this.box);
      theme.listeners.push(() => {
        this.fillLegend();
        this.draw();
      });
    }
    whole.append(...remarksOf(this.figure), ...commandsOf(this.figure));
    if (this.experiment.form !== "table")
      whole.append(make("details", {class: "numbers"}, make("summary", {}, "Numbers"), this.numbers));
    return whole;
  }
}

// What went wrong is open to see; what an allocator was never asked to do is folded.
function remarksOf(figure) {
  const line = (remark) =>
    make(
      "li",
      {},
      make("span", {class: "tag " + remark.state}, remark.series),
      `: ${remark.what}`,
      remark.at.some(Boolean) ? ` (${remark.at.join("; ")})` : "",
    );
  const folded = {skipped: "Not asked for", "given up": "Given up, too slow"};
  const wrong = figure.remarks.filter((remark) => !(remark.state in folded));
  const out = [];
  if (wrong.length) {
    const words = {lost: "lost", unsound: "unsound", refused: "with refused requests"};
    const counts = Object.entries(words)
      .map(([state, text]) => [wrong.filter((r) => r.state === state).length, text])
      .filter(([n]) => n > 0)
      .map(([n, text]) => `${n} ${text}`);
    out.push(
      make(
        "div",
        {class: "remarks" + (wrong.some((r) => r.state !== "refused") ? " fault" : "")},
        make("strong", {}, `Not as it should be: ${counts.join(", ")}`),
        make("ul", {tabindex: "0"}, wrong.map(line)),
      ),
    );
  }
  for (const [state, title] of Object.entries(folded)) {
    const some = figure.remarks.filter((remark) => remark.state === state);
    if (!some.length) continue;
    out.push(
      make(
        "details",
        {class: "skipped"},
        make("summary", {}, `${title} (${some.length})`),
        make("ul", {}, some.map(line)),
      ),
    );
  }
  return out;
}

function commandsOf(figure) {
  if (!figure.commands.length) return [];
  const each = figure.commands.flatMap(({series, commands}) => [
    make("span", {class: "name"}, series),
    make("div", {}, commands.map(commandLine)),
  ]);
  return [
    make(
      "details",
      {class: "by-command"},
      make("summary", {}, "Commands behind the curves"),
      figure.command.length <= 4 && figure.commands.length > 1
        ? make(
            "div",
            {},
            make("p", {class: "soft"}, "All of them:"),
            figure.command.map(commandLine),
            make("p", {class: "soft"}, "One by one:"),
          )
        : null,
      make("div", {class: "commands"}, each),
    ),
  ];
}
