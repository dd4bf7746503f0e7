// SPDX-License-Identifier: GPL-2.0-or-later
// The time line: phases, markers, a lane for each vCPU, requests of devices; one block for each
// profile of a comparison, on the same axis. All times are in ns since the profile's begin.

const AXIS = 26, BAND = 20, SUB = 9, HEADING = 22, LANES_MOST = 4;
const PHASE_COLOR = [[220, 12, 84, 30], [30, 40, 84, 30], [46, 50, 82, 30], [88, 30, 82, 28], [170, 28, 82, 28], [206, 40, 86, 30]];

class TimeLine {
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.cursor = null;
    canvas.addEventListener("wheel", e => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", e => this.down(e));
    canvas.addEventListener("pointermove", e => this.moved(e));
    canvas.addEventListener("pointerup", e => this.up(e));
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.paint(); });
    canvas.addEventListener("pointerleave", () => { tip(); this.mouse = null; this.paint(); });
    canvas.addEventListener("dblclick", () => this.app.setWindow(null));
    canvas.addEventListener("keydown", e => this.key(e));
    canvas.addEventListener("focus", () => this.paint());
    canvas.addEventListener("blur", () => this.paint());
  }

  // The rows of all profiles.
  setModel(model) {
    this.model = model;
    this.rows = [];
    this.bins = null;
    this.from = Math.min(...model.sides.map(e => e.from), ...model.sides.map(e => e.profile.requests.length ? e.profile.requests[0].from : Infinity));
    this.to = Math.max(...model.sides.map(e => e.to));
    if (!(this.to > this.from)) this.to = this.from + 1;
    let y = AXIS;
    const row = (r, h) => {
      this.rows.push(Object.assign(r, { y, h }));
      y += h + 3;
    };
    model.sides.forEach((e, side) => {
      const p = e.profile;
      if (model.sides.length > 1) row({ kind: "heading", side, label: (side ? "base: " : "") + p.file }, HEADING);
      if (p.phases.length) row({ kind: "phases", side, label: "phases" }, BAND);
      if (p.markers.length) row({ kind: "markers", side, label: "markers" }, BAND);
      const cpus = Array.from(new Set(e.cpu)).sort((a, b) => a - b), h = cpus.length <= 4 ? 34 : cpus.length <= 8 ? 26 : cpus.length <= 16 ? 20 : 14;
      for (const cpu of cpus) row({ kind: "cpu", side, cpu, label: cpu ? "vCPU " + (cpu - 1) : e.name === "off-cpu" ? "off the CPU" : "no vCPU" }, h);
      for (const device of new Set(p.requests.map(r => r.device))) {
        const lanes = lanesOf(p.requests.filter(r => r.device === device));
        row({ kind: "device", side, label: device, lanes }, Math.max(14, SUB * lanes.length + 2));
      }
    });
    this.height = y + 2;
  }

  get window() {
    return this.app.state.window || [this.from, this.to];
  }

  x(t) {
    const [a, b] = this.window;
    return this.gutter + (t - a) / (b - a) * this.wide;
  }

  t(x) {
    const [a, b] = this.window;
    return a + (x - this.gutter) / this.wide * (b - a);
  }

  layout() {
    this.width = Math.max(200, this.canvas.parentElement.clientWidth);
    this.gutter = this.width < 560 ? 66 : 104;
    this.wide = this.width - this.gutter - 1;
    this.bins = null;
    this.paint();
  }

  // Sums of weight by row, place and pixel.
  fillBins() {
    const m = this.model, W = Math.max(1, Math.floor(this.wide)), [a, b] = this.window, unit = (b - a) / W;
    this.bins = m.sides.map((e, side) => {
      const of = new Int16Array(65537).fill(-1), cpus = this.rows.filter(r => r.kind === "cpu" && r.side === side);
      cpus.forEach((r, i) => { of[r.cpu] = i; });
      const sums = new Float32Array(cpus.length * PLACE.length * W), hits = new Float32Array(cpus.length * W);
      const ok = m.allowed[side], place = m.place[side], below = this.app.found && this.app.found.below, node = m.stackNode[side];
      let i = after(e.time, a - (e.isTime ? 0 : unit)), end = e.isTime ? e.n : after(e.time, b);
      for (; i < end; i++) {
        const s = e.stack[i], row = of[e.cpu[i]];
        if (e.isTime && e.time[i] - e.weight[i] > b) {
          if (e.time[i] - 1e10 > b) break;
          continue;
        }
        if (!ok[s] || row < 0) continue;
        const at = (row * PLACE.length + place[s]) * W, hit = below && below[node[s]];
        const to = (e.time[i] - a) / unit, from = e.isTime ? to - e.weight[i] / unit : to;
        const first = Math.max(0, Math.floor(from)), last = Math.min(W - 1, Math.floor(to));
        for (let p = first; p <= last; p++) {
          const part = e.isTime ? Math.min(to, p + 1) - Math.max(from, p) : e.weight[i];
          sums[at + p] += part;
          if (hit) hits[row * W + p] += part;
        }
      }
      // A vCPU has one second a second, whatever a late sample stands for; waiting tasks have more.
      const most = cpus.map((row, r) => {
        let high = 0;
        for (let p = 0; p < W; p++) {
          let sum = 0;
          for (let k = 0; k < PLACE.length; k++) sum += sums[(r * PLACE.length + k) * W + p];
          high = Math.max(high, sum);
        }
        return high || 1;
      }), all = Math.max(...most);
      return { W, sums, hits, scale: cpus.map((row, r) => !e.isTime ? all : row.cpu ? 1 : most[r]) };
    });
  }

  paint() {
    if (!this.model || !this.wide) return;
    if (!this.bins) this.fillBins();
    const c = sized(this.canvas, this.width, this.height), [a, b] = this.window;
    this.canvas.setAttribute("aria-label", "Time line of " + duration(this.to - this.from) + ", showing " + duration(a) + " to " + duration(b));
    c.fillStyle = cssVar("--surface");
    c.fillRect(0, 0, this.width, this.height);
    c.font = "12px " + SANS;
    c.textBaseline = "middle";
    this.paintAxis(c);
    const seen = this.model.sides.map(() => -1);
    for (const r of this.rows) {
      c.fillStyle = cssVar(r.kind === "heading" ? "--text" : "--muted");
      c.fillText(fit(c, r.label, r.kind === "heading" ? this.width - 8 : this.gutter - 10), 2, r.y + r.h / 2);
      c.save();
      c.beginPath();
      c.rect(this.gutter, r.y, this.wide + 1, r.h);
      c.clip();
      if (r.kind === "phases") this.paintPhases(c, r);
      else if (r.kind === "markers") this.paintMarkers(c, r);
      else if (r.kind === "cpu") this.paintCpu(c, r, ++seen[r.side]);
      else if (r.kind === "device") this.paintDevice(c, r);
      c.restore();
    }
    this.paintSpan(c);
  }

  paintAxis(c) {
    const [a, b] = this.window, step = niceStep((b - a) / Math.max(2, Math.floor(this.wide / (this.wide < 500 ? 78 : 110))));
    c.strokeStyle = cssVar("--line");
    c.fillStyle = cssVar("--muted");
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
      const x = Math.round(this.x(t)) + .5, text = axisText(t, step);
      c.moveTo(x, AXIS - 6);
      c.lineTo(x, this.height);
      if (x + c.measureText(text).width + 4 < this.width) c.fillText(text, x + 4, AXIS / 2 - 1);
    }
    c.stroke();
    if (this.app.state.window) {
      const w = this.to - this.from, x = this.gutter + (a - this.from) / w * this.wide;
      c.fillStyle = cssVar("--line");
      c.fillRect(this.gutter, AXIS - 4, this.wide, 3);
      c.fillStyle = cssVar("--accent");
      c.fillRect(x, AXIS - 4, Math.max(4, (b - a) / w * this.wide), 3);
    }
  }

  paintBand(c, r, from, to, color, text) {
    const x = Math.max(this.gutter - 2, this.x(from)), end = Math.min(this.width + 2, this.x(to));
    if (end < this.gutter || x > this.width) return;
    c.fillStyle = color;
    c.fillRect(x, r.y, Math.max(1, end - x - 1), r.h);
    c.fillStyle = isDark() ? "#f1f4f7" : "#171b1f";
    const t = end - x > 24 ? fit(c, text, end - x - 9) : "";
    if (t) c.fillText(t, x + 5, r.y + r.h / 2);
  }

  paintPhases(c, r) {
    this.model.sides[r.side].profile.phases.forEach((p, i) => this.paintBand(c, r, p.from, p.to, hsl(PHASE_COLOR[i % PHASE_COLOR.length]), p.name));
  }

  paintMarkers(c, r) {
    const list = this.model.sides[r.side].profile.markers;
    list.forEach((mark, i) => {
      const x = this.x(mark.time), next = i + 1 < list.length ? this.x(list[i + 1].time) : this.width;
      if (x < this.gutter - 1 || x > this.width) return;
      c.fillStyle = cssVar("--accent");
      c.fillRect(x, r.y, 2, r.h);
      c.fillStyle = cssVar("--text");
      const t = next - x > 24 ? fit(c, mark.name, next - x - 10) : "";
      if (t) c.fillText(t, x + 6, r.y + r.h / 2);
    });
  }

  paintCpu(c, r, n) {
    const { W, sums, hits, scale: scales } = this.bins[r.side], scale = scales[n], base = r.y + r.h;
    c.fillStyle = cssVar("--sunken");
    c.fillRect(this.gutter, r.y, this.wide + 1, r.h);
    const low = new Float32Array(W);
    for (let k = 0; k < PLACE.length; k++) {
      const at = (n * PLACE.length + k) * W;
      c.fillStyle = hsl(PLACE_COLOR[k]);
      for (let p = 0; p < W;) {
        let q = p + 1;
        const h = sums[at + p], l = low[p];
        while (q < W && sums[at + q] === h && low[q] === l) q++;
        if (h > 0) {
          const y = l / scale * r.h, size = Math.min(r.h - y, Math.max(.8, h / scale * r.h));
          if (size > 0) c.fillRect(this.gutter + p, base - y - size, q - p, size);
          for (let i = p; i < q; i++) low[i] += h;
        }
        p = q;
      }
    }
    if (!this.app.found) return;
    c.fillStyle = cssVar("--hit");
    for (let p = 0; p < W; p++) {
      const h = Math.min(r.h, hits[n * W + p] / scale * r.h);
      if (h > 0) c.fillRect(this.gutter + p, base - Math.max(2, h), 1, Math.max(2, h));
    }
  }

  paintDevice(c, r) {
    r.lanes.forEach((lane, i) => {
      let last = -9;
      for (const q of lane) {
        const x = this.x(q.from), end = Math.max(x + 1.5, this.x(q.to));
        if (end < this.gutter || x > this.width || end < last + .7) continue;
        c.fillStyle = !q.ok ? cssVar("--worse") : hsl(q.what === "write" || q.what === "sent" ? [24, 70, 54, 60] : q.what === "flush" ? [276, 40, 56, 62] : [196, 60, 42, 58]);
        c.fillRect(x, r.y + 1 + i * SUB, end - x, SUB - 1.5);
        last = end;
      }
    });
  }

  paintSpan(c) {
    const span = this.drag && this.drag.select ? [Math.min(this.drag.t, this.drag.to), Math.max(this.drag.t, this.drag.to)] : this.app.state.span;
    if (span) {
      const x = Math.max(this.gutter, this.x(span[0])), end = Math.min(this.width, this.x(span[1]));
      c.fillStyle = cssVar("--surface");
      c.globalAlpha = .62;
      if (x > this.gutter) c.fillRect(this.gutter, AXIS, Math.min(this.wide, x - this.gutter), this.height - AXIS);
      if (end < this.width) c.fillRect(Math.max(this.gutter, end), AXIS, this.width - Math.max(this.gutter, end), this.height - AXIS);
      c.globalAlpha = 1;
      c.fillStyle = cssVar("--accent");
      if (x > this.gutter) c.fillRect(x - 1, AXIS - 2, 2, this.height);
      if (end < this.width) c.fillRect(end - 1, AXIS - 2, 2, this.height);
    }
    const t = document.activeElement === this.canvas ? this.cursor : null, at = t !== null ? this.x(t) : this.mouse;
    if (at !== null && at !== undefined && at >= this.gutter) {
      c.fillStyle = cssVar("--text");
      c.fillRect(Math.round(at), AXIS - 4, 1, this.height);
    }
  }

  // -- mouse ---------------------------------------------------------------------------------------

  wheel(e) {
    const [a, b] = this.window, x = this.place(e).x, at = this.t(Math.max(this.gutter, x));
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      const d = (e.deltaX || e.deltaY) / this.wide * (b - a);
      this.pan(a + d, b + d);
    } else {
      this.zoom(Math.exp(Math.max(-200, Math.min(200, e.deltaY)) * .0025), at);
    }
  }

  zoom(factor, at) {
    const [a, b] = this.window, wide = Math.max(1000, Math.min(this.to - this.from, (b - a) * factor)), part = (at - a) / (b - a);
    this.pan(at - part * wide, at - part * wide + wide);
  }

  pan(a, b) {
    const wide = b - a;
    if (a < this.from) [a, b] = [this.from, this.from + wide];
    if (b > this.to) [a, b] = [Math.max(this.from, this.to - wide), this.to];
    this.app.setWindow(wide >= (this.to - this.from) * .9999 ? null : [a, b]);
  }

  place(e) {
    const r = this.canvas.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  }

  down(e) {
    if (e.button > 0) return;
    const { x, y } = this.place(e), select = y >= AXIS && !e.shiftKey;
    this.drag = { x, y, t: this.t(Math.max(this.gutter, x)), to: this.t(Math.max(this.gutter, x)), window: this.window, select };
    if (this.canvas.setPointerCapture && e.pointerId !== undefined) try { this.canvas.setPointerCapture(e.pointerId); } catch (x2) { /* a made-up event */ }
  }

  moved(e) {
    const { x, y } = this.place(e), d = this.drag;
    this.mouse = x;
    if (d && d.select) {
      d.to = Math.max(this.from, Math.min(this.to, this.t(Math.max(this.gutter, Math.min(this.width, x)))));
      this.app.spanText([Math.min(d.t, d.to), Math.max(d.t, d.to)]);
    } else if (d) {
      const move = (d.x - x) / this.wide * (d.window[1] - d.window[0]);
      this.pan(d.window[0] + move, d.window[1] + move);
    }
    if (!d) this.hover(e, x, y);
    this.paint();
  }

  up(e) {
    const d = this.drag, { x, y } = this.place(e);
    this.drag = null;
    if (!d) return;
    if (Math.abs(x - d.x) >= 3) {
      if (d.select) this.app.setSpan([Math.min(d.t, d.to), Math.max(d.t, d.to)]);
      return;
    }
    this.cursor = d.t;
    if (d.select && x >= this.gutter) this.app.setSpan(this.sliceAt(d.t, y));
    this.paint();
  }

  // The phase, slice of markers or request at a place; null if there is none.
  sliceAt(t, y) {
    const r = this.rows.find(k => y >= k.y && y < k.y + k.h + 3);
    if (!r) return null;
    const p = this.model.sides[r.side].profile;
    if (r.kind === "phases") {
      const f = p.phases.find(k => t >= k.from && t < k.to);
      return f ? [f.from, f.to] : null;
    }
    if (r.kind === "markers") {
      const i = p.markers.filter(k => k.time <= t).length - 1;
      return i < 0 ? null : [p.markers[i].time, i + 1 < p.markers.length ? p.markers[i + 1].time : this.to];
    }
    const q = r.kind === "device" && this.requestAt(r, t, y);
    return q ? [q.from, Math.max(q.to, q.from + 1000)] : null;
  }

  requestAt(r, t, y) {
    const slack = 2 * (this.window[1] - this.window[0]) / this.wide, lane = r.lanes[Math.max(0, Math.min(r.lanes.length - 1, Math.floor((y - r.y - 1) / SUB)))];
    return lane.find(k => t >= k.from - slack && t <= k.to + slack);
  }

  hover(e, x, y) {
    const r = this.rows.find(k => y >= k.y && y < k.y + k.h), t = this.t(x);
    if (!r || x < this.gutter) return tip();
    const m = this.model, event = m.sides[r.side], p = event.profile, at = "at " + secondsText(t, this.window[1] - this.window[0]);
    if (r.kind === "cpu") {
      let i = after(event.time, t - .5);
      while (i < event.n && event.cpu[i] !== r.cpu && i < after(event.time, t) + 5000) i++;
      if (i >= event.n || event.cpu[i] !== r.cpu) return tip(e.clientX, e.clientY, r.label, at);
      const s = event.stack[i], task = event.stackTask[s], top = event.top[s];
      const name = top < 0 ? "(no stack)" : m.name[m.funcOf[r.side][event.frameFunc[top]]];
      return tip(e.clientX, e.clientY, name, event.text[event.comm[task]] + " " + event.pid[task] + "/" + event.tid[task] + ", " + r.label + ", " + PLACE[m.place[r.side][s]], at);
    }
    if (r.kind === "phases") {
      const f = p.phases.find(k => t >= k.from && t < k.to);
      return f ? tip(e.clientX, e.clientY, f.name, duration(f.to - f.from) + " from " + secondsText(f.from, f.to - f.from), "a click selects it") : tip();
    }
    if (r.kind === "markers") {
      const slack = 5 * (this.window[1] - this.window[0]) / this.wide, f = p.markers.filter(k => k.time <= t + slack).pop();
      return f ? tip(e.clientX, e.clientY, f.name, f.kind + " marker at " + secondsText(f.time, this.window[1] - this.window[0])) : tip();
    }
    const q = r.kind === "device" && this.requestAt(r, t, y);
    return q ? tip(e.clientX, e.clientY, q.what + " of " + bytes(q.bytes) + ", " + duration(q.to - q.from), stepsText(q), (q.comm || "?") + " " + q.pid + (q.ok ? "" : ", failed")) : tip();
  }

  // -- keyboard ------------------------------------------------------------------------------------

  key(e) {
    const [a, b] = this.window, step = (b - a) / 100;
    let used = true;
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (this.cursor === null || this.cursor < a || this.cursor > b) this.cursor = (a + b) / 2;
    const go = t => {
      const from = this.cursor;
      this.cursor = Math.max(this.from, Math.min(this.to, t));
      if (this.cursor < a || this.cursor > b) this.pan(a + this.cursor - from, b + this.cursor - from);
      if (e.shiftKey) {
        if (!this.app.state.span || this.anchor === undefined) this.anchor = from;
        this.app.setSpan([Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)]);
      } else {
        this.anchor = undefined;
        $("span-text").textContent = "cursor at " + secondsText(this.cursor, b - a);
      }
    };
    if (e.key === "ArrowLeft") go(this.cursor - step);
    else if (e.key === "ArrowRight") go(this.cursor + step);
    else if (e.key === "Home") go(this.from);
    else if (e.key === "End") go(this.to);
    else if (e.key === "+" || e.key === "=" || e.key === "ArrowUp") this.zoom(.7, this.cursor);
    else if (e.key === "-" || e.key === "\u2212" || e.key === "ArrowDown") this.zoom(1 / .7, this.cursor);
    else if (e.key === "[") this.pan(a - 20 * step, b - 20 * step);
    else if (e.key === "]") this.pan(a + 20 * step, b + 20 * step);
    else if (e.key === "0") this.app.setWindow(null);
    else if (e.key === "Enter") {
      const r = this.rows.find(k => k.kind === "phases" || k.kind === "markers");
      if (r) this.app.setSpan(this.sliceAt(this.cursor, r.y + 1));
    } else used = false;
    if (used) e.preventDefault();
    this.paint();
  }
}

// Requests in as few lanes as show them without overlap; the last lane takes the rest.
function lanesOf(requests) {
  const lanes = [];
  for (const q of requests.sort((a, b) => a.from - b.from)) {
    let i = lanes.findIndex(l => l[l.length - 1].to <= q.from);
    if (i < 0) i = lanes.length < LANES_MOST ? lanes.push([]) - 1 : LANES_MOST - 1;
    lanes[i].push(q);
  }
  return lanes.length ? lanes : [[]];
}

function stepsText(q) {
  return q.steps.map(s => s.name + " " + duration(s.to - s.from)).join(", ");
}

function niceStep(least) {
  const p = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  return [1, 2, 5, 10].map(k => k * p).find(k => k >= least);
}

function axisText(t, step) {
  if (step >= 1e9) return (t / 1e9).toFixed(0) + " s";
  if (step >= 1e6) return t >= 1e9 ? (t / 1e9).toFixed(Math.max(0, 9 - Math.floor(Math.log10(step)))) + " s" : (t / 1e6).toFixed(0) + " ms";
  return (t / 1e6).toFixed(Math.min(6, Math.max(0, 6 - Math.floor(Math.log10(step))))) + " ms";
}

// A moment in seconds, as exact as a span of that length needs it.
function secondsText(t, span) {
  return (t / 1e9).toFixed(Math.max(3, Math.min(9, 3 + Math.ceil(9 - Math.log10(Math.max(span, 1)))))) + " s";
}
