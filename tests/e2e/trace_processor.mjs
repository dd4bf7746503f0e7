// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Perfetto's trace processor, as WebAssembly in node: opens a trace and answers SQL.
 *
 *   node trace_processor.mjs DIRECTORY TRACE QUERIES
 *
 * DIRECTORY has Perfetto's own build (trace_processor.wasm, its loader engine_bundle.node.js and
 * the UI's decoder of answers engine.mjs), as perfetto.py fetches it. QUERIES is a file, a JSON
 * list of SQL texts; standard output is a JSON list of answers, each a list of rows, each an object.
 *
 * The loader is for a browser's worker: it fetches the module, and waits for a message with the
 * port to talk through.
 */
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [directory, trace, asked] = process.argv.slice(2);
const queries = JSON.parse(readFileSync(asked, "utf8"));
const { EngineBase } = await import(`${directory}/engine.mjs`);
const wasm = readFileSync(`${directory}/trace_processor.wasm`);

Object.defineProperty(globalThis, "self", { value: globalThis, writable: true });
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: `file://${directory}/` };
globalThis.XMLHttpRequest = class {
	open() {}
	send() {
		this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length);
	}
};
// The loader asks for 64-bit memory by compiling a module with such; here is
// the other build.
const Module = WebAssembly.Module;
WebAssembly.Module = function (bytes) {
	if (bytes[8] === 5 && bytes[11] === 4) // a memory section, of 64 bits
		throw new WebAssembly.CompileError("32-bit memory only");
	return new Module(bytes);
};
console.warn = (line) => process.stderr.write(`${line}\n`);

vm.runInThisContext(readFileSync(`${directory}/engine_bundle.node.js`, "utf8"));

class Engine extends EngineBase {
	constructor(port) {
		super();
		this.mode = "WASM";
		this.id = "test";
		this.port = port;
		port.onmessage = (m) => this.onRpcResponseBytes(m.data);
	}
	rpcSendRequestBytes(data) {
		this.port.postMessage(data);
	}
}

const channel = new MessageChannel();
const engine = new Engine(channel.port2);
await new Promise((r) => setImmediate(r)); // the module's promise that it runs
globalThis.onmessage({ data: channel.port1 });

const bytes = new Uint8Array(readFileSync(trace));
for (let at = 0; at < bytes.length; at += 16 << 20)
	await engine.parse(bytes.subarray(at, at + (16 << 20)));
await engine.notifyEof();
const answers = [];
for (const sql of queries) {
	const result = await engine.query(sql);
	const columns = result.columns();
	const rows = [];
	for (const it = result.iter({}); it.valid(); it.next())
		rows.push(Object.fromEntries(columns.map((c) => [c, it.get(c)])));
	answers.push(rows);
}
// The engine keeps node alive: it ends when all is written.
process.stdout.write(
	JSON.stringify(answers, (k, v) => (typeof v === "bigint" ? Number(v) : v)),
	() => process.exit(0),
);
