// SPDX-License-Identifier: GPL-2.0-or-later
// Tables of functions, tasks, vCPUs, modules; and one function with its callers and callees.

// Columns for rows of {self: [side...], total: [side...], name, dso}.
function weightColumns(app, withTotal) {
  const m = app.model, two = m.sides.length > 1, e = m.sides[0];
  const share = (row, key, side) => shareOf(m, side, row[key][side]);
  const change = (row, key) => {
    const d = share(row, key, 0) - share(row, key, 1);
    return el("span", { class: Math.abs(d) < 5e-5 ? "muted" : d > 0 ? "worse" : "better" }, points(share(row, key, 0), share(row, key, 1)));
  };
  return [
    withTotal && { key: "total", title: "Total", class: "n", sort: r => r.total[0], cell: r => percent(r.total[0], m.grand[0]) },
    withTotal && two && { key: "total1", title: "Base", class: "n less", sort: r => share(r, "total", 1), cell: r => percent(r.total[1], m.grand[1]) },
    withTotal && two && { key: "dtotal", title: "Change", class: "n", sort: r => share(r, "total", 0) - share(r, "total", 1), cell: r => change(r, "total") },
    { key: "self", title: "Self", class: "n", sort: r => r.self[0], cell: r => percent(r.self[0], m.grand[0]) },
    two && { key: "self1", title: "Base", class: "n less", sort: r => share(r, "self", 1), cell: r => percent(r.self[1], m.grand[1]) },
    two && { key: "dself", title: "Change", class: "n", sort: r => share(r, "self", 0) - share(r, "self", 1), cell: r => change(r, "self") },
    !two && { key: "weight", title: e.isTime ? "Self time" : "Self count", class: "n less", sort: r => r.self[0], cell: r => weightText(e, r.self[0]) },
    !two && { key: "bar", title: "Share", class: "share", cell: r => bar(share(r, "self", 0)) },
  ];
}

function functionRows(m) {
  const sums = m.functions(), rows = [];
  for (let f = 0; f < m.name.length; f++) {
    if (m.kind[f] === KIND.TASK || !sums.some(s => s.total[f] > 0)) continue;
    rows.push({ f, name: m.name[f], dso: m.dso[f], self: sums.map(s => s.self[f]), total: sums.map(s => s.total[f]) });
  }
  return rows;
}

// Rows of stacks or samples summed up by task, vCPU, module, mode or phase.
function groupRows(m, by) {
  const of = new Map();
  const add = (side, key, name, w, filter) => {
    let r = of.get(key);
    if (!r) of.set(key, r = { name, dso: "", filter, self: m.sides.map(() => 0), total: m.sides.map(() => 0) });
    r.self[side] += w;
  };
  m.sides.forEach((e, side) => {
    const w = m.stackWeight[side];
    if (by === "cpu" || by === "phase") {
      const [from, to] = m.rangeOf[side], ok = m.allowed[side], want = m.filter.cpu === "" ? -1 : +m.filter.cpu + 1, phases = e.profile.phases;
      let p = 0;
      for (let i = from; i < to; i++) {
        if (!ok[e.stack[i]] || (want >= 0 && e.cpu[i] !== want)) continue;
        if (by === "cpu") add(side, e.cpu[i], e.cpu[i] ? "vCPU " + (e.cpu[i] - 1) : "no vCPU", e.weight[i], e.cpu[i] ? String(e.cpu[i] - 1) : "");
        else {
          while (p < phases.length && e.time[i] > phases[p].to) p++;
          const x = phases[p] && e.time[i] > phases[p].from ? phases[p].name : "";
          add(side, x, x || "(no phase)", e.weight[i], x);
        }
      }
      return;
    }
    for (let s = 0; s < w.length; s++) {
      if (!w[s]) continue;
      const t = e.stackTask[s];
      if (by === "task") {
        const comm = e.text[e.comm[t]];
        add(side, comm, comm || "(no name)", w[s], "=" + comm);
      } else if (by === "mode") {
        const mode = MODE_NAME[e.stackKind[s] >> 4] || "guest";
        add(side, mode, mode, w[s], mode);
      } else {
        const dso = e.top[s] < 0 ? "" : m.dso[m.funcOf[side][e.frameFunc[e.top[s]]]];
        add(side, dso, dso || "(no stack)", w[s], dso);
      }
    }
  });
  return Array.from(of.values());
}

function showFunctions(app) {
  const m = app.model, st = app.state, by = st.by, found = app.found;
  const sort = { key: st.sort, down: st.down };
  const onsort = (key, down) => app.set({ sort: key, down });
  const names = { function: "Functions", task: "Tasks", cpu: "vCPUs", dso: "Modules and programs", mode: "Modes", phase: "Phases" };
  if (by === "function") {
    let rows = functionRows(m);
    const all = rows.length;
    if (found) rows = rows.filter(r => found.hit[r.f]);
    $("functions-title").textContent = names.function + (found ? ": " + count(rows.length) + " of " + count(all) : ": " + count(all));
    fill($("functions"), table({
      columns: weightColumns(app, true).concat([
        { key: "name", title: "Function", class: "name", sort: r => r.name, cell: r => r.name },
        { key: "dso", title: "Module", class: "dso less", sort: r => r.dso, cell: r => r.dso }]),
      rows, sort, onsort, choose: r => app.chooseFunction(r.f), isChosen: r => r.f === st.fn, rowKey: r => r.f,
      empty: found ? "No function matches the search." : "No sample is selected.",
    }));
    return;
  }
  const rows = groupRows(m, by);
  $("functions-title").textContent = names[by] + ": " + count(rows.length);
  const shown = ["self", "self1", "dself", "name"].includes(st.sort) ? sort : { key: "self", down: true };
  fill($("functions"), table({
    columns: weightColumns(app, false).concat([{ key: "name", title: names[by], class: "name", sort: r => r.name, cell: r => r.name }]),
    rows, sort: shown, onsort, choose: r => app.set({ [by]: st[by] === r.filter ? "" : r.filter }), isChosen: r => st[by] !== "" && st[by] === r.filter,
    rowKey: r => r.name,
  }));
}

// -- one function ----------------------------------------------------------------------------------

function neighbours(m, f, callers) {
  return functionRoot(m, f, callers).children().map(g => ({ f: g.func, name: m.name[g.func], dso: m.dso[g.func], self: g.sum, total: g.sum }));
}

function sandwichTable(app, f, callers) {
  const m = app.model, root = functionRoot(m, f, callers), whole = root.sum[0], two = m.sides.length > 1;
  const rows = neighbours(m, f, callers);
  return table({
    caption: callers ? "Callers" : "Callees",
    columns: [
      { key: "part", title: "Of it", class: "n", cell: r => percent(r.total[0], whole) },
      { key: "total", title: "Of all", class: "n less", cell: r => percent(r.total[0], m.grand[0]) },
      two && { key: "base", title: "Base", class: "n", cell: r => percent(r.total[1], m.grand[1]) },
      !two && { key: "bar", title: "Share", class: "share", cell: r => bar(whole ? r.total[0] / whole : 0) },
      { key: "name", title: "Function", class: "name", cell: r => r.name },
      { key: "dso", title: "Module", class: "dso less", cell: r => r.dso }],
    rows, choose: r => m.kind[r.f] === KIND.TASK ? app.set({ task: "=" + (m.name[r.f] === "(no name)" ? "" : m.name[r.f]) }) : app.chooseFunction(r.f),
    rowKey: r => r.f, most: 60,
    empty: callers ? "Nothing calls it: it is the outermost function of its stacks." : "It calls nothing that has samples.",
  });
}

function summaryOf(app, f) {
  const m = app.model, sums = m.functions(), two = m.sides.length > 1, e = m.sides[0];
  const item = (title, ...text) => el("div", null, el("dt", null, title), el("dd", null, ...text));
  const both = key => {
    const a = sums[0][key][f], text = percent(a, m.grand[0]);
    if (!two) return text + " (" + weightText(e, a) + ")";
    return text + " (base " + percent(sums[1][key][f], m.grand[1]) + ", " + points(shareOf(m, 0, a), shareOf(m, 1, sums[1][key][f])) + ")";
  };
  return el("dl", { class: "summary" }, item("Total, with what it calls", both("total")), item("Self", both("self")), item("Module", m.dso[f] || "none"), item("Kind", KIND_NAME[m.kind[f]]));
}

function showSandwich(app) {
  const m = app.model, f = app.state.fn, box = $("sandwich");
  if (f < 0 || f >= m.name.length) return fill(box, el("p", { class: "muted" }, "Choose a function: in the table of functions, or press s on a frame of the flame graph."));
  fill(box, el("h3", { class: "subtitle" }, m.name[f]), summaryOf(app, f),
    el("div", { class: "tools" }, el("button", { type: "button", onclick: () => app.set({ q: m.name[f] }) }, "Highlight everywhere"),
      codeOf(app, f) ? el("button", { type: "button", onclick: () => app.set({ tab: "code" }) }, "Instructions") : null),
    el("div", { class: "two-tables" }, el("div", { class: "scroll", id: "callers" }, sandwichTable(app, f, true)), el("div", { class: "scroll", id: "callees" }, sandwichTable(app, f, false))));
}
