// SPDX-License-Identifier: GPL-2.0-or-later
// Connects the views: one state, which the address keeps, and what follows from it.

const TABS = ["flame", "functions", "sandwich", "code", "where", "devices"];
const DEFAULTS = { event: 0, span: null, window: null, phase: "", task: "", cpu: "", dso: "", mode: "", q: "", tab: "flame", up: false,
  callers: false, tasks: true, zoom: [], fn: -1, by: "function", sort: "self", down: true };
const PICKS = ["phase", "task", "cpu", "dso", "mode"];
const SECOND = 1e9;

class App {
  constructor(store) {
    this.store = store;
    this.state = Object.assign({}, DEFAULTS);
    this.flames = [];
  }

  start() {
    this.readHash();
    this.timeline = new TimeLine(this, $("time-canvas"));
    this.listen();
    $("main").hidden = false;
    this.openEvent();
    addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.hash) return;
      const before = this.state.event;
      this.state = Object.assign({}, DEFAULTS);
      this.readHash();
      if (this.state.event !== before) this.openEvent();
      else this.update();
    });
    let waiting = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(() => this.redraw());
    });
    dark.addEventListener("change", () => this.update());
    addEventListener("beforeprint", () => { printing = true; this.update(); });
    addEventListener("afterprint", () => { printing = false; this.update(); });
    document.body.dataset.ready = "yes";
    this.opened = performance.now();    // ms since the browser began to load the page
  }

  // -- state -------------------------------------------------------------------------------------

  // Shows an event of the first profile, and the same event of the base.
  openEvent() {
    const [head, base] = this.store.profiles, i = Math.min(this.state.event, head.events.length - 1);
    const raw = head.events[i], other = base && (base.events.find(e => e.name === raw.name) || base.events[0]);
    this.state.event = i;
    this.model = new Model(decodeEvent(this.store, head, raw), other ? decodeEvent(this.store, base, other) : null);
    this.timeline.setModel(this.model);
    this.fillPicks();
    this.update();
  }

  set(change) {
    const event = this.state.event;
    Object.assign(this.state, change);
    if (this.state.event !== event) {
      Object.assign(this.state, { zoom: [], fn: -1 });
      this.openEvent();
    } else this.update();
  }

  setSpan(span) {
    if (span && span[1] - span[0] < 1) span = null;
    this.set({ span });
  }

  setWindow(window) {
    this.state.window = window;
    this.writeHash();
    this.timeline.layout();
  }

  chooseFunction(f, tab) {
    const open = tab || (this.wide ? (this.state.tab === "flame" || this.state.tab === "functions" ? "functions" : this.state.tab) : "sandwich");
    this.set({ fn: f, tab: tab ? tab : this.state.tab === "functions" && !this.wide ? "sandwich" : open });
  }

  back() {
    const s = this.state;
    if (s.zoom.length) this.set({ zoom: s.zoom.slice(0, -1) });
    else if (s.span) this.set({ span: null });
    else if (PICKS.some(k => s[k] !== "")) this.set(Object.fromEntries(PICKS.map(k => [k, ""])));
    else if (s.window) this.setWindow(null);
    else if (s.fn >= 0) this.set({ fn: -1 });
  }

  readHash() {
    const p = new URLSearchParams(location.hash.slice(1)), s = this.state;
    const span = text => {
      const m = /^(-?\d+)-(-?\d+)$/.exec(text || "");
      return m && +m[2] > +m[1] ? [+m[1], +m[2]] : null;
    };
    s.event = Math.max(0, Math.floor(+p.get("event")) || 0);
    s.span = span(p.get("span"));
    s.window = span(p.get("window"));
    for (const k of PICKS) s[k] = p.get(k) || "";
    s.q = p.get("q") || "";
    s.tab = TABS.includes(p.get("tab")) ? p.get("tab") : DEFAULTS.tab;
    s.up = p.get("up") === "1";
    s.callers = p.get("callers") === "1";
    s.tasks = p.get("tasks") !== "0";
    s.zoom = (p.get("zoom") || "").split(".").filter(x => /^\d+$/.test(x)).map(Number);
    s.fn = /^\d+$/.test(p.get("fn") || "") ? +p.get("fn") : -1;
    s.by = ["task", "cpu", "dso", "mode", "phase"].includes(p.get("by")) ? p.get("by") : "function";
    s.sort = /^[a-z0-9]+$/.test(p.get("sort") || "") ? p.get("sort") : DEFAULTS.sort;
    s.down = p.get("down") !== "0";
  }

  writeHash() {
    const p = new URLSearchParams(), s = this.state;
    for (const k in DEFAULTS) {
      const v = s[k], d = DEFAULTS[k];
      if (JSON.stringify(v) === JSON.stringify(d)) continue;
      p.set(k, k === "span" || k === "window" ? Math.round(v[0]) + "-" + Math.round(v[1]) : k === "zoom" ? v.join(".") : v === true ? "1" : v === false ? "0" : v);
    }
    this.hash = p.toString();
    if (location.hash.slice(1) !== this.hash) history.replaceState(null, "", "#" + this.hash);
  }

  // -- what follows from the state ---------------------------------------------------------------

  get wide() {
    return innerWidth >= 1500;
  }

  update() {
    const s = this.state, m = this.model;
    this.writeHash();
    m.select({ span: s.span, phase: s.phase, task: s.task, cpu: s.cpu, dso: s.dso, mode: s.mode });
    this.find();
    this.showHead();
    this.redraw();
  }

  find() {
    const q = this.state.q, input = $("search");
    this.found = null;
    $("matched").textContent = "";
    input.removeAttribute("aria-invalid");
    if (document.activeElement !== input || input.value !== q) input.value = q;
    if (!q) return;
    let test;
    const m = /^\/(.*)\/?$/.exec(q);
    if (m) {
      try {
        const e = new RegExp(m[1].replace(/\/$/, ""), "i");
        test = t => e.test(t);
      } catch (e) {
        input.setAttribute("aria-invalid", "true");
        $("matched").textContent = "This is not a regular expression.";
        return;
      }
    } else {
      const low = q.toLowerCase();
      test = t => t.toLowerCase().includes(low);
    }
    this.found = this.model.search(test);
    const g = this.model.grand, share = this.found.share;
    $("matched").textContent = count(this.found.n) + (this.found.n === 1 ? " name, " : " names, ") + percent(share[0], g[0]) +
      (share.length > 1 ? " (base " + percent(share[1], g[1]) + ")" : "") + " of the time";
  }

  showHead() {
    const p = this.store.profiles, m = this.model, e = m.sides[0];
    $("title").textContent = clean(this.store.title);
    document.title = clean(this.store.title);
    const facts = m.sides.map((x, side) => {
      const of = [count(m.samples[side]) + (m.samples[side] === x.n ? "" : " of " + count(x.n)) + (x.counted ? " counts" : " samples") + " of " + x.name];
      if (x.hasTime) of.push("over " + duration(x.to - x.from));
      if (x.raw.ncpus) of.push(x.raw.ncpus + (x.raw.ncpus === 1 ? " vCPU" : " vCPUs"));
      if (x.profile.osrelease) of.push("Linux " + clean(x.profile.osrelease));
      if (x.raw.lost) of.push(count(x.raw.lost) + " lost");
      if (x.profile.partial) of.push("partial: " + clean(x.profile.message));
      return (m.sides.length > 1 ? (side ? "base: " : x.profile.file + ": ") : "") + of.join(", ");
    });
    $("facts").textContent = facts.join(" · ");
    $("time").hidden = !m.sides.some(x => x.hasTime);
    const notes = [];
    if (!e.n) notes.push("The profile has no samples.");
    else if (!m.samples[0]) notes.push("No sample is selected: Esc takes back the last choice, Reset all of them.");
    if (e.n === 1) notes.push("The profile has one sample.");
    if (e.n > 1 && !e.hasTime) notes.push(e.counted ? "The profile has exact counts of the whole run, which have no order in time: there is no time line." : "The samples have no times: there is no time line.");
    if (e.n && e.stackNode.every(x => e.up[x] <= 0 || e.up[e.up[x]] === 0)) notes.push("The profile has no stacks: of each sample it has one function at most, so there are no callers.");
    if (p[0].note) notes.push(clean(p[0].note));
    $("notice").hidden = !notes.length;
    $("notice").textContent = notes.join(" ");
    this.showPicks();
    this.spanText(this.state.span);
  }

  spanText(span) {
    const t = this.timeline, e = this.model.sides[0], all = t.to - t.from;
    const show = v => (v / SECOND).toFixed(6).replace(/\.?0+$/, "") || "0";
    if (document.activeElement !== $("span-from")) $("span-from").value = show(span ? span[0] : t.from);
    if (document.activeElement !== $("span-to")) $("span-to").value = show(span ? span[1] : t.to);
    $("span-text").textContent = span ? duration(span[1] - span[0]) + " selected (" + percent(span[1] - span[0], all) + ")" : "";
    $("span-clear").disabled = !span;
    void e;
  }

  redraw() {
    const s = this.state, wide = this.wide;
    if (!$("time").hidden) this.timeline.layout();
    legend("time-legend", PLACE.map((p, k) => [k, p]).filter(([k]) => this.model.place.some(x => x.includes(k))).map(([k, p]) => [hsl(PLACE_COLOR[k]), p]));
    // A wide window has the flame graph on the left, and the view that is chosen on the right.
    const shown = wide && s.tab === "flame" ? "functions" : s.tab;
    $("views").classList.toggle("wide", wide && !printing);
    $("tab-flame").hidden = wide;
    for (const t of TABS) {
      const on = shown === t, tab = $("tab-" + t);
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      $("view-" + t).hidden = !printing && !on && !(wide && t === "flame");
    }
    this.showFlames();
    if (!$("view-functions").hidden) showFunctions(this);
    if (!$("view-sandwich").hidden) showSandwich(this);
    if (!$("view-code").hidden) showCode(this);
    if (!$("view-where").hidden) showWhere(this);
    if (!$("view-devices").hidden) showDevices(this);
    $("group-by").value = s.by;
  }

  // -- flame graph -------------------------------------------------------------------------------

  showFlames() {
    const s = this.state, m = this.model, two = m.sides.length > 1;
    for (const [id, on] of [["flame-up", s.up], ["flame-down", !s.up], ["flame-callers", s.callers], ["flame-callees", !s.callers]]) {
      $(id).setAttribute("aria-checked", String(on));
      $(id).tabIndex = on ? 0 : -1;
    }
    $("flame-tasks").setAttribute("aria-pressed", String(s.tasks));
    if ($("view-flame").hidden) return;
    if (this.flames.length !== m.sides.length) {
      this.flames = m.sides.map((e, side) => new Flame({ app: this, side, label: "Flame graph" + (two ? (side ? " of the base" : " of the profile") : ""),
        onzoom: (path, f) => this.zoomTo(path, f) }));
      $("flames").classList.toggle("two", two);
      // The base is on the left: what was, then what is.
      fill($("flames"), ...this.flames.slice().reverse().map(f => el("div", null, two ? el("h3", null, (f.side ? "Base: " : "Profile: ") + m.sides[f.side].profile.file) : null, f.box)));
    }
    let root = s.callers ? callersRoot(m, s.tasks) : calleesRoot(m, s.tasks), trail = [root];
    for (const f of s.zoom) {
      root = root.children().find(g => g.func === f);
      if (!root) break;
      trail.push(root);
    }
    if (trail.length - 1 < s.zoom.length) {
      // What was zoomed to has no samples in this selection: the zoom ends where they do.
      s.zoom = s.zoom.slice(0, trail.length - 1);
      this.writeHash();
    }
    for (const f of this.flames) {
      f.up = s.up;
      f.show(trail);
    }
    const shown = trail.map((g, i) => [g, i]), few = shown.length > 7 ? shown.slice(0, 2).concat([null], shown.slice(-4)) : shown;
    fill($("crumbs"), ...few.map(x => el("li", null, x ? el("button", { type: "button", "aria-current": x[1] === trail.length - 1 ? "true" : null,
      onclick: () => this.set({ zoom: s.zoom.slice(0, x[1]) }) }, x[0].func < 0 ? "all" : m.name[x[0].func]) : "\u2026")));
    this.showFlameLegend(two);
  }

  showFlameLegend(two) {
    const m = this.model;
    if (two) return legend("flame-legend", [[deltaColor(.3), "grew"], [deltaColor(.02), "grew a little"], [deltaColor(0), "same share"], [deltaColor(-.02), "shrank a little"], [deltaColor(-.3), "shrank"]]);
    const kinds = new Set();
    for (const b of this.flames[0].boxes) if (b.g.func >= 0) kinds.add(m.kind[b.g.func]);
    legend("flame-legend", Array.from(kinds).sort((a, b) => a - b).map(k => [hsl(KIND_COLOR[k]), KIND_NAME[k]]));
  }

  zoomTo(path, f) {
    this.set({ zoom: path, fn: f >= 0 && this.model.kind[f] !== KIND.TASK ? f : this.state.fn });
  }

  // -- filters -----------------------------------------------------------------------------------

  fillPicks() {
    const m = this.model, e = m.sides[0];
    const options = (id, first, entries) => {
      fill($(id), el("option", { value: "" }, first), ...entries.map(([value, text]) => el("option", { value }, text)));
      $(id).parentElement.hidden = entries.length < 2;
    };
    fill($("pick-event"), ...this.store.profiles[0].events.map((x, i) => el("option", { value: String(i) }, clean(x.name))));
    $("pick-event").parentElement.hidden = this.store.profiles[0].events.length < 2;
    $("pick-event").value = String(this.state.event);
    m.select({ span: null, phase: "", task: "", cpu: "", dso: "", mode: "" });
    const top = by => groupRows(m, by).sort((a, b) => b.self[0] - a.self[0]).slice(0, 300).map(r => [r.filter, r.name + "  " + percent(r.self[0], m.grand[0])]).filter(x => x[0] !== "");
    options("pick-phase", "all", e.profile.phases.map(p => [p.name, p.name]));
    options("pick-task", "all", top("task"));
    options("pick-cpu", "all", groupRows(m, "cpu").map(r => [r.filter, r.name]).filter(x => x[0] !== "").sort((a, b) => a[0] - b[0]));
    options("pick-dso", "all", top("dso"));
    options("pick-mode", "all", top("mode"));
  }

  showPicks() {
    for (const k of PICKS) {
      const e = $("pick-" + k), v = this.state[k];
      if (v !== "" && !Array.from(e.options).some(o => o.value === v)) e.append(el("option", { value: v }, v.replace(/^=/, "")));
      e.value = v;
      e.classList.toggle("set", v !== "");
      if (v !== "") e.parentElement.hidden = false;
    }
  }

  // -- listeners ---------------------------------------------------------------------------------

  listen() {
    for (const k of PICKS) $("pick-" + k).addEventListener("change", e => this.set({ [k]: e.target.value }));
    $("pick-event").addEventListener("change", e => this.set({ event: +e.target.value }));
    $("group-by").addEventListener("change", e => this.set({ by: e.target.value }));
    $("filters").addEventListener("submit", e => e.preventDefault());
    let waiting = 0;
    $("search").addEventListener("input", e => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.set({ q: e.target.value.trim() }), 90);
    });
    $("reset").addEventListener("click", () => this.set(Object.assign({}, DEFAULTS, { event: this.state.event, tab: this.state.tab, zoom: [], q: "" })));
    $("span-clear").addEventListener("click", () => this.setSpan(null));
    const typed = () => {
      const a = parseFloat($("span-from").value.replace(",", ".")), b = parseFloat($("span-to").value.replace(",", "."));
      if (isFinite(a) && isFinite(b) && b > a) this.setSpan([a * SECOND, b * SECOND]);
    };
    $("span-from").addEventListener("change", typed);
    $("span-to").addEventListener("change", typed);
    const middle = () => (this.timeline.window[0] + this.timeline.window[1]) / 2;
    $("time-in").addEventListener("click", () => this.timeline.zoom(.5, middle()));
    $("time-out").addEventListener("click", () => this.timeline.zoom(2, middle()));
    $("time-fit").addEventListener("click", () => this.setWindow(this.state.span && !this.state.window ? this.state.span.slice() : null));
    for (const [id, change] of [["flame-up", { up: true }], ["flame-down", { up: false }], ["flame-callers", { callers: true, zoom: [] }], ["flame-callees", { callers: false, zoom: [] }]]) {
      $(id).addEventListener("click", () => this.set(change));
      $(id).addEventListener("keydown", e => {
        if (!e.key.startsWith("Arrow")) return;
        const other = $(id).parentElement.querySelector("[aria-checked=false]");
        other.click();
        other.focus();
        e.preventDefault();
      });
    }
    $("flame-tasks").addEventListener("click", () => this.set({ tasks: !this.state.tasks, zoom: [] }));
    for (const t of TABS) {
      $("tab-" + t).addEventListener("click", () => this.set({ tab: t }));
      $("tab-" + t).addEventListener("keydown", e => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
        if (!step) return;
        const tabs = TABS.filter(x => !$("tab-" + x).hidden), to = tabs[(tabs.indexOf(t) + step + tabs.length) % tabs.length];
        this.set({ tab: to });
        $("tab-" + to).focus();
        e.preventDefault();
      });
    }
    $("help-open").addEventListener("click", () => $("help").showModal());
    document.addEventListener("keydown", e => this.key(e));
  }

  key(e) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || $("help").open) return;
    if (e.key === "Escape") {
      if (e.target === $("search")) {
        $("search").value = "";
        $("search").blur();
        this.set({ q: "" });
      } else if (!typing) this.back();
    } else if (typing) return;
    else if (e.key === "/") {
      $("search").focus();
      $("search").select();
      e.preventDefault();
    } else if (e.key === "?") $("help").showModal();
    else if (/^[1-6]$/.test(e.key)) this.set({ tab: TABS[e.key - 1] });
  }
}

openStore().then(store => {
  if (!store.profiles[0].events.length) {
    $("title").textContent = document.title = clean(store.title);
    $("notice").hidden = false;
    $("notice").textContent = "The profile has no samples.";
    document.body.dataset.ready = "yes";
    return;
  }
  const app = new App(store);
  window.kvmprof = app;
  app.start();
}).catch(e => {
  $("notice").hidden = false;
  $("notice").textContent = "The page cannot be shown: " + e.message + ".";
  document.body.dataset.ready = "failed";
});
