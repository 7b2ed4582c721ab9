// SPDX-License-Identifier: Apache-2.0
// Puts the page together; the buttons of the backends.

const chosenBackends = new Set(data.backends.map((_, i) => i));

// What names its backends is shown while one of them is chosen; what names none, always.
function filterBackends() {
  for (const element of document.querySelectorAll("[data-backends]")) {
    const named = element.dataset.backends.split(" ").filter(Boolean).map(Number);
    element.hidden = named.length > 0 && !named.some((m) => chosenBackends.has(m));
  }
  for (const section of document.querySelectorAll(".experiment"))
    section.hidden = !section.querySelector(".figure:not([hidden])");
  for (const entry of document.querySelectorAll("#contents li[data-for]"))
    entry.hidden = byId(entry.dataset.for).hidden;
  byId("nobody").hidden = chosenBackends.size > 0;
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
          chosenBackends.has(i) ? chosenBackends.delete(i) : chosenBackends.add(i);
          button.setAttribute("aria-pressed", chosenBackends.has(i));
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
            onclick: () => save(`heap-${map.allocator}.svg`, new Blob([map.svg], {type: "image/svg+xml"})),
          },
          "SVG",
        ),
      ),
    ),
  );
  byId("maps").append(make("h2", {}, "Heaps from inside", anchorTo("maps")), make("div", {class: "maps"}, pictures));
}

// Experiments under the names of their groups, where they have one.
function contents() {
  const entry = (id, text) => make("li", {"data-for": id}, make("a", {href: "#" + id}, text));
  const own = [
    ["choice", "Which allocator for which work"],
    ["claims", "What the papers claim"],
  ].filter(([id]) => byId(id).children.length);
  const maps = byId("maps").children.length ? [entry("maps", "Heaps from inside")] : [];
  const entries = data.experiments.flatMap((experiment, i) => {
    const isFirst = experiment.group && (i === 0 || data.experiments[i - 1].group !== experiment.group);
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
  `${data.points.toLocaleString("en")} points of ${data.experiments.length} experiments` +
  (data.replaced ? `; ${data.replaced.toLocaleString("en")} older ones were measured again and are left out` : "") +
  `. Page made ${data.made}.`;
theme.start();
byId("runs").append(runsTable());
backendButtons();
choiceSection(filterBackends);
claimsSection();
byId("experiments").append(...data.experiments.map(experimentSection));
mapsSection();
contents();
filterBackends();
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
