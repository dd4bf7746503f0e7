/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/printk.h"

#include "symbolizer/linux/printk_old.h"
#include "symbolizer/linux/printk_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* print_caller() (kernel/printk/printk.c) has this format in all kernels since 5.1. */
#define CALLER_FORMAT "[%6s]"
#define CODE_MAX 4096u

/* Those that contain print_caller(), whatever the compiler has inlined; the last ones before 5.10. */
static const char *const printer_name[LINUX_PRINTK_PRINTERS] = {
	"print_caller", "info_print_prefix", "record_print_text", "print_prefix", "msg_print_text",
};

static uint64_t printk_variable(const struct symtab *symbols, const char *name)
{
	const struct symbol *s = symtab_find(symbols, name);

	return s && memory_is_kernel(s->addr) ? s->addr : 0;
}

static struct linux_printk_code printk_code(const struct symtab *symbols, const char *name)
{
	const struct symbol *s = symtab_find(symbols, name);
	struct linux_printk_code code = { 0 };

	if (s && memory_is_kernel(s->addr)) {
		code.addr = s->addr;
		code.len = s->size < CODE_MAX ? s->size : CODE_MAX;
	}
	return code;
}

int linux_printk_layout(struct linux_printk_layout *out, const struct types *types,
			const struct symtab *symbols, struct err *e)
{
	struct linux_printk_layout l = { 0 };

	if (symbols) {
		l.prb = printk_variable(symbols, "prb");
		l.log_buf = printk_variable(symbols, "log_buf");
		l.log_buf_len = printk_variable(symbols, "log_buf_len");
		l.first_idx = printk_variable(symbols, "log_first_idx");
		l.next_idx = printk_variable(symbols, "log_next_idx");
		l.time = printk_variable(symbols, "printk_time");
		l.rodata[0] = printk_variable(symbols, "__start_rodata");
		l.rodata[1] = printk_variable(symbols, "__end_rodata");
		for (unsigned int i = 0; i < LINUX_PRINTK_PRINTERS; i++)
			l.code[i] = printk_code(symbols, printer_name[i]);
	}
	if (!l.log_buf_len || !l.first_idx || !l.next_idx)
		l.log_buf = 0;
	if (!l.prb && !l.log_buf)
		return err_set(e, ENOENT,
			       "the kernel's symbols name no log: neither prb nor log_buf (it was "
			       "built without CONFIG_PRINTK or CONFIG_KALLSYMS_ALL)");
	l.by_types = l.prb && types && printk_ring_by_types(&l.ring, types);
	*out = l;
	return 0;
}

int linux_printk_read(const struct linux_printk_layout *l, const struct memory *m,
		      struct linux_printk_reading *r, struct err *e)
{
	r->losses = (struct linux_printk_losses){ 0 };
	return l->prb ? printk_ring_read(l, m, r, e) : printk_old_read(l, m, r, e);
}

static bool is_text_at(const struct linux_printk_layout *l, const struct memory *m, uint64_t va,
		       const char *text)
{
	size_t len = strlen(text) + 1;
	char copy[16];

	return va >= l->rodata[0] && va < l->rodata[1] && len <= sizeof(copy) &&
	       memory_read(m, MEMORY_KERNEL, va, copy, len) && !memcmp(copy, text, len);
}

/*
 * Returns whether code refers to a constant text: by an address as an immediate of 32 bits, which
 * is sign-extended, or relative to the end of the instruction, which ends with it.
 */
static bool code_refers_to(const struct linux_printk_layout *l, const struct memory *m,
			   const struct linux_printk_code *code, const char *text)
{
	uint8_t bytes[CODE_MAX];

	if (code->len < 4 || !memory_read(m, MEMORY_KERNEL, code->addr, bytes, code->len))
		return false;
	for (size_t i = 0; i + 4 <= code->len; i++) {
		uint64_t v = (uint64_t)(int64_t)(int32_t)memory_half(bytes, i);

		if (is_text_at(l, m, v, text) || is_text_at(l, m, code->addr + i + 4 + v, text))
			return true;
	}
	return false;
}

struct linux_printk_style linux_printk_style(const struct linux_printk_layout *l,
					     const struct memory *m)
{
	struct linux_printk_style style = { .time = true };
	uint8_t v;

	if (l->time && memory_read(m, MEMORY_KERNEL, l->time, &v, 1))
		style.time = v;
	for (unsigned int i = 0; i < LINUX_PRINTK_PRINTERS && !style.caller; i++)
		style.caller = code_refers_to(l, m, &l->code[i], CALLER_FORMAT);
	return style;
}

void linux_printk_caller(const struct linux_printk_record *r, char out[12])
{
	snprintf(out, 12, "%c%" PRIu32, r->caller & LINUX_PRINTK_IS_CPU ? 'C' : 'T',
		 r->caller & ~LINUX_PRINTK_IS_CPU);
}

void linux_printk_print(const struct linux_printk_record *r, const struct linux_printk_style *style,
			struct buf *out)
{
	const char *p = r->text, *end = r->text + r->len;

	do {
		const char *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		const char *to = stop ? stop : end;

		if (style->level)
			buf_printf(out, "<%u>", (unsigned int)r->facility << 3 | r->level);
		if (style->time)
			buf_printf(out, "[%5" PRIu64 ".%06" PRIu64 "]", r->ts_ns / 1000000000,
				   r->ts_ns % 1000000000 / 1000);
		if (style->caller) {
			char caller[12];

			linux_printk_caller(r, caller);
			buf_printf(out, CALLER_FORMAT, caller);
		}
		if (style->time || style->caller)
			buf_u8(out, ' ');
		buf_add(out, p, (size_t)(to - p));
		buf_u8(out, '\n');
		p = to + 1;
	} while (p <= end);
}
