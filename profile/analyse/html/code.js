// SPDX-License-Identifier: GPL-2.0-or-later
// The instructions of one function with the weight at each, and their source lines.

// The code of a function of the model: {code, event, side, local}; null if the page has none.
function codeOf(app, f) {
  const m = app.model;
  for (let side = 0; side < m.sides.length; side++)
    for (const [local, code] of m.sides[side].code)
      if (m.funcOf[side][local] === f) return { code, event: m.sides[side], side, local };
  return null;
}

// Weight of its own and of calls below, by offset in the function.
function weightsOf(app, c) {
  const m = app.model, e = c.event, own = new Map(), below = new Map(), w = m.stackWeight[c.side];
  const of = e.frameFunc, total = new Float64Array(e.up.length), top = new Float64Array(e.up.length);
  for (let s = 0; s < w.length; s++) top[e.stackNode[s]] += w[s];
  total.set(top);
  for (let i = total.length - 1; i > 0; i--) total[e.up[i]] += total[i];
  const add = (map, off, v) => v && map.set(off, (map.get(off) || 0) + v);
  for (let i = 1; i < total.length; i++) {
    if (!e.up[i] || of[e.item[i]] !== c.local) continue;
    add(own, e.frameOff[e.item[i]], top[i]);
    // Recursion: a caller of the same function has counted it.
    let p = e.up[i];
    while (p > 0 && e.up[p] && of[e.item[p]] !== c.local) p = e.up[p];
    if (!(p > 0 && e.up[p])) add(below, e.frameOff[e.item[i]], total[i] - top[i]);
  }
  return { own, below };
}

function rowsOf(c, weights) {
  const ins = c.code.ins, rows = ins.map(([off, text, target, file, line]) => ({ off, text: clean(text), target, file, line, own: 0, below: 0 }));
  const at = off => {
    let a = 0, b = ins.length - 1;
    while (a < b) {
      const k = (a + b + 1) >> 1;
      if (ins[k][0] <= off) a = k;
      else b = k - 1;
    }
    return rows[a];
  };
  if (rows.length) {
    weights.own.forEach((v, off) => { at(off).own += v; });
    weights.below.forEach((v, off) => { at(off).below += v; });
  }
  return rows;
}

function heat(part) {
  return part > .002 ? { "--part": Math.min(70, 12 + 75 * part) + "%", "--heat": isDark() ? "#c26a1a" : "#ffb35c" } : null;
}

function hotRow(row, whole, cells, key) {
  const tr = el("tr", { "data-off": key }, ...cells), h = heat(whole ? row.own / whole : 0);
  if (h) {
    tr.className = "hot";
    for (const k in h) tr.style.setProperty(k, h[k]);
  }
  return tr;
}

function instructionTable(app, c, rows, whole) {
  const address = BigInt(c.code.address), body = el("tbody");
  let line = null;
  for (const r of rows) {
    if (r.line && (r.file !== (line && line.file) || r.line !== line.line)) {
      line = r;
      const text = sourceText(c, r.file, r.line), name = clean(c.code.files[r.file] || "?").split("/").pop();
      body.append(el("tr", { class: "line" }, el("td", { colspan: 4 }, name + ":" + r.line + (text ? "  " + text.trim() : ""))));
    }
    const to = r.target !== null && rows.find(x => x.off === r.target);
    body.append(hotRow(r, whole, [
      el("td", { class: "n" }, r.own ? percent(r.own, whole) : ""), el("td", { class: "n muted" }, r.below ? percent(r.below, whole) : ""),
      el("td", { class: "n muted" }, (address + BigInt(r.off)).toString(16)),
      el("td", null, r.text, to ? el("span", { class: "muted" }, to.off > r.off ? "  \u2193" : "  \u2191") : null)], r.off));
  }
  return el("table", { class: "code plain" }, el("caption", null, "Instructions"), el("thead", null, el("tr", null,
    el("th", { class: "n", scope: "col" }, "Self"), el("th", { class: "n", scope: "col" }, "Below"), el("th", { class: "n", scope: "col" }, "Address"), el("th", { scope: "col" }, "Instruction"))), body);
}

function sourceText(c, file, line) {
  const s = c.code.src.find(x => x[0] === file);
  return s && line - s[1] >= 0 && line - s[1] < s[2].length ? clean(s[2][line - s[1]]).replace(/\ufffd/g, " ") : "";
}

function sourceTables(c, rows, whole) {
  return c.code.src.map(([file, first, lines]) => {
    const own = new Map(), below = new Map();
    for (const r of rows)
      if (r.file === file) {
        own.set(r.line, (own.get(r.line) || 0) + r.own);
        below.set(r.line, (below.get(r.line) || 0) + r.below);
      }
    return el("table", { class: "code plain" }, el("caption", null, clean(c.code.files[file])), el("thead", null, el("tr", null,
      el("th", { class: "n", scope: "col" }, "Self"), el("th", { class: "n", scope: "col" }, "Below"), el("th", { class: "n", scope: "col" }, "Line"), el("th", { scope: "col" }, "Source"))),
    el("tbody", null, ...lines.map((text, i) => {
      const n = first + i, v = { own: own.get(n) || 0 }, b = below.get(n) || 0;
      return hotRow(v, whole, [el("td", { class: "n" }, v.own ? percent(v.own, whole) : ""), el("td", { class: "n muted" }, b ? percent(b, whole) : ""),
        el("td", { class: "n muted" }, String(n)), el("td", null, clean(text.replace(/\t/g, "        ")))], "line " + n);
    })));
  });
}

function showCode(app) {
  const m = app.model, f = app.state.fn, box = $("code");
  if (f < 0 || f >= m.name.length) {
    const some = Array.from(new Set(m.sides.flatMap((e, side) => Array.from(e.code.keys(), k => m.funcOf[side][k]))));
    if (!some.length) return fill(box, el("p", { class: "muted" }, "This page has no instructions: the profile does not have the code of its functions, or they were left out."));
    const own = m.functions()[0].self;
    some.sort((a, b) => own[b] - own[a]);
    return fill(box, el("p", { class: "muted" }, "Choose a function. The page has the instructions of these:"), table({
      columns: [{ key: "self", title: "Self", class: "n", cell: k => percent(own[k], m.grand[0]) }, { key: "name", title: "Function", class: "name", cell: k => m.name[k] },
        { key: "dso", title: "Module", class: "dso", cell: k => m.dso[k] }],
      rows: some, choose: k => app.chooseFunction(k, "code"), rowKey: k => k }));
  }
  const c = codeOf(app, f);
  const head = el("h3", { class: "subtitle" }, m.name[f]);
  if (!c) return fill(box, head, el("p", { class: "muted" }, "The page does not have the code of this function. It has that of the functions with the most time of their own, as far as the profile has their code; `kvmprof view --functions N` takes more."));
  const rows = rowsOf(c, weightsOf(app, c)), whole = rows.reduce((n, r) => n + r.own, 0);
  const all = whole || rows.reduce((n, r) => n + r.below, 0);
  fill(box, head, el("p", { class: "muted" }, percent(whole, m.grand[c.side]) + " of all time is its own; shares are of that. Code from " + clean(c.code.from) + (c.side ? " (base)" : "") + "."),
    el("div", { class: "two-tables" }, ...sourceTables(c, rows, all).map((t, i) => scroll("Source lines, file " + (i + 1), t)), scroll("Instructions", instructionTable(app, c, rows, all), "instructions")));
}
