// SPDX-License-Identifier: Apache-2.0
// The tables before the figures: runs, rankings, claims.

const shortDate = (date) => date.slice(0, 16).replace("T", " ");

function runsTable() {
  const rows = data.runs.map((run) =>
    make(
      "tr",
      {"data-backends": run.backend},
      [
        data.backends[run.backend].label,
        run.driver,
        run.cuda,
        run.compiler,
        run.commit,
        [...new Set([run.first, run.last].map(shortDate))].filter(Boolean).join(" – "),
      ].map((text) => make("td", {}, text)),
      make("td", {class: "number"}, run.points.toLocaleString("en")),
    ),
  );
  const head = ["backend", "driver", "CUDA", "compiler", "commit", "measured (UTC)", "data points"];
  return wide(frameTable(head, make("tbody", {}, rows), (i) => i === 6));
}

// The entries after the first two, folded.
function others(ranking) {
  const rest = ranking.complete.slice(2);
  const part = ranking.partial.map((s) =>
    make(
      "li",
      {class: "soft"},
      `${s.series}: ${s.text}, partial (${s.at} of ${ranking.of} x values)`,
    ),
  );
  const items = rest.map((s) => make("li", {}, `${s.series}: ${s.text}`)).concat(part);
  if (!items.length) return "–";
  const last = rest.length
    ? `${rest.length} more, up to ${rest[rest.length - 1].text}`
    : `${part.length} partial`;
  return make("details", {}, make("summary", {}, last), make("ol", {start: 3}, items));
}

function rankingRows(field) {
  return data.rankings[field].workloads.map((ranking) => {
    const [best, next] = ranking.complete;
    return make(
      "tr",
      {"data-backends": ranking.backend, "data-main": ranking.main},
      make("td", {}, make("a", {href: "#" + ranking.anchor}, ranking.title)),
      make("td", {}, data.backends[ranking.backend].label),
      make("td", {}, ranking.measure),
      make(
        "td",
        {},
        best
          ? make("span", {class: "best"}, best.series)
          : make("span", {class: "soft"}, "no allocator completed it"),
      ),
      make("td", {}, next ? `${next.series} (${next.text})` : "–"),
      make("td", {}, others(ranking)),
      make(
        "td",
        {class: ranking.unsound.length ? "unsound" : ""},
        ranking.unsound.join(", ") || "–",
      ),
    );
  });
}

const shownOverall = 8;

function overallTable(summary) {
  const row = (o) => [
    o.allocator,
    o.text,
    `${o.experiments} of ${summary.experiments}`,
    String(o.best),
    o.unsound ? [String(o.unsound), "unsound"] : "0",
  ];
  const head = ["allocator", "mean slowdown", "experiments", "first in", "faults in"];
  const folded = (text, list) =>
    list.length
      ? make(
          "details",
          {},
          make("summary", {}, `${text} (${list.length})`),
          wide(makeTable(head, list.map(row))),
        )
      : null;
  return make(
    "div",
    {"data-backends": summary.backend},
    make("h3", {}, `All experiments: ${data.backends[summary.backend].label}`),
    wide(makeTable(head, summary.in_most.slice(0, shownOverall).map(row))),
    folded("Other allocators", summary.in_most.slice(shownOverall)),
    folded("Measured in less than half of the experiments", summary.in_few),
  );
}

function rankingsSection(refilter) {
  const place = byId("rankings");
  if (!data.rankings.all.workloads.length) return;
  const body = make("tbody", {}),
    overall = make("div", {id: "overall"});
  const field = make(
    "select",
    {"aria-label": "Compared allocators"},
    make("option", {value: "general"}, "general-purpose allocators"),
    make("option", {value: "all"}, "all allocators"),
  );
  const every = make("input", {type: "checkbox", id: "every-measure"});
  const fill = () => {
    body.replaceChildren(
      ...rankingRows(field.value).filter((row) => every.checked || row.dataset.main === "true"),
    );
    overall.replaceChildren(...data.rankings[field.value].overall.map(overallTable));
    refilter();
  };
  field.addEventListener("change", fill);
  every.addEventListener("change", fill);
  const head = ["workload", "backend", "measure", "first", "second", "others", "faults"];
  place.append(
    make("h2", {}, "Best allocator per workload", anchorTo("rankings")),
    make(
      "p",
      {class: "soft"},
      "Allocators that lost a data point, or returned corrupt or misaligned blocks, are not " +
        "ranked; the last column names them. A slowdown is the geometric mean, over all x " +
        "values, of a value divided by that of the first. " +
        "General-purpose allocators free single blocks and never return memory in use.",
    ),
    make(
      "div",
      {class: "pick"},
      make("label", {}, "Compare ", field),
      make("label", {}, every, " every measure"),
    ),
    wide(frameTable(head, body, () => false, {id: "ranking-table"})),
    make(
      "p",
      {class: "soft"},
      "All experiments: the geometric mean of these slowdowns over the experiments in which an " +
        "allocator is ranked, by the first measure of each.",
    ),
    overall,
  );
  fill();
}

function claimsSection() {
  if (!data.claims.length) return;
  const value = (text, unit) =>
    text === "" ? "–" : unit === "x" ? `${text} ×` : `${text} ${unit}`.trim();
  const rows = data.claims.map((claim) =>
    make(
      "tr",
      {"data-backends": claim.backends.join(" ")},
      [claim.source, claim.claim].map((text) => make("td", {}, text)),
      make("td", {class: "number"}, value(claim.paper, claim.unit)),
      make("td", {class: "number"}, make("b", {}, value(claim.ours, claim.unit))),
      make("td", {class: "number"}, claim.ratio === null ? "–" : numberText(claim.ratio)),
      make("td", {}, claim.backends.map((m) => data.backends[m].label).join(", ")),
      make("td", {class: "soft"}, claim.how),
    ),
  );
  const head = [
    "paper",
    "claim",
    "published",
    "measured",
    "measured / published",
    "backend",
    "method",
  ];
  byId("claims").append(
    make("h2", {}, "Claims of the papers and measured values", anchorTo("claims")),
    wide(frameTable(head, make("tbody", {}, rows), (i) => i > 1 && i < 5)),
  );
}
