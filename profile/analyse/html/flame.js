// SPDX-License-Identifier: GPL-2.0-or-later
// A flame graph or icicle of a Group on a canvas. Only boxes that can be seen are expanded.

const ROW = 19, GAP = 1, LEAST = 0.7;

class Flame {
  // how: {app, side, label, up, callers}; the root is set by show().
  constructor(how) {
    Object.assign(this, how);
    this.spacer = el("div", { role: "presentation" });
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "flame graph", "aria-label": this.label });
    this.box = el("div", { class: "flame" }, this.canvas, this.spacer);
    this.cursor = null;
    this.box.addEventListener("scroll", () => this.paint(), { passive: true });
    this.canvas.addEventListener("mousemove", e => this.hover(e));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", e => this.click(e));
    this.canvas.addEventListener("dblclick", e => this.click(e));
    this.canvas.addEventListener("contextmenu", e => this.menu(e));
    this.canvas.addEventListener("keydown", e => this.key(e));
    this.canvas.addEventListener("focus", () => { this.describe(this.cursor || this.boxes[0]); this.paint(); });
    this.canvas.addEventListener("blur", () => this.paint());
  }

  // trail: the groups from the root to the one that fills the width.
  show(trail) {
    this.trail = trail;
    this.top = trail[trail.length - 1];
    this.cursor = null;
    this.layout();
  }

  layout() {
    const width = this.width = Math.max(80, this.box.clientWidth || 80), boxes = this.boxes = [];
    const whole = this.top.sum[this.side], scale = whole ? width / whole : 0;
    let deepest = this.trail.length;
    this.trail.forEach((g, i) => boxes.push({ g, x: 0, w: width, row: i, above: i < this.trail.length - 1, parent: boxes[i - 1] || null }));
    const stack = [boxes[boxes.length - 1]];
    while (stack.length) {
      const b = stack.pop();
      let x = b.x;
      if (b.row > 1000) continue;
      for (const kid of b.g.children()) {
        const w = kid.sum[this.side] * scale;
        if (w >= LEAST) {
          const box = { g: kid, x, w, row: b.row + 1, above: false, parent: b };
          boxes.push(box);
          stack.push(box);
          deepest = Math.max(deepest, box.row + 1);
        }
        x += w;
      }
    }
    this.rows = deepest;
    this.height = deepest * ROW;
    this.view = printing ? this.height : Math.min(this.height, Math.max(160, Math.round(innerHeight * .64)));
    this.spacer.style.height = Math.max(0, this.height - this.view) + "px";
    this.canvas.style.width = width + "px";
    if (this.up) this.box.scrollTop = this.height;
    this.paint();
  }

  y(b) {
    const y = this.up ? this.height - (b.row + 1) * ROW : b.row * ROW;
    return y - this.box.scrollTop;
  }

  color(b) {
    const m = this.top.model, f = b.g.func;
    if (m.sides.length > 1) return deltaColor(shareOf(m, 0, b.g.sum[0]) - shareOf(m, 1, b.g.sum[1]));
    return f < 0 ? hsl(KIND_COLOR[KIND.ROOT]) : kindColor(m.kind[f], m.name[f]);
  }

  paint() {
    if (!this.top) return;
    const c = sized(this.canvas, this.width, this.view), m = this.top.model, search = this.app.found;
    c.fillStyle = cssVar("--surface");
    c.fillRect(0, 0, this.width, this.view);
    c.font = "12px " + SANS;
    c.textBaseline = "middle";
    const ink = isDark() ? "#f1f4f7" : "#171b1f", hit = isDark() ? "hsl(322 46% 40%)" : "hsl(322 74% 82%)";
    for (const b of this.boxes) {
      const y = this.y(b);
      if (y > this.view || y < -ROW) continue;
      const f = b.g.func, found = search && f >= 0 && search.hit[f], w = Math.max(.5, b.w - (b.w > 3 ? GAP : .3));
      c.globalAlpha = search && !found ? .5 : b.above ? .75 : 1;
      c.fillStyle = found ? hit : this.color(b);
      c.fillRect(b.x, y, w, ROW - GAP);
      c.globalAlpha = 1;
      if (b.w > 26) {
        c.fillStyle = ink;
        const text = fit(c, this.name(b), b.w - 9);
        if (text) c.fillText(text, b.x + 4, y + ROW / 2);
      }
    }
    const mark = this.cursor && (document.activeElement === this.canvas || this.cursor === this.over) ? this.cursor : this.over;
    for (const b of [mark, this.app.state.fn >= 0 ? "fn" : null]) {
      if (!b) continue;
      c.strokeStyle = cssVar(b === "fn" ? "--accent" : "--text");
      c.lineWidth = 1.5;
      for (const x of b === "fn" ? this.boxes.filter(k => k.g.func === this.app.state.fn) : [b])
        c.strokeRect(x.x + .75, this.y(x) + .75, Math.max(1, x.w - 2.2), ROW - 2.5);
    }
    void m;
  }

  name(b) {
    return b.g.func < 0 ? "all" : this.top.model.name[b.g.func];
  }

  at(e) {
    const r = this.canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    let found = null;
    for (const b of this.boxes) {
      const by = this.y(b);
      if (y >= by && y < by + ROW && x >= b.x && x < b.x + b.w) found = b;
    }
    return found;
  }

  hover(e) {
    const b = this.at(e);
    if (b !== this.over) {
      this.over = b;
      this.paint();
    }
    if (!b) return this.leave();
    const t = this.text(b);
    tip(e.clientX, e.clientY, t[0], t[1], t[2]);
    this.describe(b);
  }

  leave() {
    tip();
    if (this.over) {
      this.over = null;
      this.paint();
    }
  }

  text(b) {
    const m = this.top.model, f = b.g.func, s = this.side, e = m.sides[s], sum = b.g.sum;
    const own = b.g.weights ? null : b.g.at.reduce((n, i) => n + m.self[s][i], 0);
    const first = f < 0 ? "all" : m.name[f];
    const second = f < 0 ? null : [m.dso[f], KIND_NAME[m.kind[f]]].filter(Boolean).join(", ");
    let third = percent(sum[s], m.grand[s]) + ", " + weightText(e, sum[s]);
    if (own !== null && f >= 0) third += "; self " + percent(own, m.grand[s]);
    if (m.sides.length > 1)
      third += "; " + points(shareOf(m, 0, sum[0]), shareOf(m, 1, sum[1])) + " points (base " + percent(sum[1], m.grand[1]) + ")";
    return [first, second, third];
  }

  describe(b) {
    if (b) fill($("flame-details"), el("b", null, this.text(b)[0]), " ", el("span", { class: "muted" }, this.text(b).slice(1).filter(Boolean).join(" · ")));
  }

  click(e) {
    const b = this.at(e);
    if (b) this.choose(b);
  }

  choose(b) {
    const trail = [];
    for (let x = b; x; x = x.parent) trail.push(x.g.func);
    this.onzoom(trail.reverse().slice(1), b.g.func);
  }

  menu(e) {
    const b = this.at(e);
    if (!b || b.g.func < 0) return;
    e.preventDefault();
    this.app.chooseFunction(b.g.func, "sandwich");
  }

  move(to) {
    if (!to) return;
    this.cursor = to;
    const y = this.y(to);
    if (y < 0) this.box.scrollTop += y;
    if (y + ROW > this.view) this.box.scrollTop += y + ROW - this.view;
    this.describe(to);
    this.paint();
  }

  key(e) {
    const b = this.cursor || this.boxes[0];
    const kids = this.boxes.filter(k => k.parent === b && k.row === b.row + 1);
    const level = this.boxes.filter(k => k.row === b.row).sort((p, q) => p.x - q.x);
    const inward = this.up ? "ArrowUp" : "ArrowDown", outward = this.up ? "ArrowDown" : "ArrowUp";
    let used = true;
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === inward) this.move(kids.sort((p, q) => q.w - p.w)[0]);
    else if (e.key === outward) this.move(b.parent);
    else if (e.key === "ArrowRight") this.move(level[level.indexOf(b) + 1]);
    else if (e.key === "ArrowLeft") this.move(level[level.indexOf(b) - 1]);
    else if (e.key === "Home") this.move(this.boxes[0]);
    else if (e.key === "Enter" || e.key === " ") this.choose(b);
    else if (e.key === "Backspace") this.app.back();
    else if (e.key === "s" && b.g.func >= 0) this.app.chooseFunction(b.g.func, "sandwich");
    else used = false;
    if (used) e.preventDefault();
  }
}
