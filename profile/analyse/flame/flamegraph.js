// SPDX-License-Identifier: GPL-2.0-or-later
// Runs in the picture: zoom, search, details. What it draws from stands before it in the file
// (flamegraph_svg.c): P the sizes, B bands, L lanes' first boxes, N names, D boxes.
var ROOM = 170, LINE = 15, TICK = 110, LEAST_WIDTH = 300;
var SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
var STRIDE = 8, COLUMN = 6.7, LEAST_COLUMNS = 5, MIN_DRAWN = 0.3, GAP = 0.6, WIDE = 3;
var count = D.length / STRIDE, X = new Float64Array(count);
var frames = get("frames"), details = get("details");
var view = [0, P.total], past = [], pattern = null, hits = null, input = null;

function get(id) { return document.getElementById(id); }
function box(i, k) { return D[i * STRIDE + k]; }
function width(i) { return box(i, 1); }
function name(i) { return N[box(i, 4)]; }

function add(parent, tag, attributes, text) {
  var e = document.createElementNS(SVG, tag);
  for (var k in attributes) e.setAttribute(k, attributes[k]);
  if (text) e.textContent = text;
  parent.appendChild(e);
  return e;
}
function empty(e) { while (e.firstChild) e.removeChild(e.firstChild); }
function show(id, on) { get(id).classList.toggle("off", !on); }

function time(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  if (ns >= 1e3) return (ns / 1e3).toFixed(3) + " us";
  return ns + " ns";
}
function percent(part) { return (100 * part / P.total).toFixed(2) + " %"; }

function describe(i) {
  var n = name(i), w = width(i), text = n[0] + (n[1] ? " (" + n[1] + ")" : "");
  if (P.chart) return text + ": " + time(w) + " from " + time(X[i]);
  text += ": " + percent(w) + ", " + (P.ns ? time(w) : w + " " + P.event);
  if (!P.counted) text += ", " + box(i, 5) + " samples";
  if (box(i, 6)) text += ", self " + percent(box(i, 6));
  if (P.diff) text += ", " + (box(i, 7) > 0 ? "+" : "") + (box(i, 7) / 1e4).toFixed(2) + " points (was " +
    (100 * w / P.total - box(i, 7) / 1e4).toFixed(2) + " %)";
  return text;
}

// As much of a text as fits; wide characters count twice.
function fit(text, pixels) {
  var columns = Math.floor(pixels / COLUMN), used = 0, cut = 0, at = 0;
  if (columns < 1) return "";
  for (var c of text) {
    var code = c.codePointAt(0);
    used += code >= 0x1100 && code != 0xfffd && !(code >= 0x2000 && code < 0x2e80) ? 2 : 1;
    at += c.length;
    if (used + 2 <= columns) cut = at;
    if (used > columns) return columns < LEAST_COLUMNS ? "" : text.slice(0, cut) + "..";
  }
  return text;
}

function scale() { return (P.width - 2 * P.margin) / (view[1] - view[0]); }

// Writes a text in as many lines as the width takes, at words. Returns the number of lines beyond the first.
function wrap(e, text, pixels) {
  var lines = 0, line = null, words = text.split(" ");
  empty(e);
  words.forEach(function (word) {
    var before = line ? line.textContent : "";
    if (line) line.textContent = before + " " + word;
    if (line && line.getComputedTextLength() <= pixels) return;
    if (line) { line.textContent = before; lines++; }
    line = add(e, "tspan", { x: P.margin, dy: lines ? LINE : 0 }, word);
    for (var n = word.length; n > 8 && line.getComputedTextLength() > pixels; ) line.textContent = word.slice(0, n -= 4) + "..";
  });
  return lines;
}

// Puts each entry of the legend behind the one before it, or below. Returns the number of rows beyond the first.
function drawLegend(down) {
  var x = P.margin, rows = 0, entries = get("legend").childNodes;
  for (var i = 0; i < entries.length; i++) {
    var g = entries[i];
    if (!g.getBBox) continue;
    var r = g.getBBox();
    if (x > P.margin && x + r.width > P.width - P.margin - ROOM) { x = P.margin; rows++; }
    g.setAttribute("transform", "translate(" + (x - r.x) + "," + (down + rows * LINE) + ")");
    x += r.width + 14;
  }
  return rows;
}

function place(id, x, y) {
  get(id).setAttribute("x", x);
  if (y) get(id).setAttribute("y", y);
}

// Fits the head and the foot to the width. What takes more lines moves the frames down.
function drawSheet() {
  var svg = get("kvmprof"), space = P.width - 2 * P.margin, title = get("title"), cut = P.title, down, more;
  place("back", P.width - 240);
  place("reset", P.width - 190);
  place("search", P.width - P.margin);
  title.textContent = cut;
  while (cut.length > 8 && title.getComputedTextLength() > P.width - 260) title.textContent = (cut = cut.slice(0, -2)) + "..";
  down = LINE * wrap(get("subtitle"), P.subtitle, space);
  place("matched", P.width - P.margin, 64 + down);
  down += LINE * drawLegend(down);
  get("body").setAttribute("transform", "translate(0," + down + ")");
  more = LINE * wrap(get("note"), P.note, space);
  [svg, get("ground")].forEach(function (e) {
    e.setAttribute("width", P.width);
    e.setAttribute("height", P.height + down + more);
  });
  svg.setAttribute("viewBox", "0 0 " + P.width + " " + (P.height + down + more));
}

// The width of the window, unless another one was asked for.
function resize() {
  var width = document.documentElement.clientWidth || window.innerWidth;
  if (P.fixed || !width) return;
  P.width = Math.max(LEAST_WIDTH, width);
}

// The roots stand at the bottom of a graph: that is where its reader begins.
function showRoots() {
  var bottom = get("kvmprof").getBoundingClientRect().bottom;
  if (P.up && bottom > window.innerHeight) window.scrollBy(0, bottom - window.innerHeight);
}

// What lies outside of the view is cut off.
function drawBox(i, perUnit, into) {
  var from = Math.max(X[i], view[0]), to = Math.min(X[i] + width(i), view[1]);
  var w = (to - from) * perUnit, x = P.margin + (from - view[0]) * perUnit, y = P.top + box(i, 2) * P.row;
  if (to <= from || w < MIN_DRAWN) return;
  var dim = !P.chart && view[1] - view[0] < width(i) ? " dim" : "";
  add(into, "rect", { "class": (hits && hits[i] ? "hit" : "c" + box(i, 3)) + dim, "data-i": i,
    x: x.toFixed(2), y: y, width: (w > WIDE ? w - GAP : w).toFixed(2), height: P.row - 1 });
  var text = fit(name(i)[0], w - 6);
  if (text) add(into, "text", { x: (x + 3).toFixed(2), y: y + 11 }, text);
}

function drawBands(perUnit) {
  var bands = get("bands"), axis = get("axis");
  empty(bands);
  empty(axis);
  B.forEach(function (b) {
    var from = Math.max(b[0], view[0]), to = Math.min(b[1], view[1]);
    var x = P.margin + (from - view[0]) * perUnit, w = (to - from) * perUnit;
    if (to <= from) return;
    var g = add(bands, "g", {});
    add(g, "title", {}, b[3] + ": " + time(b[1] - b[0]) + " from " + time(b[0]));
    add(g, "rect", { "class": "p" + b[2], x: x.toFixed(2), y: P.bandTop, width: w.toFixed(2), height: 18 });
    add(g, "text", { x: (x + 4).toFixed(2), y: P.bandTop + 13 }, fit(b[3], w - 8));
  });
  if (!P.chart) return;
  var raw = TICK / perUnit, unit = Math.pow(10, Math.floor(Math.log10(raw)));
  var step = unit * (raw <= unit ? 1 : raw <= 2 * unit ? 2 : raw <= 5 * unit ? 5 : 10);
  for (var t = Math.ceil(view[0] / step); t * step <= view[1]; t++) {
    var at = P.margin + (t * step - view[0]) * perUnit;
    add(axis, "line", { x1: at, x2: at, y1: P.axisTop, y2: P.top - 2 });
    var label = add(axis, "text", { x: at + 3, y: P.axisTop + 12 }, +(t * step / 1e9).toPrecision(9) + " s");
    if (at + 3 + label.getComputedTextLength() > P.width) axis.removeChild(label);
  }
}

function draw() {
  var perUnit = scale(), fresh = document.createDocumentFragment();
  for (var i = 0; i < count; i++) drawBox(i, perUnit, fresh);
  empty(frames);
  frames.appendChild(fresh);
  drawBands(perUnit);
  show("back", past.length > 0);
  show("reset", view[0] > 0 || view[1] < P.total);
}

function zoom(from, to) {
  if (from == view[0] && to == view[1]) return;
  past.push(view);
  view = [from, to];
  draw();
}
function back() {
  if (!past.length) return;
  view = past.pop();
  draw();
}
function reset() { zoom(0, P.total); }

// Time under a match counts once, however often names match in a stack.
function search(text) {
  var matched = 0, shown = 0, end = 0, lane = 0, whole = 0, match;
  hits = null;
  try {
    pattern = text ? new RegExp(text) : null;
  } catch (e) {
    get("matched").textContent = "not a regular expression";
    return draw();
  }
  if (pattern) {
    hits = new Uint8Array(count);
    match = N.map(function (n) { return pattern.test(n[0]); });
    for (var i = 0; i < count; i++) {
      var first = i == L[lane];
      if (first) { lane++; end = 0; shown = 0; }
      if (X[i] >= shown) { whole += width(i); shown = X[i] + width(i); }
      if (!match[box(i, 4)]) continue;
      hits[i] = 1;
      if (X[i] >= end) { matched += width(i); end = X[i] + width(i); }
    }
  }
  get("matched").textContent = pattern ? "matched: " + (100 * matched / whole).toFixed(2) + " %" : " ";
  get("search").textContent = pattern ? "end search" : "search";
  draw();
}

function askSearch() {
  if (input) return input.focus();
  var holder = add(get("kvmprof"), "foreignObject", { x: P.width - 310, y: Math.max(30, 8 - get("kvmprof").getBoundingClientRect().top),
    width: 300, height: 24 });
  input = document.createElementNS(HTML, "input");
  input.setAttribute("id", "pattern");
  input.setAttribute("placeholder", "regular expression, then Enter");
  input.setAttribute("style", "width:290px;font:12px monospace;box-sizing:border-box");
  input.value = pattern ? pattern.source : "";
  holder.appendChild(input);
  input.addEventListener("keydown", function (e) {
    e.stopPropagation();
    if (e.key == "Enter") search(input.value);
    if (e.key == "Enter" || e.key == "Escape") { holder.remove(); input = null; }
    if ((e.ctrlKey || e.metaKey) && e.key == "f") e.preventDefault();
  });
  input.focus();
}

function indexOf(e) { return e.target.hasAttribute("data-i") ? +e.target.getAttribute("data-i") : -1; }

frames.addEventListener("click", function (e) {
  var i = indexOf(e);
  if (i >= 0) zoom(X[i], X[i] + width(i));
});
frames.addEventListener("mouseover", function (e) {
  var i = indexOf(e);
  if (i < 0) return;
  details.textContent = fit(describe(i), P.width - 2 * P.margin);
  if (!e.target.firstChild) add(e.target, "title", {}, describe(i));
});
frames.addEventListener("mouseout", function () { details.textContent = " "; });
get("back").addEventListener("click", back);
get("reset").addEventListener("click", reset);
get("search").addEventListener("click", function () { if (pattern) search(""); else askSearch(); });
window.addEventListener("keydown", function (e) {
  if ((e.ctrlKey || e.metaKey) && e.key == "f" || e.key == "F3" || e.key == "/") {
    e.preventDefault();
    askSearch();
  } else if (e.key == "Backspace") {
    e.preventDefault();
    back();
  } else if (e.key == "Escape") {
    reset();
  }
});

for (var i = 0, x = 0; i < count; i++) X[i] = x += box(i, 0);
show("search", true);
resize();
drawSheet();
draw();
showRoots();
window.addEventListener("load", showRoots);
window.addEventListener("resize", function () {
  resize();
  drawSheet();
  draw();
});
