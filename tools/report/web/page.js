// SPDX-License-Identifier: Apache-2.0
// Assembles the page; the buttons that select backends.

const selectedBackends = new Set(data.backends.map((_, i) => i));

// An element that names backends is shown while one of these backends is selected. An element that
// names no backend is always shown.
function filterBackends() {
  for (const element of document.querySelectorAll("[data-backends]")) {
    const named = element.dataset.backends.split(" ").filter(Boolean).map(Number);
    element.hidden = named.length > 0 && !named.some((m) => selectedBackends.has(m));
  }
  for (const section of document.querySelectorAll(".experiment"))
    section.hidden = !section.querySelector(".figure:not([hidden])");
  for (const entry of document.querySelectorAll("#contents li[data-for]"))
    entry.hidden = byId(entry.dataset.for).hidden;
  byId("no-backend").hidden = selectedBackends.size > 0;
}

function backendButtons() {
  data.backends.forEach((backend, i) => {
    const button = make(
      "button",
      {
        type: "button",
        "aria-pressed": "true",
        "data-backend": i,
        onclick: () => {
          selectedBackends.has(i) ? selectedBackends.delete(i) : selectedBackends.add(i);
          button.setAttribute("aria-pressed", selectedBackends.has(i));
          filterBackends();
        },
      },
      backend.label,
    );
    byId("backends").append(button);
  });
}

function experimentSection(experiment) {
  const id = "experiment-" + experiment.id;
  return make(
    "section",
    {class: "experiment", id},
    make("h2", {}, experiment.title, anchorTo(id)),
    experiment.source ? make("p", {class: "soft"}, experiment.source) : null,
    experiment.note ? make("p", {}, experiment.note) : null,
    experiment.figures.map((figure) => new Figure(experiment, figure).element()),
  );
}

function mapsSection() {
  if (!data.maps.length) return;
  const pictures = data.maps.map((map) =>
    make(
      "figure",
      {"data-backends": map.backends.join(" ")},
      make("img", {
        src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(map.svg),
        alt: `${map.title}: a map of the heap`,
      }),
      make(
        "figcaption",
        {},
        map.title || map.allocator,
        " ",
        make(
          "button",
          {
            type: "button",
            onclick: () =>
              save(`heap-${map.allocator}.svg`, new Blob([map.svg], {type: "image/svg+xml"})),
          },
          "SVG",
        ),
      ),
    ),
  );
  byId("maps").append(
    make("h2", {}, "Heap maps", anchorTo("maps")),
    make("div", {class: "maps"}, pictures),
  );
}

// Experiments below the names of their groups.
function contents() {
  const entry = (id, text) => make("li", {"data-for": id}, make("a", {href: "#" + id}, text));
  const own = [
    ["rankings", "Best allocator per workload"],
    ["claims", "Claims of the papers"],
  ].filter(([id]) => byId(id).children.length);
  const maps = byId("maps").children.length ? [entry("maps", "Heap maps")] : [];
  const entries = data.experiments.flatMap((experiment, i) => {
    const isFirst =
      experiment.group && (i === 0 || data.experiments[i - 1].group !== experiment.group);
    return [
      isFirst ? make("li", {class: "group"}, experiment.group) : null,
      entry("experiment-" + experiment.id, experiment.title),
    ];
  });
  byId("contents").append(
    make(
      "ul",
      {},
      own.map(([id, text]) => entry(id, text)),
      entries,
      maps,
    ),
  );
}

byId("title").textContent = data.title;
byId("about").textContent =
  `${data.points.toLocaleString("en")} data points of ${data.experiments.length} experiments` +
  (data.replaced
    ? `; ${data.replaced.toLocaleString("en")} older data points are replaced by newer ones`
    : "") +
  `. Page generated ${data.made}.`;
theme.start();
byId("runs").append(runsTable());
backendButtons();
rankingsSection(filterBackends);
claimsSection();
byId("experiments").append(...data.experiments.map(experimentSection));
mapsSection();
contents();
filterBackends();
if (location.hash)
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
