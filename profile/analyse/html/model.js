// SPDX-License-Identifier: GPL-2.0-or-later
// Sums of what is selected. One call tree of functions serves both profiles of a comparison: its
// first level are tasks, its nodes are in an order in which parents come before their children.

const KIND = { KERNEL: 0, MODULE: 1, USER: 2, JIT: 3, UNKNOWN: 4, HOST: 5, WAITING: 6, TASK: 7, ROOT: 8 };
const KIND_NAME = ["kernel", "module", "program", "generated code", "unknown", "host", "waiting", "task", "all"];
const MODE_NAME = ["kernel", "user", "halted", "guest"];
// Where a vCPU's time went; the first four are modes of samples in the guest.
const PLACE = ["guest: kernel", "guest: user", "halted", "guest", "KVM", "VMM", "runnable", "stopped", "waiting", "not known"];
const PLACE_OF_WHERE = [-1, -1, 4, 5, 6, 2, 7, 8, 9];    // by enum sample_where + 1
const CLONE = /(\.(isra|constprop|part|cold|llvm|lto_priv|localalias|str)(\.\d+)*)+$/;

class Model {
  constructor(head, base) {
    this.sides = base ? [head, base] : [head];
    this.name = [];
    this.dso = [];
    this.kind = [];
    this.ofKey = new Map();
    this.funcOf = this.sides.map(e => this.addFunctions(e, !!base));
    this.nfuncs = this.name.length;
    this.buildTree();
    this.place = this.sides.map(placesOf);
  }

  add(key, name, dso, kind) {
    let id = this.ofKey.get(key);
    if (id === undefined) {
      id = this.name.length;
      this.ofKey.set(key, id);
      this.name.push(name);
      this.dso.push(dso);
      this.kind.push(kind);
    }
    return id;
  }

  // Functions of two profiles are the same if their names without a compiler's suffixes are.
  addFunctions(e, compared) {
    const out = new Int32Array(e.funcName.length);
    for (let f = 0; f < out.length; f++) {
      let name = e.text[e.funcName[f]];
      const dso = e.text[e.funcDso[f]];
      if (compared) name = /^0x[0-9a-f]+$/.test(name) ? "[unnamed]" : name.replace(CLONE, "");
      out[f] = this.add(compared ? name + "\n" + dso : f, name, dso, e.funcKind[f]);
    }
    return out;
  }

  task(comm) {
    return this.add("task\n" + comm, comm || "(no name)", "", KIND.TASK);
  }

  buildTree() {
    const most = this.sides.reduce((n, e) => n + e.up.length, 1);
    let size = 1024;
    while (size < 2 * most) size *= 2;
    const slot = new Int32Array(size), mask = size - 1;
    const parent = new Int32Array(most), func = new Int32Array(most), depth = new Uint16Array(most);
    let n = 1;
    parent[0] = -1;
    func[0] = -1;
    this.nodeOf = this.sides.map((e, side) => {
      const map = new Int32Array(e.up.length), of = this.funcOf[side];
      for (let i = 1; i < map.length; i++) {
        const above = e.up[i] ? map[e.up[i]] : 0;
        const f = e.up[i] ? of[e.frameFunc[e.item[i]]] : this.task(e.text[e.item[i]]);
        let h = (Math.imul(above, 0x9e3779b1) ^ Math.imul(f, 0x85ebca6b)) >>> 7 & mask;
        while (slot[h] && (parent[slot[h]] !== above || func[slot[h]] !== f)) h = h + 1 & mask;
        if (!slot[h]) {
          slot[h] = n;
          parent[n] = above;
          func[n] = f;
          depth[n] = Math.min(depth[above] + 1, 65535);
          n++;
        }
        map[i] = slot[h];
      }
      return map;
    });
    this.nnodes = n;
    this.parent = parent.subarray(0, n);
    this.func = func.subarray(0, n);
    this.depth = depth.subarray(0, n);
    this.first = new Int32Array(n).fill(-1);
    this.next = new Int32Array(n).fill(-1);
    for (let i = n - 1; i > 0; i--) {
      this.next[i] = this.first[parent[i]];
      this.first[parent[i]] = i;
    }
    this.stackNode = this.sides.map((e, side) => e.stackNode.map(x => this.nodeOf[side][x]));
  }

  // Nodes whose function is not among their callers: the sum over them counts no recursion twice.
  get outer() {
    if (this.outerNodes) return this.outerNodes;
    const out = new Uint8Array(this.nnodes).fill(1), on = new Int32Array(this.name.length), { first, next, parent, func } = this;
    let at = first[0];
    while (at > 0) {
      out[at] = on[func[at]]++ ? 0 : 1;
      if (first[at] > 0) {
        at = first[at];
        continue;
      }
      while (at > 0) {
        on[func[at]]--;
        if (next[at] > 0) {
          at = next[at];
          break;
        }
        at = parent[at];
      }
    }
    this.outerNodes = out;
    return out;
  }

  // Which stacks a filter leaves.
  stacksOf(side, filter) {
    const e = this.sides[side], n = e.stackNode.length, ok = new Uint8Array(n), of = this.funcOf[side];
    for (let s = 0; s < n; s++) {
      const t = e.stackTask[s];
      if (filter.task !== "") {
        const comm = e.text[e.comm[t]];
        if (filter.task[0] === "=" ? comm !== filter.task.slice(1) : filter.task !== e.pid[t] + "/" + e.tid[t]) continue;
      }
      if (filter.mode !== "" && MODE_NAME[e.stackKind[s] >> 4] !== filter.mode) continue;
      if (filter.dso !== "" && (e.top[s] < 0 ? "" : this.dso[of[e.frameFunc[e.top[s]]]]) !== filter.dso) continue;
      ok[s] = 1;
    }
    return ok;
  }

  // [from, to) as indexes of samples, for a span of time or null, and a phase.
  range(side, filter) {
    const e = this.sides[side];
    let from = 0, to = e.n;
    const cut = (a, b) => {
      from = Math.max(from, after(e.time, a));
      to = Math.min(to, after(e.time, b));
    };
    if (filter.span && e.hasTime) cut(filter.span[0], filter.span[1]);
    if (filter.phase !== "") {
      const p = e.profile.phases.find(x => x.name === filter.phase);
      if (!p) return [0, 0];
      cut(p.from, p.to);
    }
    return [from, Math.max(from, to)];
  }

  // Sums weights by stack, then by node.
  select(filter) {
    this.filter = filter;
    this.allowed = this.sides.map((e, side) => this.stacksOf(side, filter));
    this.rangeOf = this.sides.map((e, side) => this.range(side, filter));
    this.stackWeight = [];
    this.samples = [];
    this.self = [];
    this.total = [];
    this.grand = [];
    this.sides.forEach((e, side) => {
      const w = new Float64Array(e.stackNode.length), ok = this.allowed[side], [from, to] = this.rangeOf[side];
      const cpu = filter.cpu === "" ? -1 : +filter.cpu + 1;
      let n = 0;
      for (let i = from; i < to; i++) {
        const s = e.stack[i];
        if (!ok[s] || (cpu >= 0 && e.cpu[i] !== cpu)) continue;
        w[s] += e.weight[i];
        n++;
      }
      const self = new Float64Array(this.nnodes), node = this.stackNode[side], parent = this.parent;
      for (let s = 0; s < w.length; s++) self[node[s]] += w[s];
      const total = self.slice();
      for (let i = this.nnodes - 1; i > 0; i--) total[parent[i]] += total[i];
      this.stackWeight.push(w);
      this.samples.push(n);
      this.self.push(self);
      this.total.push(total);
      this.grand.push(total[0]);
    });
    this.byFunction = null;
  }

  // {self, total} of each function, for each side.
  functions() {
    if (this.byFunction) return this.byFunction;
    const outer = this.outer;
    this.byFunction = this.sides.map((e, side) => {
      const self = new Float64Array(this.name.length), total = new Float64Array(this.name.length);
      for (let i = 1; i < this.nnodes; i++) {
        self[this.func[i]] += this.self[side][i];
        if (outer[i]) total[this.func[i]] += this.total[side][i];
      }
      return { self, total };
    });
    return this.byFunction;
  }

  // Marks functions that match, and sums the share of what is below them.
  search(test) {
    const hit = new Uint8Array(this.name.length), share = [];
    let n = 0;
    for (let f = 0; f < hit.length; f++)
      if (test(this.name[f]) || (this.dso[f] && test(this.dso[f]))) {
        hit[f] = 1;
        n++;
      }
    const below = new Uint8Array(this.nnodes);
    for (let i = 1; i < this.nnodes; i++) below[i] = below[this.parent[i]] | hit[this.func[i]];
    this.sides.forEach((e, side) => {
      let sum = 0;
      for (let i = 1; i < this.nnodes; i++) if (below[i]) sum += this.self[side][i];
      share.push(sum);
    });
    return { hit, below, n, share };
  }

  path(node) {
    const out = [];
    for (; node > 0; node = this.parent[node]) out.push(this.func[node]);
    return out.reverse();
  }
}

// Index of the first element that is greater than t.
function after(times, t) {
  let a = 0, b = times.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (times[m] <= t) a = m + 1;
    else b = m;
  }
  return a;
}

// The place of each stack of an event.
function placesOf(e) {
  const out = new Uint8Array(e.stackKind.length);
  for (let s = 0; s < out.length; s++) {
    const mode = Math.min(e.stackKind[s] >> 4, 3), where = PLACE_OF_WHERE[e.stackKind[s] & 15];
    out[s] = where >= 0 ? where : mode;
  }
  return out;
}

// A set of nodes that are drawn as one box: nodes of one function. `up` groups grow towards
// callers: `at` is where each node's walk has come, and its weights stay those of its start.
class Group {
  constructor(model, func, at, weights) {
    this.model = model;
    this.func = func;
    this.at = at;               // array of nodes
    this.weights = weights;     // for each side an array of weights; null: those of the nodes' totals
    this.sum = model.sides.map((e, side) => {
      let sum = 0;
      for (let i = 0; i < at.length; i++) sum += weights ? weights[side][i] : model.total[side][at[i]];
      return sum;
    });
  }

  get size() {
    return this.sum[0];
  }

  // Groups of the callees, or of the callers; sorted by weight.
  children() {
    if (this.kids) return this.kids;
    const m = this.model, of = new Map(), sides = m.sides.length;
    const place = f => {
      let g = of.get(f);
      if (!g) of.set(f, g = { at: [], w: this.weights ? m.sides.map(() => []) : null });
      return g;
    };
    if (this.weights) {
      for (let i = 0; i < this.at.length; i++) {
        const p = m.parent[this.at[i]];
        if (p <= 0 || (this.stop && m.kind[m.func[p]] === KIND.TASK)) continue;
        const g = place(m.func[p]);
        g.at.push(p);
        for (let s = 0; s < sides; s++) g.w[s].push(this.weights[s][i]);
      }
    } else {
      for (const node of this.at)
        for (let k = m.first[node]; k > 0; k = m.next[k]) {
          let some = false;
          for (let s = 0; s < sides; s++) some = some || m.total[s][k] > 0;
          if (some) place(m.func[k]).at.push(k);
        }
    }
    this.kids = Array.from(of, ([f, g]) => {
      const kid = new Group(m, f, g.at, g.w);
      kid.stop = this.stop;
      return kid;
    }).filter(g => g.sum.some(x => x > 0)).sort((a, b) => sizeOf(b) - sizeOf(a) || a.func - b.func);
    return this.kids;
  }
}

function sizeOf(g) {
  return Math.max(...g.sum.map((x, side) => x / (g.model.grand[side] || 1)));
}

// The root of all callees; without tasks its children are those of all tasks together.
function calleesRoot(m, withTasks) {
  const root = new Group(m, -1, [0], null);
  if (!withTasks) {
    const tasks = [];
    for (let k = m.first[0]; k > 0; k = m.next[k]) tasks.push(k);
    root.at = tasks;
  }
  return root;
}

// The root of all callers: its children are the functions with time of their own.
function callersRoot(m, withTasks) {
  const at = [], w = m.sides.map(() => []);
  for (let i = 1; i < m.nnodes; i++)
    if (m.self.some(s => s[i] > 0)) {
      at.push(i);
      m.sides.forEach((e, s) => w[s].push(m.self[s][i]));
    }
  const root = new Group(m, -1, at, w), of = new Map();
  root.stop = !withTasks;
  for (let i = 0; i < at.length; i++) {
    const f = m.func[at[i]];
    if (root.stop && m.kind[f] === KIND.TASK) continue;
    let g = of.get(f);
    if (!g) of.set(f, g = { at: [], w: m.sides.map(() => []) });
    g.at.push(at[i]);
    m.sides.forEach((e, s) => g.w[s].push(w[s][i]));
  }
  root.kids = Array.from(of, ([f, g]) => {
    const kid = new Group(m, f, g.at, g.w);
    kid.stop = root.stop;
    return kid;
  }).sort((a, b) => sizeOf(b) - sizeOf(a) || a.func - b.func);
  return root;
}

// A function's own group: its callees (outermost calls only), or its callers.
function functionRoot(m, f, callers) {
  const at = [], outer = m.outer;
  for (let i = 1; i < m.nnodes; i++) if (m.func[i] === f && outer[i] && m.total.some(t => t[i] > 0)) at.push(i);
  return new Group(m, f, at, callers ? m.sides.map((e, s) => at.map(i => m.total[s][i])) : null);
}
