/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/stackset_names.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stackset_clean(struct stackset_build *b, const char *s)
{
	cleanup_free char *copy = utf8_clean_copy(s);

	return copy ? texts_add(&b->texts, copy) : NULL;
}

/*
 * Returns the kind of a mapping in the kernel's half: the kernel, its modules, and pseudo-modules
 * (profile/record/host/frame_*.c).
 */
static enum stackset_kind kernel_kind_of(const char *dso)
{
	static const struct {
		const char *dso;
		enum stackset_kind kind;
	} known[] = {
		{ "[decompressor]", STACKSET_KIND_KERNEL }, { "[vmm]", STACKSET_KIND_HOST },
		{ "[host]", STACKSET_KIND_HOST },	    { "[kvmprof]", STACKSET_KIND_HOST },
		{ "[exit]", STACKSET_KIND_HOST },	    { "[task]", STACKSET_KIND_HOST },
		{ "[where]", STACKSET_KIND_HOST },	    { "[off-cpu]", STACKSET_KIND_WAITING },
	};

	if (stackset_begins(dso, PERFDATA_KERNEL_DSO) || stackset_begins(dso, "[guest.kernel"))
		return STACKSET_KIND_KERNEL;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(dso, known[i].dso))
			return known[i].kind;
	return STACKSET_KIND_MODULE;
}

static enum stackset_kind kind_of(const struct perfdata_frame *f, const char *dso)
{
	if (f->owner != PERFDATA_RECORDED || !strcmp(dso, "[unknown]"))
		return STACKSET_KIND_UNKNOWN;
	if (f->kernel)
		return kernel_kind_of(dso);
	/* Names used by kvmprof and by perf for generated code. */
	if (stackset_begins(dso, "[jit") || stackset_begins(dso, "//anon") ||
	    stackset_begins(dso, "[anon") || stackset_begins(dso, "/memfd:") ||
	    stackset_begins(dso, "/tmp/perf-"))
		return STACKSET_KIND_JIT;
	return STACKSET_KIND_USER;
}

bool stackset_equal_func(const void *a, const void *b, const void *ctx)
{
	const struct built_func *x = a, *y = b;

	(void)ctx;
	/* Texts are stored once, so pointers can be compared. */
	return x->symbol == y->symbol && x->f.dso == y->f.dso && x->f.addr == y->f.addr &&
	       x->f.kind == y->f.kind && x->f.kernel == y->f.kernel && x->f.other == y->f.other;
}

/*
 * Returns the other names of a function in the form of stackset_func.aliases; NULL if out of
 * memory.
 */
static const char *aliases_of(struct stackset_build *b, const struct symbol *symbol, bool kernel)
{
	const char *all;
	struct buf text;

	buf_init(&text);
	for (const struct symbol *s = symbol->alias; s; s = s->alias) {
		cleanup_free char *name = utf8_clean_copy(demangle_shown(&b->display, s, kernel));

		text.failed |= !name;
		if (name)
			buf_printf(&text, "%s\n", name);
	}
	buf_u8(&text, 0);
	all = text.failed ? NULL : texts_add(&b->texts, (const char *)text.data);
	buf_deinit(&text);
	return all;
}

static int func_of(struct stackset_build *b, const struct name *name,
		   const struct perfdata_frame *at, uint64_t addr, uint32_t *out)
{
	const bool kernel = at->kernel;
	struct built_func like = { .symbol = name->symbol }, *f;
	unsigned int bits;
	char text[24];
	bool fresh;

	like.f.named = name->symbol != NULL;
	like.f.kind = (uint8_t)kind_of(at, name->dso);
	like.f.kernel = kernel;
	like.f.other = at->owner != PERFDATA_RECORDED;
	like.f.dso = stackset_clean(b, name->dso);
	like.f.addr = addr;
	if (name->symbol) {
		like.f.addr = kernel ? addr - name->off : name->symbol->addr;
		like.f.size = name->symbol->size;
	}
	if (!like.f.dso || table_add(&b->func,
				     table_mix((uint64_t)(uintptr_t)name->symbol ^ like.f.addr,
					       (uint64_t)(uintptr_t)like.f.dso),
				     &like, out, &fresh) < 0)
		return -ENOMEM;
	if (!fresh)
		return 0;
	f = (struct built_func *)b->func.item + *out;
	if (selection_function(&b->selection, name, addr, kernel, &bits) < 0)
		return -ENOMEM;
	f->f.hidden = !(bits & SELECTION_CHOSEN);
	f->parent = bits & SELECTION_PARENT;
	snprintf(text, sizeof(text), "0x%016" PRIx64, addr);
	f->f.name = stackset_clean(
		b, name->symbol ? demangle_shown(&b->display, name->symbol, kernel) : text);
	if (name->symbol && name->symbol->alias) {
		f->f.aliases = aliases_of(b, name->symbol, kernel);
		if (!f->f.aliases)
			return -ENOMEM;
	}
	return f->f.name ? 0 : -ENOMEM;
}

bool stackset_equal_frame(const void *a, const void *b, const void *ctx)
{
	const struct stackset_frame *x = a, *y = b;

	(void)ctx;
	return x->addr == y->addr && x->func == y->func && x->image == y->image;
}

bool stackset_equal_addr(const void *a, const void *b, const void *ctx)
{
	const struct raw_addr *x = a, *y = b;

	(void)ctx;
	return x->addr == y->addr && x->space == y->space && x->kernel == y->kernel &&
	       x->exact == y->exact && x->owner == y->owner;
}

int stackset_frame_of(struct stackset_build *b, struct names_view view,
		      const struct perfdata_frame *f, uint32_t *out)
{
	struct raw_addr like = { .addr = f->ip,
				 .space = f->kernel ? view.kernel : view.user,
				 .kernel = f->kernel,
				 .owner = f->owner,
				 .exact = f->interrupted || b->in.p->ours };
	struct stackset_frame frame = { 0 };
	struct name name;
	uint32_t index;
	bool fresh;

	if (table_add(&b->addr, table_mix(f->ip, (uint64_t)like.space << 1 | f->kernel), &like,
		      &index, &fresh) < 0)
		return -ENOMEM;
	if (!fresh) {
		*out = ((struct raw_addr *)b->addr.item)[index].frame;
		return 0;
	}
	frame.addr = names_lookup_frame(b->in.names, view, f, like.exact, &name);
	frame.off = name.symbol ? names_shown_off(&name) : 0;
	frame.image = f->kernel ? frame.addr - name.map_start : frame.addr + name.to_file;
	if (func_of(b, &name, f, frame.addr, &frame.func) < 0 ||
	    table_add(&b->frame, table_mix(frame.addr, frame.func), &frame, out, &fresh) < 0)
		return -ENOMEM;
	((struct raw_addr *)b->addr.item)[index].frame = *out;
	return 0;
}

/* Adds a frame below all others: "guest", "kvm", "halted" and so on. */
int stackset_where(struct stackset_build *b, enum sample_where where, uint32_t *out)
{
	/* Time in the guest has the guest's own frames above this one. */
	const uint8_t kind = where == SAMPLE_IN_GUEST || where == SAMPLE_UNTOLD
				     ? STACKSET_KIND_UNKNOWN
				     : STACKSET_KIND_HOST;
	struct built_func like = { .f = { .name = where_name(where),
					  .named = true,
					  .kind = kind,
					  .addr = where,
					  .hidden = selection_chooses(b->opt.selection) } };
	struct stackset_frame frame = { .addr = where };
	bool fresh;

	like.f.dso = texts_add(&b->texts, "[where]");
	if (!like.f.dso || table_add(&b->func, where, &like, &frame.func, &fresh) < 0 ||
	    table_add(&b->frame, table_mix(where, frame.func), &frame, out, &fresh) < 0)
		return -ENOMEM;
	return 0;
}
