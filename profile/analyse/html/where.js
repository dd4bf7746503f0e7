// SPDX-License-Identifier: GPL-2.0-or-later
// Where the time of each vCPU went, and the requests, packets, markers and phases as tables.

function placesByCpu(m, side) {
  const e = m.sides[side], [from, to] = m.rangeOf[side], ok = m.allowed[side], place = m.place[side], of = new Map();
  const want = m.filter.cpu === "" ? -1 : +m.filter.cpu + 1;
  for (let i = from; i < to; i++) {
    const s = e.stack[i];
    if (!ok[s] || (want >= 0 && e.cpu[i] !== want)) continue;
    let row = of.get(e.cpu[i]);
    if (!row) of.set(e.cpu[i], row = new Float64Array(PLACE.length));
    row[place[s]] += e.weight[i];
  }
  return Array.from(of, ([cpu, sums]) => ({ cpu, sums, all: sums.reduce((x, y) => x + y, 0) })).sort((a, b) => a.cpu - b.cpu);
}

function placeBar(row) {
  const words = PLACE.map((p, k) => row.sums[k] ? p + " " + percent(row.sums[k], row.all) : null).filter(Boolean).join(", ");
  return el("div", { class: "stack-bar", role: "img", "aria-label": words, title: words }, ...PLACE.map((p, k) => row.sums[k] ?
    el("span", { css: { width: 100 * row.sums[k] / row.all + "%", background: hsl(PLACE_COLOR[k]) } }) : null));
}

function whereTable(app, side) {
  const m = app.model, e = m.sides[side], rows = placesByCpu(m, side);
  const seen = PLACE.map((p, k) => rows.some(r => r.sums[k] > 0) ? k : -1).filter(k => k >= 0);
  if (rows.length > 1) {
    const all = { cpu: -1, sums: new Float64Array(PLACE.length), all: 0 };
    for (const r of rows) {
      r.sums.forEach((v, k) => { all.sums[k] += v; });
      all.all += r.all;
    }
    rows.push(all);
  }
  return table({
    caption: m.sides.length > 1 ? (side ? "Base: " : "") + e.profile.file : "Where the time of each vCPU went",
    columns: [{ key: "cpu", title: "vCPU", cell: r => r.cpu < 0 ? "all" : r.cpu ? String(r.cpu - 1) : "none" },
      { key: "bar", title: "Shares", class: "places", cell: r => placeBar(r) },
      ...seen.map(k => ({ key: "p" + k, title: PLACE[k], class: "n", cell: r => percent(r.sums[k], r.all) })),
      { key: "all", title: e.isTime ? "Time" : "Count", class: "n", cell: r => weightText(e, r.all) }],
    rows, rowKey: r => r.cpu,
  });
}

function wholeRun(p) {
  const names = Object.keys(p.where || {}).filter(k => p.where[k] > 0), all = names.reduce((n, k) => n + p.where[k], 0);
  if (!names.length) return null;
  return table({
    caption: "The whole run, as it was recorded" + (p.file ? ": " + p.file : ""),
    columns: [{ key: "name", title: "Where", cell: k => clean(k) }, { key: "n", title: "Time", class: "n", cell: k => duration(p.where[k]) },
      { key: "share", title: "Share", class: "n", cell: k => percent(p.where[k], all) }],
    rows: names.sort((a, b) => p.where[b] - p.where[a]), rowKey: k => k,
  });
}

function showWhere(app) {
  const m = app.model, sides = m.sides.map((e, side) => side), host = m.place.some(p => p.some(k => k > 3));
  fill($("where"), ...sides.map(side => scroll(side ? "Time of vCPUs of the base" : "Time of vCPUs", whereTable(app, side))), el("div", { class: "two-tables" }, ...m.sides.map(e => wholeRun(e.profile)).filter(Boolean).map((t, i) => scroll(i ? "The whole run of the base" : "The whole run", t))),
    legendOf(m), host ? null : el("p", { class: "hint" }, "The samples of this event show the guest only. `kvmprof run -e host` and `attach -e host` also record the time in KVM and the VMM, and the time that a vCPU waited for a processor."));
}

function legendOf(m) {
  return el("ul", { class: "legend", "aria-label": "Colours" }, ...PLACE.map((p, k) => m.place.some(x => x.includes(k)) ? el("li", null, el("i", { css: { background: hsl(PLACE_COLOR[k]) } }), p) : null));
}

// -- requests, markers, phases ---------------------------------------------------------------------

function inSpan(app, from, to) {
  const s = app.state.span;
  return !s || (to >= s[0] && from <= s[1]);
}

function requestTable(app, p, title) {
  const rows = p.requests.filter(r => inSpan(app, r.from, r.to)), sort = app.requestSort || { key: "took", down: true };
  const long = new Set(rows.flatMap(r => r.steps.map(s => s.name)));
  const took = r => r.to - r.from, step = (r, name) => r.steps.filter(s => s.name === name).reduce((n, s) => n + s.to - s.from, 0);
  return table({
    caption: title + ": " + count(rows.length),
    columns: [{ key: "from", title: "At", class: "n", sort: r => r.from, cell: r => secondsText(r.from, 1e6) },
      { key: "device", title: "Device", sort: r => r.device, cell: r => r.device }, { key: "what", title: "What", sort: r => r.what, cell: r => r.what + (r.ok ? "" : ", failed") },
      { key: "bytes", title: "Bytes", class: "n", sort: r => r.bytes, cell: r => bytes(r.bytes) },
      { key: "took", title: "Took", class: "n", sort: took, cell: r => duration(took(r)) },
      ...Array.from(long, name => ({ key: name, title: name, class: "n", sort: r => step(r, name), cell: r => duration(step(r, name)) })),
      { key: "comm", title: "Task", class: "name", sort: r => r.comm, cell: r => r.comm + (r.pid ? " " + r.pid : "") }],
    rows, sort, onsort: (key, down) => {
      app.requestSort = { key, down };
      showDevices(app);
    },
    choose: r => app.setSpan([r.from, Math.max(r.to, r.from + 1000)]), rowKey: r => r.from,
  });
}

function showDevices(app) {
  const parts = [], m = app.model;
  for (const e of m.sides) {
    const p = e.profile, of = m.sides.length > 1 ? " of " + p.file : "";
    if (p.requests.length) parts.push(requestTable(app, p, "Requests of devices" + of));
    if (p.markers.length) parts.push(table({
      caption: "Markers" + of,
      columns: [{ key: "time", title: "At", class: "n", cell: k => secondsText(k.time, 1e6) }, { key: "kind", title: "Kind", cell: k => k.kind }, { key: "name", title: "Name", class: "name", cell: k => k.name }],
      rows: p.markers.filter(k => inSpan(app, k.time, k.time)), rowKey: k => k.time,
      choose: k => {
        const next = p.markers.find(x => x.time > k.time);
        app.setSpan([k.time, next ? next.time : app.timeline.to]);
      } }));
    if (p.phases.length) parts.push(table({
      caption: "Phases of the boot" + of,
      columns: [{ key: "name", title: "Phase", cell: k => k.name }, { key: "from", title: "From", class: "n", cell: k => secondsText(k.from, 1e6) }, { key: "took", title: "Took", class: "n", cell: k => duration(k.to - k.from) }],
      rows: p.phases, choose: k => app.set({ phase: app.state.phase === k.name ? "" : k.name }), isChosen: k => app.state.phase === k.name, rowKey: k => k.name }));
  }
  if (!parts.length) parts.push(el("p", { class: "muted" }, "The profile has no requests of devices, markers or phases of a boot. `kvmprof run -e io` records requests, `--mark` markers."));
  fill($("devices"), el("div", { class: "two-tables" }, ...parts.map((t, i) => scroll("Table " + (i + 1), t))));
}
