/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/diverge/diverge.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/compare/diverge/private.h"
#include "symbolizer/core/disasm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REGISTERS EXACT_REGISTERS
#define CODE_TEXT (DISASM_OPERANDS + 64u)

static const char *const register_names[REGISTERS] = { EXACT_REGISTER_NAMES };

static const char *const how_names[] = {
	[PART_END] = "end",
	[PART_CODE] = "code",
	[PART_JUMP] = "jump",
	[PART_INTERRUPT] = "interrupt",
};

static const char side_letter[] = "AB";

struct saying {
	const struct diverge *d;
	struct buf *out;
	struct disasm *disasm; /* NULL: there is none */
};

static uint64_t say_register(const struct exact_regs *r, unsigned int i)
{
	uint64_t words[REGISTERS];

	memcpy(words, r, sizeof(words));
	return words[i];
}

static void say_code(const struct saying *s, const struct part_insn *insn, char text[CODE_TEXT])
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

static const struct diverge_frame *say_frame_of(const struct saying *s, unsigned int side,
						enum diverge_place place)
{
	const struct diverge_stack *st = &s->d->stack[side][place];

	return st->n ? &st->frame[0] : NULL;
}

/* "0xffffffff81000010 start_kernel+0x10 (main.c:880)  jne 0xffffffff81000030" */
static void say_insn(const struct saying *s, const struct part_insn *insn, unsigned int side,
		     enum diverge_place place)
{
	const struct diverge_frame *f = say_frame_of(s, side, place);
	char code[CODE_TEXT];

	say_code(s, insn, code);
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

static void say_stack(const struct saying *s, unsigned int side, enum diverge_place place,
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

static void say_access(const struct saying *s, const struct trace_access *a)
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

static void say_registers(const struct saying *s, const struct exact_regs *r)
{
	bool any = false;

	for (unsigned int i = 0; i < REGISTERS; i++) {
		uint64_t a = say_register(&r[0], i), b = say_register(&r[1], i);

		/* The address is what has been told before. */
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

/* -- what the runs are of --------------------------------------------------------------------- */

static void say_value_text(struct buf *out, const json_t *v, const char *key)
{
	if (json_is_string(v))
		buf_printf(out, "%.*s", strstr(key, "sha256") ? 16 : 300, json_string_value(v));
	else
		buf_printf(out, "%" PRId64, (int64_t)json_integer_value(v));
}

/* What differs of what the runs were made of; as words, or JSON with quote. */
static void say_inputs(const struct saying *s, bool json)
{
	static const struct {
		const char *key, *what;
	} facts[] = {
		{ "memory_bytes", "memory in bytes" },	   { "vcpus", "vCPUs" },
		{ "cmdline", "kernel's command line" },	   { "kernel_sha256", "kernel (SHA-256)" },
		{ "initrd_sha256", "RAM disk (SHA-256)" }, { "machine", "QEMU's options" },
	};
	const json_t *a = s->d->side[0].again, *b = s->d->side[1].again;
	bool any = false;

	for (unsigned int i = 0; i < ARRAY_SIZE(facts); i++) {
		const json_t *v = json_object_get(a, facts[i].key),
			     *w = json_object_get(b, facts[i].key);

		/* The options have memory and vCPUs, too. */
		if (json_equal(v, w) || (any && !strcmp(facts[i].key, "machine")))
			continue;
		if (json) {
			buf_printf(s->out, "%s\"%s\"", any ? "," : "", facts[i].key);
		} else {
			buf_printf(s->out, "%s", any ? "" : "What the runs are of differs:\n");
			buf_printf(s->out, "    %s: ", facts[i].what);
			say_value_text(s->out, v, facts[i].key);
			buf_printf(s->out, " and ");
			say_value_text(s->out, w, facts[i].key);
			buf_u8(s->out, '\n');
		}
		any = true;
	}
	if (any && !json)
		buf_u8(s->out, '\n');
}

/* -- text ------------------------------------------------------------------------------------- */

static void say_how(const struct saying *s)
{
	const struct part_flow *f = &s->d->flow;
	char code[2][CODE_TEXT];

	buf_printf(s->out, "\nHow: ");
	switch (f->how) {
	case PART_END:
		buf_printf(s->out, "%c ends here, and %c goes on.\n", side_letter[f->side],
			   side_letter[!f->side]);
		break;
	case PART_CODE:
		say_code(s, &f->next[0], code[0]);
		say_code(s, &f->next[1], code[1]);
		buf_printf(s->out, "other code at the same address: A has `%s`, B has `%s`.\n",
			   code[0], code[1]);
		break;
	case PART_INTERRUPT:
		buf_printf(s->out, "an interrupt or exception comes in %c and not in %c.\n",
			   side_letter[f->side], side_letter[!f->side]);
		break;
	case PART_JUMP:
		buf_printf(s->out,
			   "the same instruction leads elsewhere, by what registers or memory "
			   "have.\n");
	}
}

static void say_since(const struct saying *s)
{
	const struct part_regs *r = &s->d->regs;
	char code[CODE_TEXT];

	if (!r->found)
		return;
	if (r->before) {
		buf_printf(s->out, "Registers differ since more than %u instructions before.\n",
			   DIVERGE_BACK);
		return;
	}
	if (r->access[0].kind) {
		say_code(s, &r->insn, code);
		buf_printf(s->out,
			   "Registers differ since instruction %" PRIu64 ", 0x%" PRIx64 " `%s`:\n",
			   r->insn.number, r->insn.pc, code);
		say_access(s, r->access);
		return;
	}
	say_code(s, &r->from, code);
	buf_printf(s->out,
		   "Registers differ since instruction %" PRIu64
		   ", by the block that begins at 0x%" PRIx64 " `%s`.\n",
		   r->number, r->from.pc, code);
}

static void say_flow(const struct saying *s)
{
	const struct part_flow *f = &s->d->flow;
	uint64_t number = f->next[0].number ? f->next[0].number : f->next[1].number;

	buf_printf(s->out, "The runs part at instruction %" PRIu64 " (%.6f s of virtual time).\n\n",
		   number, (double)EXACT_NS_AT(number) / 1e9);
	if (f->last.number) {
		buf_printf(s->out, "The last one that both execute:\n");
		say_insn(s, &f->last, 0, DIVERGE_LAST);
	}
	for (unsigned int i = 0; i < 2; i++) {
		buf_printf(s->out, "%c then:\n", side_letter[i]);
		if (f->next[i].number)
			say_insn(s, &f->next[i], i, DIVERGE_NEXT);
		else
			buf_printf(s->out, "    ends\n");
	}
	say_how(s);
	if (f->next[0].number && f->next[1].number) {
		buf_printf(s->out, "\nRegisters that differ there:\n");
		say_registers(s, f->regs);
		say_since(s);
	}
}

static void say_value(const struct saying *s)
{
	const struct part_value *v = &s->d->value;

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
	say_insn(s, &v->insn, 0, DIVERGE_VALUE);
	say_access(s, v->access);
}

void diverge_text(const struct diverge *d, struct buf *out, struct err *e)
{
	struct saying s = { .d = d, .out = out };

	/* Without it bytes are shown. */
	(void)disasm_open(&s.disasm, DISASM_ATT, e);
	say_inputs(&s, false);
	if (diverge_is_same(d)) {
		buf_printf(out, "The runs are the same: %" PRIu64 " instructions%s.\n", d->count[0],
			   d->has_values ? ", and each value that they read or wrote" : "");
	} else if (d->flow.found) {
		say_flow(&s);
		say_value(&s);
	} else {
		buf_printf(out,
			   "Both runs execute the same %" PRIu64
			   " instructions, with other values.\n\n",
			   d->count[0]);
		say_value(&s);
	}
	if (d->value.found)
		say_stack(&s, 0, DIVERGE_VALUE, "where the first value differs");
	if (d->flow.found) {
		say_stack(&s, 0, DIVERGE_NEXT, "of A where they part");
		say_stack(&s, 1, DIVERGE_NEXT, "of B where they part");
	}
	disasm_close(s.disasm);
}

/* -- JSON ------------------------------------------------------------------------------------- */

static void json_insn(const struct saying *s, const struct part_insn *insn, unsigned int side,
		      enum diverge_place place)
{
	const struct diverge_stack *st = &s->d->stack[side][place];
	char code[CODE_TEXT];

	if (!insn->number) {
		buf_printf(s->out, "null");
		return;
	}
	say_code(s, insn, code);
	buf_printf(s->out,
		   "{\"instruction\":%" PRIu64 ",\"address\":\"0x%" PRIx64 "\",\"bytes\":\"",
		   insn->number, insn->pc);
	for (unsigned int i = 0; i < insn->len; i++)
		buf_printf(s->out, "%02x", insn->code[i]);
	buf_printf(s->out, "\",\"code\":");
	json_quote(s->out, code);
	buf_printf(s->out, ",\"comm\":");
	json_quote(s->out, st->comm ? st->comm : "");
	buf_printf(s->out, ",\"pid\":%" PRIu32 ",\"vcpu\":%" PRIu32 ",\"stack\":[", st->pid,
		   st->cpu);
	for (unsigned int i = 0; i < st->n; i++) {
		const struct diverge_frame *f = &st->frame[i];

		buf_printf(s->out, "%s{\"address\":\"0x%" PRIx64 "\",\"symbol\":", i ? "," : "",
			   f->ip);
		json_quote(s->out, f->symbol ? f->symbol : "");
		buf_printf(s->out, ",\"dso\":");
		json_quote(s->out, f->dso ? f->dso : "");
		buf_printf(s->out, ",\"line\":");
		json_quote(s->out, f->line ? f->line : "");
		buf_u8(s->out, '}');
	}
	buf_printf(s->out, "]}");
}

static void json_registers(const struct saying *s, const struct exact_regs *r)
{
	bool any = false;

	buf_printf(s->out, "{");
	for (unsigned int i = 0; i < REGISTERS; i++) {
		uint64_t a = say_register(&r[0], i), b = say_register(&r[1], i);

		if (a != b)
			buf_printf(s->out, "%s\"%s\":[\"0x%" PRIx64 "\",\"0x%" PRIx64 "\"]",
				   any ? "," : "", register_names[i], a, b);
		any |= a != b;
	}
	buf_printf(s->out, "}");
}

static void json_access(const struct saying *s, const struct trace_access *access)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct trace_access *a = &access[i];

		buf_printf(s->out,
			   ",\"%c\":{\"access\":\"%s\",\"address\":\"0x%" PRIx64
			   "\",\"size\":%u,\"value\":\"0x%" PRIx64 "\",\"high\":\"0x%" PRIx64 "\"}",
			   i ? 'b' : 'a', a->kind == TRACE_READ ? "read" : "write", a->va, a->size,
			   a->value, a->high);
	}
}

static void json_since(const struct saying *s)
{
	const struct part_regs *r = &s->d->regs;

	buf_printf(s->out, ",\"registers_since\":");
	if (!r->found || r->before) {
		buf_printf(s->out, "null");
		return;
	}
	buf_printf(s->out, "{\"instruction\":%" PRIu64 ",\"address\":\"0x%" PRIx64 "\"",
		   r->access[0].kind ? r->insn.number : r->number,
		   r->access[0].kind ? r->insn.pc : r->from.pc);
	if (r->access[0].kind)
		json_access(s, r->access);
	buf_u8(s->out, '}');
}

static void json_value(const struct saying *s)
{
	const struct part_value *v = &s->d->value;

	buf_printf(s->out, ",\n\"value\":");
	if (!v->found) {
		buf_printf(s->out, "null");
		return;
	}
	buf_printf(s->out, "{\"at\":");
	json_insn(s, &v->insn, 0, DIVERGE_VALUE);
	json_access(s, v->access);
	buf_u8(s->out, '}');
}

void diverge_json(const struct diverge *d, struct buf *out, struct err *e)
{
	const struct part_flow *f = &d->flow;
	struct saying s = { .d = d, .out = out };

	(void)disasm_open(&s.disasm, DISASM_ATT, e);
	buf_printf(out, "{\"same\":%s,\"instructions\":[%" PRIu64 ",%" PRIu64 "],\"inputs\":[",
		   diverge_is_same(d) ? "true" : "false", d->count[0], d->count[1]);
	say_inputs(&s, true);
	buf_printf(out, "],\n\"control\":");
	if (f->found) {
		buf_printf(out, "{\"how\":\"%s\",\"side\":", how_names[f->how]);
		if (f->how == PART_END || f->how == PART_INTERRUPT)
			buf_printf(out, "\"%c\"", f->side ? 'b' : 'a');
		else
			buf_printf(out, "null");
		buf_printf(out, ",\"last\":");
		json_insn(&s, &f->last, 0, DIVERGE_LAST);
		for (unsigned int i = 0; i < 2; i++) {
			buf_printf(out, ",\n\"%c\":", i ? 'b' : 'a');
			json_insn(&s, &f->next[i], i, DIVERGE_NEXT);
		}
		buf_printf(out, ",\n\"registers\":");
		json_registers(&s, f->regs);
		json_since(&s);
		buf_u8(out, '}');
	} else {
		buf_printf(out, "null");
	}
	json_value(&s);
	buf_printf(out, "}\n");
	disasm_close(s.disasm);
}
