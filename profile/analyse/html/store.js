// SPDX-License-Identifier: GPL-2.0-or-later
// Reads the data of the page (page.c, data.c): JSON text, and columns of LEB128 numbers.

// Control, format and bidi characters: a guest chooses its names, and they must not disturb others.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function clean(text) {
  return String(text).replace(UNSEEN, "\ufffd");
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

async function inflate(bytes) {
  if (!window.DecompressionStream) throw new Error("this browser is too old: it lacks DecompressionStream");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Reads a column into a typed array, from its element `first` on.
function column(store, place, Type, first = 0) {
  const bytes = store.columns, n = place[2], out = new Type(n + first);
  let at = place[0];
  for (let i = first; i < n + first; i++) {
    let b = bytes[at++], v = b & 127, scale = 128;
    while (b > 127) {
      b = bytes[at++];
      v += (b & 127) * scale;
      scale *= 128;
    }
    out[i] = v;
  }
  return out;
}

// Reads a column of signed differences as their sums.
function sums(store, place) {
  const bytes = store.columns, n = place[2], out = new Float64Array(n);
  let at = place[0], sum = 0;
  for (let i = 0; i < n; i++) {
    let b = bytes[at++], v = b & 127, scale = 128;
    while (b > 127) {
      b = bytes[at++];
      v += (b & 127) * scale;
      scale *= 128;
    }
    sum += v % 2 ? -(v + 1) / 2 : v / 2;
    out[i] = sum;
  }
  return out;
}

// One event of a profile, decoded when it is shown first.
function decodeEvent(store, profile, raw) {
  if (raw.decoded) return raw.decoded;
  const c = raw.columns, text = raw.strings.map(clean);
  const up = column(store, c.nup, Int32Array, 1);
  for (let i = 1; i < up.length; i++) up[i] = i - up[i];
  up[0] = -1;
  const event = {
    profile, raw, text, up,
    name: clean(raw.name || "samples"), isTime: raw.ns, counted: raw.counted,
    funcName: column(store, c.fname, Uint32Array), funcDso: column(store, c.fdso, Uint32Array),
    funcKind: column(store, c.fkind, Uint8Array),
    frameFunc: column(store, c.ffunc, Uint32Array), frameOff: column(store, c.foff, Float64Array),
    pid: column(store, c.tpid, Float64Array), tid: column(store, c.ttid, Float64Array), comm: column(store, c.tcomm, Uint32Array),
    item: column(store, c.nitem, Uint32Array, 1),
    stackNode: column(store, c.snode, Uint32Array), stackTask: column(store, c.stask, Uint32Array),
    stackKind: column(store, c.skind, Uint8Array),
    time: sums(store, c.mtime), stack: column(store, c.mstack, Uint32Array),
    cpu: column(store, c.mcpu, Uint16Array), weight: sums(store, c.mweight),
    code: new Map((raw.code || []).map(f => [f.f, f])),
  };
  event.n = event.time.length;
  event.top = new Int32Array(event.stackNode.length).fill(-1);   // innermost frame of each stack
  for (let s = 0; s < event.top.length; s++)
    if (up[event.stackNode[s]] > 0) event.top[s] = event.item[event.stackNode[s]];
  event.from = event.n ? event.time[0] : 0;
  event.to = event.n ? event.time[event.n - 1] : 0;
  if (event.n && event.isTime) event.from = Math.min(event.from, Math.max(event.from - event.weight[0], event.from - (event.to - event.from)));
  event.hasTime = !event.counted && event.to > event.time[0];
  raw.decoded = event;
  return event;
}

async function openStore() {
  const element = document.getElementById("data");
  const bytes = await inflate(bytesOf(element.textContent));
  element.remove();
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const store = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  store.columns = bytes.subarray(4 + length);
  for (const p of store.profiles) {
    p.file = clean(p.file);
    p.phases = (p.phases || []).map(x => ({ name: clean(x[0]), from: x[1], to: x[2] }));
    p.markers = (p.markers || []).map(x => ({ time: x[0], name: clean(x[1]), kind: clean(x[2]) }));
    p.requests = requestsOf(p.requests, p.request_steps, false).concat(requestsOf(p.packets, p.packet_steps, true));
  }
  return store;
}

const WHAT = { R: "read", W: "write", F: "flush", D: "discard", Z: "zeroes" };

function requestsOf(rows, names, isPacket) {
  return (rows || []).map(r => {
    const steps = [];
    let from = null, to = null;
    names.forEach((name, i) => {
      const at = r[8 + i];
      if (at === null || (to !== null && at < to)) return;
      if (from === null) from = at;
      else steps.push({ name, from: to, to: at });
      to = at;
    });
    const what = clean(r[1] || "");
    return { device: clean(r[0]), what: WHAT[what] || what || "request", bytes: r[2], comm: clean(r[3] || ""), pid: r[4],
      vcpu: r[5], sector: r[6], ok: r[7], from, to, steps, isPacket };
  });
}
