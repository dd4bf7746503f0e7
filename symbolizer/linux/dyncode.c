/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/dyncode.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE LINUX_DYNCODE_NONE
/* Maximum offset of a member in a structure. */
#define MAX_OFFSET 65536u
#define PAGE_BYTES 4096u
/* Bytes of a program's tag and the start of its name: bpf_prog_TAG_NAME. */
#define HASHED_NAME 48u

static bool is_pointer(uint64_t va)
{
	return va >> 63 && va % 8 == 0 && va < UINT64_MAX - 2 * MAX_OFFSET;
}

/* -- offsets ------------------------------------------------------------------------ */

static uint64_t dyncode_symbol(const struct symtab *symbols, const char *name)
{
	const struct symbol *s = symtab_find(symbols, name);

	return s && s->addr >> 63 ? s->addr : 0;
}

/* Returns the offset of a member of this size (0: any), or NONE if the types do not contain it. */
static uint32_t dyncode_offset(const struct types *t, const char *structure, const char *path,
			       uint32_t size)
{
	struct type_member m;

	if (t->member(t->ctx, structure, path, &m) || m.bit_count || m.off > MAX_OFFSET ||
	    (size && m.size != size))
		return NONE;
	return m.off;
}

static struct linux_dyncode_family find_bpf(const struct types *t, const struct symtab *s)
{
	struct linux_dyncode_family f = {
		.head = dyncode_symbol(s, "bpf_kallsyms"),
		.list = dyncode_offset(t, "bpf_ksym", "lnode", 16),
		.start = dyncode_offset(t, "bpf_ksym", "start", 8),
		.end = dyncode_offset(t, "bpf_ksym", "end", 8),
		.size = NONE,
		.name = dyncode_offset(t, "bpf_ksym", "name", 0),
		.flags = NONE,
	};
	struct type_member name;

	if (f.list == NONE || f.start == NONE || f.end == NONE || f.name == NONE ||
	    t->member(t->ctx, "bpf_ksym", "name", &name) || name.size < HASHED_NAME)
		f.head = 0;
	else
		f.name_size = name.size < LINUX_DYNCODE_NAME ? name.size : LINUX_DYNCODE_NAME;
	return f;
}

static struct linux_dyncode_family find_ftrace(const struct types *t, const struct symtab *s)
{
	struct linux_dyncode_family f = {
		.head = dyncode_symbol(s, "ftrace_ops_trampoline_list"),
		.list = dyncode_offset(t, "ftrace_ops", "list", 16),
		.start = dyncode_offset(t, "ftrace_ops", "trampoline", 8),
		.end = NONE,
		.size = dyncode_offset(t, "ftrace_ops", "trampoline_size", 8),
		.name = NONE,
		.flags = dyncode_offset(t, "ftrace_ops", "flags", 8),
	};

	if (f.list == NONE || f.start == NONE || f.size == NONE)
		f.head = 0;
	return f;
}

static struct linux_dyncode_family find_kprobes(const struct types *t, const struct symtab *s,
						const char *cache)
{
	uint32_t pages = dyncode_offset(t, "kprobe_insn_cache", "pages", 16);
	struct linux_dyncode_family f = {
		.head = dyncode_symbol(s, cache),
		.list = dyncode_offset(t, "kprobe_insn_page", "list", 16),
		.start = dyncode_offset(t, "kprobe_insn_page", "insns", 8),
		.end = NONE,
		.size = NONE,
		.name = NONE,
		.flags = NONE,
	};

	if (!f.head || pages == NONE || f.list == NONE || f.start == NONE)
		f.head = 0;
	else
		f.head += pages;
	return f;
}

int linux_dyncode_layout(struct linux_dyncode_layout *out, const struct types *types,
			 const struct symtab *symbols, struct err *e)
{
	struct linux_dyncode_layout l = { 0 };
	bool some = false;
	int64_t flag;

	if (!types || !symbols)
		return err_set(e, ENOENT, "%s: cannot find code that the kernel generates",
			       types ? "no symbols" : "no type information");
	l.family[LINUX_DYNCODE_BPF] = find_bpf(types, symbols);
	l.family[LINUX_DYNCODE_FTRACE] = find_ftrace(types, symbols);
	l.family[LINUX_DYNCODE_KPROBE] = find_kprobes(types, symbols, "kprobe_insn_slots");
	l.family[LINUX_DYNCODE_OPTPROBE] = find_kprobes(types, symbols, "kprobe_optinsn_slots");
	for (unsigned int i = 0; i < LINUX_DYNCODE_KINDS; i++)
		some |= l.family[i].head != 0;
	if (!some)
		return err_set(e, ENOENT,
			       "the kernel's symbols name no list of generated code, or its types "
			       "do not describe one");
	l.kernel_start = dyncode_symbol(symbols, "_stext");
	l.kernel_end = dyncode_symbol(symbols, "_etext");
	if (types->enumerator(types->ctx, "FTRACE_OPS_FL_SAVE_REGS", &flag) == 0 && flag > 0) {
		l.save_regs = (uint64_t)flag;
		l.ftrace_caller = dyncode_symbol(symbols, "ftrace_caller");
		l.ftrace_regs_caller = dyncode_symbol(symbols, "ftrace_regs_caller");
	}
	*out = l;
	return 0;
}

/* -- one piece ---------------------------------------------------------------------- */

static bool is_name(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || *s == '/' || *s == '[' || *s == ']')
			return false;
	return true;
}

static bool read_name(const struct linux_dyncode_family *f, const struct memory *m, uint64_t at,
		      struct linux_dyncode *c)
{
	static const char *const plain[LINUX_DYNCODE_KINDS] = {
		[LINUX_DYNCODE_BPF] = "bpf",
		[LINUX_DYNCODE_FTRACE] = "ftrace_trampoline",
		[LINUX_DYNCODE_KPROBE] = "kprobe_insn_page",
		[LINUX_DYNCODE_OPTPROBE] = "kprobe_optinsn_page",
	};

	if (f->name == NONE) {
		memcpy(c->name, plain[c->kind], strlen(plain[c->kind]) + 1);
		return true;
	}
	if (!memory_read(m, MEMORY_KERNEL, at + f->name, c->name, f->name_size))
		return false;
	c->name[f->name_size - 1] = '\0';
	/* Clear the bytes after the name. */
	for (size_t i = strlen(c->name); i < sizeof(c->name); i++)
		c->name[i] = 0;
	return is_name(c->name);
}

static uint64_t copied_from(const struct linux_dyncode_layout *l,
			    const struct linux_dyncode_family *f, const struct memory *m,
			    uint64_t at)
{
	uint64_t flags;

	if (f->flags == NONE || !l->save_regs || !memory_u64(m, at + f->flags, &flags))
		return 0;
	return flags & l->save_regs ? l->ftrace_regs_caller : l->ftrace_caller;
}

/* Reads one piece. Returns false if it is implausible. */
static bool read_piece(const struct linux_dyncode_layout *l, enum linux_dyncode_kind kind,
		       const struct memory *m, uint64_t at, struct linux_dyncode *c)
{
	const struct linux_dyncode_family *f = &l->family[kind];
	uint64_t len = PAGE_BYTES;

	*c = (struct linux_dyncode){ .kind = kind };
	if (!memory_u64(m, at + f->start, &c->start) || !(c->start >> 63))
		return false;
	if (f->end != NONE) {
		if (!memory_u64(m, at + f->end, &c->end) || c->end <= c->start)
			return false;
		len = c->end - c->start;
	} else if (f->size != NONE && !memory_u64(m, at + f->size, &len)) {
		return false;
	}
	if (!len || len > LINUX_DYNCODE_MAX_TEXT || c->start > UINT64_MAX - len)
		return false;
	c->end = c->start + len;
	if (c->start < l->kernel_end && c->end > l->kernel_start)
		return false;
	if (kind == LINUX_DYNCODE_FTRACE)
		c->copy_of = copied_from(l, f, m, at);
	return read_name(f, m, at, c);
}

/* -- lists -------------------------------------------------------------------------- */

/*
 * Advances along a list and stores the next structure in *piece. Returns 1 if there is one, 0 at
 * the end, or -EINVAL if the list cannot be followed.
 */
static int next_piece(const struct linux_dyncode_family *f, const struct memory *m, uint64_t *at,
		      uint64_t *piece)
{
	uint64_t next, prev;

	if (!memory_u64(m, *at, &next) || !is_pointer(next))
		return -EINVAL;
	/* In a loop that does not include the head, one element has two predecessors. */
	if (!memory_u64(m, next + 8, &prev) || prev != *at)
		return -EINVAL;
	*at = next;
	*piece = next - f->list;
	return next != f->head;
}

static int add_family(const struct linux_dyncode_layout *l, enum linux_dyncode_kind kind,
		      const struct memory *m, struct linux_dyncode_list *list, size_t *cap)
{
	const struct linux_dyncode_family *f = &l->family[kind];
	uint64_t at = f->head, piece;
	unsigned int turns = 0;
	int ret;

	while ((ret = next_piece(f, m, &at, &piece)) > 0 && turns++ < LINUX_DYNCODE_MAX) {
		if (ARRAY_ROOM(list->code, list->n, *cap))
			return -ENOMEM;
		if (read_piece(l, kind, m, piece, &list->code[list->n]))
			list->n++;
		else
			list->skipped++;
	}
	list->cut += ret != 0;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct linux_dyncode *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the pieces. Of two that overlap, neither is more credible: the first one is kept. */
static void dyncode_settle(struct linux_dyncode_list *list)
{
	size_t n = 0;

	if (list->n)
		qsort(list->code, list->n, sizeof(*list->code), by_start);
	for (size_t i = 0; i < list->n; i++) {
		if (n && list->code[i].start < list->code[n - 1].end) {
			list->skipped++;
			continue;
		}
		list->code[n++] = list->code[i];
	}
	list->n = n;
}

int linux_dyncode_list(const struct linux_dyncode_layout *l, const struct memory *m,
		       struct linux_dyncode_list *out, struct err *e)
{
	struct linux_dyncode_list list = { 0 };
	size_t cap = 0;

	for (unsigned int i = 0; i < LINUX_DYNCODE_KINDS; i++) {
		if (l->family[i].head &&
		    add_family(l, (enum linux_dyncode_kind)i, m, &list, &cap)) {
			linux_dyncode_list_deinit(&list);
			return err_set(e, ENOMEM, "no memory for a list of code");
		}
	}
	dyncode_settle(&list);
	*out = list;
	return 0;
}

void linux_dyncode_list_deinit(struct linux_dyncode_list *list)
{
	free(list->code);
	*list = (struct linux_dyncode_list){ 0 };
}

static uint64_t dyncode_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

static int hash_family(const struct linux_dyncode_family *f, const struct memory *m, uint64_t *h)
{
	uint64_t at = f->head, piece, start;
	int ret;

	for (unsigned int n = 0; (ret = next_piece(f, m, &at, &piece)) > 0; n++) {
		uint64_t name[HASHED_NAME / 8] = { 0 };

		if (n >= LINUX_DYNCODE_MAX || !memory_u64(m, piece + f->start, &start) ||
		    (f->name != NONE &&
		     !memory_read(m, MEMORY_KERNEL, piece + f->name, name, sizeof(name))))
			return -ENOENT;
		*h = dyncode_mix(dyncode_mix(*h, piece), start);
		for (size_t i = 0; f->name != NONE && i < ARRAY_SIZE(name); i++)
			*h = dyncode_mix(*h, name[i]);
	}
	return ret ? -ENOENT : 0;
}

int linux_dyncode_hash(const struct linux_dyncode_layout *l, const struct memory *m, uint64_t *out)
{
	uint64_t h = 1;

	for (unsigned int i = 0; i < LINUX_DYNCODE_KINDS; i++)
		if (l->family[i].head && hash_family(&l->family[i], m, &h))
			return -ENOENT;
	*out = h;
	return 0;
}

struct unwind_region linux_dyncode_region(const struct linux_dyncode *c,
					  const struct symtab *symbols)
{
	struct unwind_region r = { .start = c->start, .end = c->end, .symbols = symbols };

	if (c->kind == LINUX_DYNCODE_BPF)
		r.form = UNWIND_FORM_FRAMES;
	else if (c->kind == LINUX_DYNCODE_OPTPROBE)
		r.form = UNWIND_FORM_REGS;
	else if (c->copy_of)
		r.form = UNWIND_FORM_COPY;
	r.copy_of = c->copy_of;
	return r;
}
