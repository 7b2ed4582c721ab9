// SPDX-License-Identifier: Apache-2.0
// The tables before the figures: runs, which allocator for which work, claims.

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
  const head = ["backend", "driver", "CUDA", "compiler", "commit", "measured (UTC)", "points"];
  return wide(frameTable(head, make("tbody", {}, rows), (i) => i === 6));
}

// The rest after the first two, folded.
function others(work) {
  const rest = work.whole.slice(2);
  const part = work.in_part.map((s) =>
    make("li", {class: "soft"}, `${s.series}: ${s.text} in part (${s.at} of ${work.of})`),
  );
  const items = rest.map((s) => make("li", {}, `${s.series}: ${s.text}`)).concat(part);
  if (!items.length) return "–";
  const last = rest.length ? `${rest.length} more, up to ${rest[rest.length - 1].text}` : `${part.length} in part`;
  return make("details", {}, make("summary", {}, last), make("ol", {start: 3}, items));
}

function workRows(who) {
  return data.choice[who].work.map((work) => {
    const [best, next] = work.whole;
    return make(
      "tr",
      {"data-backends": work.backend, "data-main": work.main},
      make("td", {}, make("a", {href: "#" + work.anchor}, work.title)),
      make("td", {}, data.backends[work.backend].label),
      make("td", {}, work.measure),
      make(
        "td",
        {},
        best ? make("span", {class: "best"}, best.series) : make("span", {class: "soft"}, "nobody did all of it"),
      ),
      make("td", {}, next ? `${next.series} (${next.text})` : "–"),
      make("td", {}, others(work)),
      make("td", {class: work.unsound.length ? "unsound" : ""}, work.unsound.join(", ") || "–"),
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
  const head = ["allocator", "mean slowdown", "experiments", "best in", "lost or wrong in"];
  const folded = (text, list) =>
    list.length
      ? make("details", {}, make("summary", {}, `${text} (${list.length})`), wide(makeTable(head, list.map(row))))
      : null;
  return make(
    "div",
    {"data-backends": summary.backend},
    make("h3", {}, `Over all: ${data.backends[summary.backend].label}`),
    wide(makeTable(head, summary.often.slice(0, shownOverall).map(row))),
    folded("The others", summary.often.slice(shownOverall)),
    folded("In less than half of the experiments", summary.seldom),
  );
}

function choiceSection(refilter) {
  const place = byId("choice");
  if (!data.choice.everyone.work.length) return;
  const body = make("tbody", {}),
    overall = make("div", {id: "overall"});
  const who = make(
    "select",
    {"aria-label": "Among"},
    make("option", {value: "general"}, "those that free single blocks"),
    make("option", {value: "everyone"}, "all allocators"),
  );
  const every = make("input", {type: "checkbox", id: "every-measure"});
  const fill = () => {
    body.replaceChildren(...workRows(who.value).filter((row) => every.checked || row.dataset.main === "true"));
    overall.replaceChildren(...data.choice[who.value].overall.map(overallTable));
    refilter();
  };
  who.addEventListener("change", fill);
  every.addEventListener("change", fill);
  const head = ["work", "backend", "measure", "best", "next", "the others", "lost or wrong"];
  place.append(
    make("h2", {}, "Which allocator for which work", anchorTo("choice")),
    make(
      "p",
      {class: "soft"},
      "Sound allocators only: what lost a point, or had corrupt or misaligned blocks, is named in the last column. " +
        "How far others are behind is the geometric mean over the figure of their value to the best one's.",
    ),
    make("div", {class: "pick"}, make("label", {}, "Among ", who), make("label", {}, every, " every measure")),
    wide(frameTable(head, body, () => false, {id: "work"})),
    make(
      "p",
      {class: "soft"},
      "Over all: the geometric mean of these slowdowns over the experiments that an allocator took part in, by the main measure of each.",
    ),
    overall,
  );
  fill();
}

function claimsSection() {
  if (!data.claims.length) return;
  const value = (text, unit) => (text === "" ? "–" : unit === "x" ? `${text} ×` : `${text} ${unit}`.trim());
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
  const head = ["paper", "claim", "there", "here", "here / there", "backend", "how"];
  byId("claims").append(
    make("h2", {}, "What the papers claim, and what is measured here", anchorTo("claims")),
    wide(frameTable(head, make("tbody", {}, rows), (i) => i > 1 && i < 5)),
  );
}
