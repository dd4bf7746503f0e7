// SPDX-License-Identifier: GPL-2.0-or-later
// Elements, numbers as text, colours, and tables. Text goes into text nodes, never into markup.

function $(id) {
  return document.getElementById(id);
}

// el("td", {class: "n"}, child, "text"): an element; `on` members are listeners.
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const k in attributes || {}) {
    const v = attributes[k];
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "css") Object.assign(e.style, v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children) if (c !== null && c !== undefined) e.append(c);
  return e;
}

function fill(e, ...children) {
  e.replaceChildren(...children.filter(c => c !== null && c !== undefined));
}

// -- numbers ---------------------------------------------------------------------------------------

function trim(v, digits) {
  return v.toFixed(digits);
}

function duration(ns) {
  const a = Math.abs(ns);
  if (a >= 1e9) return trim(ns / 1e9, a >= 1e11 ? 1 : 3) + " s";
  if (a >= 1e6) return trim(ns / 1e6, a >= 1e8 ? 1 : 3) + " ms";
  if (a >= 1e3) return trim(ns / 1e3, a >= 1e5 ? 1 : 2) + " µs";
  return Math.round(ns) + " ns";
}

function count(v) {
  return String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function bytes(v) {
  if (v >= 1 << 20) return trim(v / (1 << 20), 1) + " MiB";
  if (v >= 1024) return trim(v / 1024, v % 1024 ? 1 : 0) + " KiB";
  return v + " B";
}

function weightText(event, w) {
  return event.isTime ? duration(w) : count(w);
}

function percent(part, whole) {
  return whole ? (100 * part / whole).toFixed(2) + " %" : "0.00 %";
}

// The difference of two shares, in points of a percent.
function points(share, base) {
  const d = 100 * (share - base);
  return (d > 0 ? "+" : d < 0 ? "\u2212" : "") + Math.abs(d).toFixed(2);
}

function shareOf(model, side, v) {
  return model.grand[side] ? v / model.grand[side] : 0;
}

// -- colours ---------------------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function isDark() {
  return dark.matches && !printing;
}

// [hue, saturation, lightness in light mode, in dark mode] of each kind of frame.
const KIND_COLOR = [[32, 84, 76, 33], [50, 74, 74, 29], [206, 62, 80, 33], [166, 40, 76, 27], [220, 8, 84, 31], [276, 40, 85, 37],
  [346, 48, 86, 35], [220, 14, 90, 25], [220, 14, 93, 22]];
const PLACE_COLOR = [[32, 74, 61, 52], [209, 52, 58, 56], [220, 12, 87, 25], [186, 40, 50, 45], [268, 34, 62, 60], [318, 36, 64, 56],
  [4, 64, 58, 58], [60, 8, 60, 45], [346, 30, 74, 45], [220, 6, 70, 40]];

function hsl(c, more) {
  return "hsl(" + c[0] + " " + c[1] + "% " + (c[isDark() ? 3 : 2] + (more || 0)) + "%)";
}

function kindColor(kind, name) {
  let h = 0;
  for (let i = 0; i < name.length; i++) h = Math.imul(h, 31) + name.charCodeAt(i) | 0;
  return hsl(KIND_COLOR[kind], kind === KIND.TASK || kind === KIND.ROOT ? 0 : ((h >>> 3) % 9 - 4) * (isDark() ? .7 : .8));
}

// What grew is red, what shrank blue, by points of the whole.
function deltaColor(d) {
  const a = Math.min(1, Math.sqrt(Math.abs(d) * 4));
  if (Math.abs(d) < 5e-4) return isDark() ? "hsl(220 6% 27%)" : "hsl(220 8% 89%)";
  return isDark() ? "hsl(" + (d > 0 ? 4 : 213) + " " + (20 + 45 * a) + "% " + (28 + 6 * a) + "%)"
    : "hsl(" + (d > 0 ? 8 : 213) + " " + (45 + 40 * a) + "% " + (90 - 19 * a) + "%)";
}

function cssVar(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// -- canvas ----------------------------------------------------------------------------------------

function sized(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3), w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  canvas.style.height = height + "px";
  const c = canvas.getContext("2d", { alpha: false });
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

const SANS = '"Inter", system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
const fitted = new Map();

// As much of a text as fits, with an ellipsis; "" if less than three characters do.
function fit(c, text, width) {
  const key = c.font.slice(0, 8) + Math.floor(width) + text;
  let out = fitted.get(key);
  if (out !== undefined) return out;
  if (fitted.size > 20000) fitted.clear();
  const all = c.measureText(text.length > 400 ? text.slice(0, 400) : text).width;
  if (all <= width && text.length <= 400) out = text;
  else {
    let a = 0, b = Math.min(text.length, 400);
    while (a < b) {
      const m = (a + b + 1) >> 1;
      if (c.measureText(text.slice(0, m) + "\u2026").width <= width) a = m;
      else b = m - 1;
    }
    out = a < 2 ? "" : text.slice(0, a) + "\u2026";
  }
  fitted.set(key, out);
  return out;
}

// -- tooltip ---------------------------------------------------------------------------------------

function tip(x, y, ...lines) {
  const t = $("tip");
  if (x === undefined) {
    t.hidden = true;
    return;
  }
  fill(t, ...lines.filter(Boolean).map(l => el("p", null, l)));
  t.hidden = false;
  const w = t.offsetWidth, h = t.offsetHeight;
  t.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 6)) + "px";
  t.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 12) : y + 18) + "px";
}

// -- tables ----------------------------------------------------------------------------------------

const ROWS = 200;

// A table whose rows are reached by arrows and chosen by Enter or click. columns: {key, title,
// class, cell(row), sort(row)}; how: {caption, rows, columns, sort, onsort, choose, isChosen, isHit}.
function table(how) {
  const box = el("div"), columns = how.columns.filter(Boolean);
  let most = how.most || ROWS;
  const sorted = how.sort ? how.rows.slice().sort((a, b) => compare(how, columns, a, b)) : how.rows;
  const head = el("tr", null, ...columns.map(c => {
    const on = how.sort && how.sort.key === c.key;
    return el("th", { scope: "col", class: c.class, "aria-sort": on ? (how.sort.down ? "descending" : "ascending") : null },
      c.sort && how.onsort ? el("button", { type: "button", onclick: () => how.onsort(c.key, on ? !how.sort.down : /^n\b/.test(c.class || "")) }, c.title) : c.title);
  }));
  const body = el("tbody"), t = el("table", { class: how.choose ? null : "plain" }, how.caption ? el("caption", null, how.caption) : null,
    el("thead", null, head), body);
  const draw = () => {
    fill(body, ...sorted.slice(0, most).map((row, i) => el("tr", {
      tabindex: how.choose ? (i ? "-1" : "0") : null,
      "aria-selected": how.isChosen ? String(how.isChosen(row)) : null,
      class: how.isHit && how.isHit(row) ? "hit" : null,
      onclick: how.choose ? () => how.choose(row) : null,
      "data-key": how.rowKey ? how.rowKey(row) : null,
    }, ...columns.map(c => el("td", { class: c.class }, c.cell(row))))));
    if (sorted.length > most)
      body.after(el("tfoot", null, el("tr", null, el("td", { colspan: columns.length },
        el("button", { type: "button", class: "more", onclick: e => {
          e.target.closest("tfoot").remove();
          most *= 5;
          draw();
        } }, "Show more of " + count(sorted.length) + " rows")))));
  };
  draw();
  body.addEventListener("keydown", e => tableKey(e, body));
  box.append(t);
  if (!how.rows.length) box.append(el("p", { class: "muted" }, how.empty || "Nothing is selected."));
  return box;
}

function compare(how, columns, a, b) {
  const c = columns.find(x => x.key === how.sort.key) || columns[0], x = c.sort(a), y = c.sort(b);
  const d = typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
  return how.sort.down ? -d : d;
}

function tableKey(e, body) {
  const row = e.target.closest("tr"), step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[e.key];
  if (e.target !== row) return;
  if (step) {
    const rows = Array.from(body.rows), to = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(row) + step))];
    row.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
    e.preventDefault();
  } else if (e.key === "Enter" || e.key === " ") {
    row.click();
    e.preventDefault();
  }
}

// A bar for a share.
function bar(share) {
  return el("span", { css: { width: Math.max(0, Math.min(100, 100 * share)) + "%" } });
}

// What may be larger than its place, and is scrolled by keys as well.
function scroll(label, content, id) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label, id }, content);
}

function legend(id, entries) {
  fill($(id), ...entries.map(([color, text]) => el("li", null, el("i", { css: { background: color } }), text)));
}
