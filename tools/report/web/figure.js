// SPDX-License-Identifier: Apache-2.0
// One experiment on one backend: chart, legend, remarks, commands and numbers.

// A picture enters the page when the reader scrolls near it: a page may have a hundred figures.
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
    this.box = make("div", {class: "picture", role: "img"});
    this.legend = make("ul", {class: "legend", "aria-label": "Curves"});
    this.key = make("p", {class: "key"});
    this.numbers = make("div", {});
  }

  draw() {
    if (!this.seen) return;
    this.box.setAttribute(
      "aria-label",
      `${this.experiment.title}: ${axisTitle(this.view.y)}; the numbers are in the table below`,
    );
    this.picture = new ChartPicture(this.view, this.box);
    this.fillLegend();
    this.applyFilter();
  }

  applyFilter() {
    const names = this.view.curves
      .map((curve) => curve.name)
      .filter((name) => !this.hidden.has(name));
    if (this.picture) this.picture.show(new Set(names));
  }

  choose(view) {
    this.view = view;
    for (const button of this.viewButtons)
      button.setAttribute("aria-pressed", button.view === view);
    this.fillKey();
    this.numbers.replaceChildren(wide(makeTable(view.grid.head, view.grid.rows)));
    this.draw();
  }

  show(names, visible) {
    for (const name of names) visible ? this.hidden.delete(name) : this.hidden.add(name);
    for (const button of this.legend.querySelectorAll("button[data-name]"))
      button.setAttribute("aria-pressed", !this.hidden.has(button.dataset.name));
    this.applyFilter();
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
          title: "Click: show or hide. Double click: show only this curve.",
          onclick: () => this.show([curve.name], this.hidden.has(curve.name)),
          onmouseenter: () => this.picture.spot(this.hidden.has(curve.name) ? null : curve.name),
          onmouseleave: () => this.picture.spot(null),
          ondblclick: () => {
            this.show(names, false);
            this.show([curve.name], true);
          },
        },
        sampleOf(this.picture.curves.find((group) => group.dataset.name === curve.name)),
        curve.name,
      );
      return make("li", {}, button);
    };
    const all = (text, visible) =>
      make(
        "li",
        {},
        make(
          "button",
          {type: "button", class: "act", onclick: () => this.show(names, visible)},
          text,
        ),
      );
    this.legend.replaceChildren(
      ...this.view.curves.map(one),
      ...(names.length > 3 ? [all("all", true), all("none", false)] : []),
    );
  }

  // Explains the signs that occur in this view.
  fillKey() {
    const states = new Set(
      this.view.curves.flatMap((curve) => curve.points.map((point) => point.state)),
    );
    const parts = [];
    const sign = (mark, text) =>
      parts.push(make("span", {}, mark ? make("b", {}, mark) : null, text));
    if (states.has("lost")) sign("✕", " lost");
    if (states.has("unsound")) sign("◯", " corrupt or misaligned blocks");
    if (states.has("failed allocations")) sign(null, "hollow: some allocations failed");
    if (this.view.not_shown)
      sign(null, `${this.view.not_shown} points are zero, which a logarithmic axis cannot show`);
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
      {
        class: "views",
        role: "group",
        "aria-label": "Measures",
        hidden: this.viewButtons.length < 2,
      },
      this.viewButtons,
    );
  }

  tools() {
    const name = () => `${this.figure.anchor}--${this.view.field}`;
    const picture = () => this.picture.exported();
    const button = (text, action) =>
      make("button", {type: "button", "data-export": text, onclick: action}, text);
    const csv = button("CSV", () =>
      save(
        this.figure.anchor + ".csv",
        new Blob([csvOf(this.experiment, this.figure)], {type: "text/csv"}),
      ),
    );
    if (this.experiment.form === "table") return make("div", {class: "tools"}, csv);
    return make(
      "div",
      {class: "tools"},
      button("PNG", async () => save(name() + ".png", await pngOf(picture()))),
      button("SVG", () =>
        save(name() + ".svg", new Blob([picture().text], {type: "image/svg+xml"})),
      ),
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
    }
    whole.append(...remarksOf(this.figure), ...commandsOf(this.figure));
    if (this.experiment.form !== "table")
      whole.append(
        make("details", {class: "numbers"}, make("summary", {}, "Numbers"), this.numbers),
      );
    return whole;
  }
}

// Faults are listed in the open; data points that were not measured on purpose are folded.
function remarksOf(figure) {
  const line = (remark) =>
    make(
      "li",
      {},
      make("span", {class: "tag " + classOf(remark.state)}, remark.series),
      `: ${remark.what}`,
      remark.at.some(Boolean) ? ` (${remark.at.join("; ")})` : "",
    );
  const folded = {
    skipped: "Not supported",
    "given up": "Not measured: time limit exceeded at a smaller x",
  };
  const wrong = figure.remarks.filter((remark) => !(remark.state in folded));
  const out = [];
  if (wrong.length) {
    const words = {
      lost: "lost",
      unsound: "unsound",
      "failed allocations": "with failed allocations",
    };
    const counts = Object.entries(words)
      .map(([state, text]) => [wrong.filter((r) => r.state === state).length, text])
      .filter(([n]) => n > 0)
      .map(([n, text]) => `${n} ${text}`);
    out.push(
      make(
        "div",
        {class: "remarks" + (wrong.some((r) => r.state !== "failed allocations") ? " fault" : "")},
        make("strong", {}, `Faults: ${counts.join(", ")}`),
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
      make("summary", {}, "Commands that measured the curves"),
      figure.command.length <= 4 && figure.commands.length > 1
        ? make(
            "div",
            {},
            make("p", {class: "soft"}, "All curves:"),
            figure.command.map(commandLine),
            make("p", {class: "soft"}, "Each curve:"),
          )
        : null,
      make("div", {class: "commands"}, each),
    ),
  ];
}
