// SPDX-License-Identifier: Apache-2.0
// Elements, formatted numbers, the clipboard and files to save.

const data = JSON.parse(document.getElementById("data").textContent);

const byId = (id) => document.getElementById(id);

// make("p", {class: "soft"}, "text", element) creates an element. Attributes and children that are
// null or undefined are left out.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    // The word "false" is a value of these attributes.
    const isWord = name.startsWith("aria-") || name.startsWith("data-");
    if (value === null || value === undefined || (value === false && !isWord)) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true && !isWord ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const anchorTo = (id) =>
  make("a", {class: "anchor", href: "#" + id, "aria-label": "Link to this"}, "#");

const wide = (element) => make("div", {class: "wide", tabindex: "0"}, element);

// Makes a table with a head around an existing body; holdsNumbers(i) tells whether column i is
// right-aligned.
function frameTable(head, body, holdsNumbers = () => false, attributes = {}) {
  const cell = (text, i) =>
    make("th", {scope: "col", class: holdsNumbers(i) ? "number" : ""}, text);
  return make("table", attributes, make("thead", {}, make("tr", {}, head.map(cell))), body);
}

// The class of a state: states may consist of two words.
const classOf = (state) => state.replace(" ", "-");

// A cell is a text, [text, state], or an element.
function makeTable(head, rows, numbersFrom = 1) {
  const side = (i) => (i >= numbersFrom ? "number" : "");
  const cell = (content, i) =>
    Array.isArray(content)
      ? make("td", {class: side(i) + " " + classOf(content[1])}, content[0])
      : make("td", {class: side(i)}, content);
  const lines = rows.map((row) => make("tr", {}, row.map(cell)));
  return frameTable(head, make("tbody", {}, lines), (i) => i >= numbersFrom);
}

const superscript = (n) => String(n).replace(/[-\d]/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻");

// Three significant digits; integers in full. As short_number() in tools/chart/scale.hpp.
function numberText(v) {
  if (v === null || !Number.isFinite(v)) return "–";
  const size = Math.abs(v);
  if (Number.isInteger(v) && size < 1e9) return v.toLocaleString("en");
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return v.toExponential(2);
  if (size >= 999.5)
    return Number(v.toPrecision(4)).toLocaleString("en", {maximumFractionDigits: 0});
  return String(Number(v.toPrecision(3)));
}

function tickText(v, axis) {
  if (axis.unit === "B" && v >= 1024 && v % 1024 === 0) {
    const power = Math.min(Math.floor(Math.log2(v) / 10), 4);
    return numberText(v / 1024 ** power) + " " + ["", "KiB", "MiB", "GiB", "TiB"][power];
  }
  if (axis.scale !== "log") return numberText(v);
  if (v >= 2 ** 14 && Number.isInteger(Math.log2(v))) return "2" + superscript(Math.log2(v));
  const power = Math.round(Math.log10(v));
  if ((v >= 1e4 || (v > 0 && v < 1e-3)) && Math.abs(v / 10 ** power - 1) < 1e-9)
    return "10" + superscript(power);
  return numberText(v);
}

const axisTitle = (axis) => (axis.unit ? `${axis.name} [${axis.unit}]` : axis.name);
const xText = (axis, x) => (axis.scale === "category" ? axis.categories[x] : tickText(x, axis));

let noticeTimer = 0;
function notify(text) {
  const place = byId("notice");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => place.classList.remove("shown"), 1600);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard API is not available to pages that are opened from a file.
    const area = make("textarea", {}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  notify("Copied");
}

const commandLine = (text) =>
  make(
    "div",
    {class: "command"},
    make("code", {}, text),
    make(
      "button",
      {type: "button", "aria-label": "Copy the command", onclick: () => copy(text)},
      "Copy",
    ),
  );

function save(name, blob) {
  const link = make("a", {href: URL.createObjectURL(blob), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
