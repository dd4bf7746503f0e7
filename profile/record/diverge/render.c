/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/diverge/private.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "symbolizer/core/disasm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REGISTERS EXACT_REGISTERS
#define CODE_TEXT (DISASM_OPERANDS + 64u)

static const char *const register_names[REGISTERS] = { EXACT_REGISTER_NAMES };

static const char *const how_names[] = {
	[DIFFERENCE_END] = "end",
	[DIFFERENCE_CODE] = "code",
	[DIFFERENCE_JUMP] = "jump",
	[DIFFERENCE_INTERRUPT] = "interrupt",
};

static const char side_letter[] = "AB";

struct renderer {
	const struct diverge *d;
	struct buf *out;
	struct disasm *disasm; /* NULL: unavailable */
};

static uint64_t render_register(const struct exact_regs *r, unsigned int i)
{
	uint64_t words[REGISTERS];

	memcpy(words, r, sizeof(words));
	return words[i];
}

static void render_code(const struct renderer *s, const struct difference_insn *insn,
			char text[CODE_TEXT])
{
	struct disasm_insn at;
	int n;

	text[0] = '\0';
	if (!s->disasm || !insn->len)
		return;
	disasm_one(s->disasm, insn->pc, insn->code, insn->len, &at);
	n = snprintf(text, CODE_TEXT, "%s", at.mnemonic);
	if (at.operands[0])
		snprintf(text + n, CODE_TEXT - (size_t)n, " %s", at.operands);
	else if (at.has_target)
		snprintf(text + n, CODE_TEXT - (size_t)n, " 0x%" PRIx64, at.target);
}

static const struct diverge_frame *render_frame_of(const struct renderer *s, unsigned int side,
						   enum diverge_place place)
{
	const struct diverge_stack *st = &s->d->stack[side][place];

	return st->n ? &st->frame[0] : NULL;
}

/* Appends "0xffffffff81000010 start_kernel+0x10 (main.c:880)  jne 0xffffffff81000030". */
static void render_insn(const struct renderer *s, const struct difference_insn *insn,
			unsigned int side, enum diverge_place place)
{
	const struct diverge_frame *f = render_frame_of(s, side, place);
	char code[CODE_TEXT];

	render_code(s, insn, code);
	buf_printf(s->out, "    0x%" PRIx64, insn->pc);
	if (f && f->symbol)
		buf_printf(s->out, " %s", f->symbol);
	if (f && f->line)
		buf_printf(s->out, " (%s)", f->line);
	buf_printf(s->out, "\n        ");
	for (unsigned int i = 0; i < insn->len; i++)
		buf_printf(s->out, "%02x ", insn->code[i]);
	buf_printf(s->out, " %s\n", code);
}

static void render_stack(const struct renderer *s, unsigned int side, enum diverge_place place,
			 const char *whose)
{
	const struct diverge_stack *st = &s->d->stack[side][place];

	if (!st->n)
		return;
	buf_printf(s->out, "\nStack %s", whose);
	if (st->comm && *st->comm)
		buf_printf(s->out, " (%s, pid %" PRIu32 ", vCPU %" PRIu32 ")", st->comm, st->pid,
			   st->cpu);
	buf_printf(s->out, ":\n");
	for (unsigned int i = 0; i < st->n; i++) {
		const struct diverge_frame *f = &st->frame[i];

		buf_printf(s->out, "    %16" PRIx64 " %s", f->ip,
			   f->symbol ? f->symbol : "[unknown]");
		if (f->dso)
			buf_printf(s->out, " (%s)", f->dso);
		if (f->line)
			buf_printf(s->out, " %s", f->line);
		buf_u8(s->out, '\n');
	}
}

static void render_access(const struct renderer *s, const struct trace_access *a)
{
	for (unsigned int i = 0; i < 2; i++) {
		buf_printf(s->out, "    %c %s %u byte%s at 0x%" PRIx64 ": 0x", side_letter[i],
			   a[i].kind == TRACE_READ ? "reads" : "writes", a[i].size,
			   a[i].size == 1 ? "" : "s", a[i].va);
		if (a[i].size == 16)
			buf_printf(s->out, "%016" PRIx64, a[i].high);
		buf_printf(s->out, "%0*" PRIx64 "\n", a[i].size >= 8 ? 16 : 2 * a[i].size,
			   a[i].value);
	}
}

static void render_registers(const struct renderer *s, const struct exact_regs *r)
{
	bool any = false;

	for (unsigned int i = 0; i < REGISTERS; i++) {
		uint64_t a = render_register(&r[0], i), b = render_register(&r[1], i);

		/* The address was printed before. */
		if (a == b || !strcmp(register_names[i], "rip"))
			continue;
		if (!any)
			buf_printf(s->out, "    %-9s  %-18s  %s\n", "", "A", "B");
		any = true;
		buf_printf(s->out, "    %-9s  0x%016" PRIx64 "  0x%016" PRIx64 "\n",
			   register_names[i], a, b);
	}
	if (!any)
		buf_printf(s->out, "    none\n");
}

/* -- the runs' inputs -------------------------------------------------------------------------- */

static void render_value_text(struct buf *out, const json_t *v, const char *key)
{
	if (json_is_string(v))
		buf_printf(out, "%.*s", strstr(key, "sha256") ? 16 : 300, json_string_value(v));
	else
		buf_printf(out, "%" PRId64, (int64_t)json_integer_value(v));
}

/* The inputs of the runs, which may differ. */
static const struct {
	const char *key, *what;
} facts[] = {
	{ "memory_bytes", "memory in bytes" },	   { "vcpus", "vCPUs" },
	{ "cmdline", "kernel's command line" },	   { "kernel_sha256", "kernel (SHA-256)" },
	{ "initrd_sha256", "RAM disk (SHA-256)" }, { "machine", "QEMU's options" },
};

/* Returns the index of the first fact from `i` on that differs, or that of the end. */
static size_t render_next_input(const struct renderer *s, size_t i, bool any)
{
	const json_t *a = s->d->side[0].again, *b = s->d->side[1].again;

	while (i < ARRAY_SIZE(facts)) {
		/* QEMU's options contain memory and vCPUs, too. */
		if (!json_equal(json_object_get(a, facts[i].key),
				json_object_get(b, facts[i].key)) &&
		    !(any && !strcmp(facts[i].key, "machine")))
			break;
		i++;
	}
	return i;
}

static void render_inputs(const struct renderer *s)
{
	bool any = false;

	for (size_t i = 0; (i = render_next_input(s, i, any)) < ARRAY_SIZE(facts); i++) {
		const char *key = facts[i].key;

		buf_printf(s->out, "%s    %s: ", any ? "" : "What the runs are of differs:\n",
			   facts[i].what);
		render_value_text(s->out, json_object_get(s->d->side[0].again, key), key);
		buf_printf(s->out, " and ");
		render_value_text(s->out, json_object_get(s->d->side[1].again, key), key);
		buf_u8(s->out, '\n');
		any = true;
	}
	if (any)
		buf_u8(s->out, '\n');
}

/* -- text ------------------------------------------------------------------------------------- */

static void render_how(const struct renderer *s)
{
	const struct difference_flow *f = &s->d->flow;
	char code[2][CODE_TEXT];

	buf_printf(s->out, "\nHow: ");
	switch (f->how) {
	case DIFFERENCE_END:
		buf_printf(s->out, "%c ends here, and %c goes on.\n", side_letter[f->side],
			   side_letter[!f->side]);
		break;
	case DIFFERENCE_CODE:
		render_code(s, &f->next[0], code[0]);
		render_code(s, &f->next[1], code[1]);
		buf_printf(s->out, "other code at the same address: A has `%s`, B has `%s`.\n",
			   code[0], code[1]);
		break;
	case DIFFERENCE_INTERRUPT:
		buf_printf(s->out, "an interrupt or exception comes in %c and not in %c.\n",
			   side_letter[f->side], side_letter[!f->side]);
		break;
	case DIFFERENCE_JUMP:
		buf_printf(s->out,
			   "the same instruction leads elsewhere, by what registers or memory "
			   "have.\n");
	}
}

static void render_since(const struct renderer *s)
{
	const struct difference_regs *r = &s->d->regs;
	char code[CODE_TEXT];

	if (!r->found)
		return;
	if (r->before) {
		buf_printf(s->out, "Registers differ since more than %u instructions before.\n",
			   DIVERGE_BACK);
		return;
	}
	if (r->access[0].kind) {
		render_code(s, &r->insn, code);
		buf_printf(s->out,
			   "Registers differ since instruction %" PRIu64 ", 0x%" PRIx64 " `%s`:\n",
			   r->insn.number, r->insn.pc, code);
		render_access(s, r->access);
		return;
	}
	render_code(s, &r->from, code);
	buf_printf(s->out,
		   "Registers differ since instruction %" PRIu64
		   ", by the block that begins at 0x%" PRIx64 " `%s`.\n",
		   r->number, r->from.pc, code);
}

static void render_flow(const struct renderer *s)
{
	const struct difference_flow *f = &s->d->flow;
	uint64_t number = f->next[0].number ? f->next[0].number : f->next[1].number;

	buf_printf(s->out, "The runs part at instruction %" PRIu64 " (%.6f s of virtual time).\n\n",
		   number, (double)EXACT_NS_AT(number) / 1e9);
	if (f->last.number) {
		buf_printf(s->out, "The last one that both execute:\n");
		render_insn(s, &f->last, 0, DIVERGE_LAST);
	}
	for (unsigned int i = 0; i < 2; i++) {
		buf_printf(s->out, "%c then:\n", side_letter[i]);
		if (f->next[i].number)
			render_insn(s, &f->next[i], i, DIVERGE_NEXT);
		else
			buf_printf(s->out, "    ends\n");
	}
	render_how(s);
	if (f->next[0].number && f->next[1].number) {
		buf_printf(s->out, "\nRegisters that differ there:\n");
		render_registers(s, f->regs);
		render_since(s);
	}
}

static void render_value(const struct renderer *s)
{
	const struct difference_value *v = &s->d->value;

	if (!v->found) {
		if (!s->d->has_values)
			buf_printf(s->out,
				   "\nWhich value differed first is not known: QEMU tells of "
				   "values from 9.2 on.\n");
		else if (s->d->flow.found)
			buf_printf(s->out, "\nNo value that was read or written before differs.\n");
		return;
	}
	buf_printf(s->out, "%sThe first value that differs is at instruction %" PRIu64 ":\n",
		   s->d->flow.found ? "\n" : "", v->insn.number);
	render_insn(s, &v->insn, 0, DIVERGE_VALUE);
	render_access(s, v->access);
}

void diverge_text(const struct diverge *d, struct buf *out, struct err *e)
{
	struct renderer s = { .d = d, .out = out };

	/* Without a disassembler bytes are printed. */
	(void)disasm_open(&s.disasm, DISASM_ATT, e);
	render_inputs(&s);
	if (diverge_is_same(d)) {
		buf_printf(out, "The runs are the same: %" PRIu64 " instructions%s.\n", d->count[0],
			   d->has_values ? ", and each value that they read or wrote" : "");
	} else if (d->flow.found) {
		render_flow(&s);
		render_value(&s);
	} else {
		buf_printf(out,
			   "Both runs execute the same %" PRIu64
			   " instructions, with other values.\n\n",
			   d->count[0]);
		render_value(&s);
	}
	if (d->value.found)
		render_stack(&s, 0, DIVERGE_VALUE, "where the first value differs");
	if (d->flow.found) {
		render_stack(&s, 0, DIVERGE_NEXT, "of A where they part");
		render_stack(&s, 1, DIVERGE_NEXT, "of B where they part");
	}
	disasm_close(s.disasm);
}

/* -- JSON ------------------------------------------------------------------------------------- */

static void json_insn(struct json_writer *w, const struct renderer *s, const char *key,
		      const struct difference_insn *insn, const struct diverge_stack *st)
{
	char code[CODE_TEXT], bytes[2 * DIFFERENCE_INSN_MAX + 1] = "";

	json_line(w);
	if (!insn->number) {
		json_raw(w, key, "null");
		return;
	}
	render_code(s, insn, code);
	for (unsigned int i = 0; i < insn->len; i++)
		snprintf(bytes + 2 * i, 3, "%02x", insn->code[i]);
	json_object_begin(w, key);
	json_put(w, "instruction", insn->number, "address", json_address(insn->pc), "bytes", bytes,
		 "code", code, "comm", st->comm ? st->comm : "", "pid", st->pid, "vcpu", st->cpu);
	json_array_begin(w, "stack");
	for (unsigned int i = 0; i < st->n; i++) {
		const struct diverge_frame *f = &st->frame[i];

		json_put_object(w, NULL, "address", json_address(f->ip), "symbol",
				f->symbol ? f->symbol : "", "dso", f->dso ? f->dso : "", "line",
				f->line ? f->line : "");
	}
	json_array_end(w);
	json_object_end(w);
}

static void json_registers(struct json_writer *w, const struct exact_regs *r)
{
	json_line(w);
	json_object_begin(w, "registers");
	for (unsigned int i = 0; i < REGISTERS; i++) {
		uint64_t a = render_register(&r[0], i), b = render_register(&r[1], i);

		if (a == b)
			continue;
		json_array_begin(w, register_names[i]);
		json_hex(w, NULL, a);
		json_hex(w, NULL, b);
		json_array_end(w);
	}
	json_object_end(w);
}

static void json_access(struct json_writer *w, const struct trace_access *access)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct trace_access *a = &access[i];

		json_put_object(w, i ? "b" : "a", "access",
				a->kind == TRACE_READ ? "read" : "write", "address",
				json_address(a->va), "size", a->size, "value",
				json_address(a->value), "high", json_address(a->high));
	}
}

static void json_since(struct json_writer *w, const struct difference_regs *r)
{
	bool known = r->access[0].kind != 0;

	if (!r->found || r->before) {
		json_raw(w, "registers_since", "null");
		return;
	}
	json_object_begin(w, "registers_since");
	json_put(w, "instruction", known ? r->insn.number : r->number, "address",
		 json_address(known ? r->insn.pc : r->from.pc));
	if (known)
		json_access(w, r->access);
	json_object_end(w);
}

static void json_flow(struct json_writer *w, const struct renderer *s)
{
	const struct difference_flow *f = &s->d->flow;
	const char *side = f->side ? "b" : "a";

	json_line(w);
	if (!f->found) {
		json_raw(w, "control", "null");
		return;
	}
	json_object_begin(w, "control");
	json_put(w, "how", how_names[f->how], "side",
		 f->how == DIFFERENCE_END || f->how == DIFFERENCE_INTERRUPT ? side : NULL);
	json_insn(w, s, "last", &f->last, &s->d->stack[0][DIVERGE_LAST]);
	for (unsigned int i = 0; i < 2; i++)
		json_insn(w, s, i ? "b" : "a", &f->next[i], &s->d->stack[i][DIVERGE_NEXT]);
	json_registers(w, f->regs);
	json_since(w, &s->d->regs);
	json_object_end(w);
}

void diverge_json(const struct diverge *d, struct buf *out, struct err *e)
{
	struct renderer s = { .d = d, .out = out };
	struct json_writer w;
	bool any = false;

	(void)disasm_open(&s.disasm, DISASM_ATT, e);
	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_bool(&w, "same", diverge_is_same(d));
	json_array_begin(&w, "instructions");
	json_u64(&w, NULL, d->count[0]);
	json_u64(&w, NULL, d->count[1]);
	json_array_end(&w);
	json_array_begin(&w, "inputs");
	for (size_t i = 0; (i = render_next_input(&s, i, any)) < ARRAY_SIZE(facts); i++, any = true)
		json_str(&w, NULL, facts[i].key);
	json_array_end(&w);
	json_flow(&w, &s);
	json_line(&w);
	if (d->value.found) {
		json_object_begin(&w, "value");
		json_insn(&w, &s, "at", &d->value.insn, &d->stack[0][DIVERGE_VALUE]);
		json_access(&w, d->value.access);
		json_object_end(&w);
	} else {
		json_raw(&w, "value", "null");
	}
	json_object_end(&w);
	buf_u8(out, '\n');
	disasm_close(s.disasm);
}
