/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/linux/module.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE LINUX_MODULE_NONE
/* Maximum offset of a member in a structure. */
#define MAX_OFFSET 65536u
/* Maximum number of a module's note sections, and of their bytes. */
#define MAX_NOTES 64u
#define MAX_NOTE 1024u
#define NT_GNU_BUILD_ID 3u

static bool is_pointer(uint64_t va)
{
	return va >> 63 && va % 8 == 0 && va < UINT64_MAX - 2 * MAX_OFFSET;
}

/* -- offsets ------------------------------------------------------------------------ */

struct module_want {
	const char *structure, *path;
	uint32_t size; /* 0: any; *off then receives only the offset */
	uint32_t *off;
};

static int linux_module_ask(const struct types *t, const struct module_want *w)
{
	struct type_member m;
	int ret = t->member(t->ctx, w->structure, w->path, &m);

	*w->off = NONE;
	if (ret && ret != -ENOENT)
		return ret;
	if (ret == 0 && (!w->size || m.size == w->size) && m.off <= MAX_OFFSET && !m.bit_count)
		*w->off = m.off;
	return 0;
}

static int ask_all(const struct types *t, const struct module_want *w, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int ret = linux_module_ask(t, &w[i]);

		if (ret)
			return err_set(e, -ret, "the kernel's types are damaged at %s.%s",
				       w[i].structure, w[i].path);
	}
	return 0;
}

/* Queries mem[TYPE].MEMBER, where TYPE is an enumerator. */
static int ask_memory(const struct types *t, const char *type, const char *member, uint32_t size,
		      uint32_t *off)
{
	char path[64];
	int64_t n;

	*off = NONE;
	if (t->enumerator(t->ctx, type, &n) || n < 0 || n > 63)
		return 0;
	snprintf(path, sizeof(path), "mem[%d].%s", (int)n, member);
	return linux_module_ask(t, &(struct module_want){ "module", path, size, off });
}

static int ask_text(struct linux_module_layout *l, const struct types *t, struct err *e)
{
	const struct module_want old[] = {
		{ "module", "core_layout.base", 8, &l->text_base },
		{ "module", "core_layout.text_size", 4, &l->text_size },
		{ "module", "init_layout.base", 8, &l->init_base },
		{ "module", "init_layout.text_size", 4, &l->init_size },
	};
	int ret = ask_all(t, old, ARRAY_SIZE(old), e);

	if (ret || l->text_base != NONE)
		return ret;
	ret = ask_memory(t, "MOD_TEXT", "base", 8, &l->text_base);
	if (!ret)
		ret = ask_memory(t, "MOD_TEXT", "size", 4, &l->text_size);
	if (!ret)
		ret = ask_memory(t, "MOD_INIT_TEXT", "base", 8, &l->init_base);
	if (!ret)
		ret = ask_memory(t, "MOD_INIT_TEXT", "size", 4, &l->init_size);
	return ret ? err_set(e, -ret, "the kernel's types are damaged at module.mem") : 0;
}

static void ask_bounds(struct linux_module_layout *l, const struct symtab *s)
{
	const struct symbol *start = symtab_find(s, "_text"), *end = symtab_find(s, "_end");

	if (!start)
		start = symtab_find(s, "_stext");
	if (!end)
		end = symtab_find(s, "_etext");
	if (start && end && start->addr < end->addr) {
		l->kernel_start = start->addr;
		l->kernel_end = end->addr;
	}
}

int linux_module_layout(struct linux_module_layout *out, const struct types *types,
			const struct symtab *symbols, struct err *e)
{
	const struct symbol *head = symbols ? symtab_find(symbols, "modules") : NULL;
	struct linux_module_layout l = { 0 };
	struct type_member name = { 0 }, build_id = { 0 };
	const struct module_want want[] = {
		{ "module", "list", 16, &l.list },
		{ "module", "state", 4, &l.state },
		{ "module", "kallsyms", 8, &l.kallsyms },
		{ "module", "arch.num_orcs", 4, &l.num_orcs },
		{ "module", "arch.orc_unwind_ip", 8, &l.orc_ip },
		{ "module", "arch.orc_unwind", 8, &l.orc },
		{ "module", "notes_attrs", 8, &l.notes_attrs },
		{ "mod_kallsyms", "symtab", 8, &l.symtab },
		{ "mod_kallsyms", "num_symtab", 4, &l.num_symtab },
		{ "mod_kallsyms", "strtab", 8, &l.strtab },
		{ "mod_kallsyms", "typetab", 8, &l.typetab },
		{ "module_notes_attrs", "notes", 4, &l.notes },
		{ "module_notes_attrs", "attrs", 0, &l.attrs },
		{ "bin_attribute", "size", 8, &l.attr_size },
		{ "bin_attribute", "private", 8, &l.attr_data },
	};
	uint64_t stride = 0;
	int ret;

	if (!head || !is_pointer(head->addr))
		return err_set(e, ENOENT,
			       "the kernel's symbols do not name `modules': it has none, or "
			       "no CONFIG_KALLSYMS_ALL");
	out->modules = l.modules = head->addr;
	ask_bounds(&l, symbols);
	out->kernel_start = l.kernel_start;
	out->kernel_end = l.kernel_end;
	if (!types)
		return err_set(e, ENOENT, "the kernel has no type information (BTF)");
	ret = ask_all(types, want, ARRAY_SIZE(want), e);
	if (ret)
		return ret;
	ret = ask_text(&l, types, e);
	if (ret)
		return ret;
	ret = types->member(types->ctx, "module", "name", &name);
	if (ret || l.list == NONE || l.state == NONE || name.size < 2 || name.off > MAX_OFFSET ||
	    name.size > LINUX_MODULE_NAME || l.text_base == NONE || l.text_size == NONE ||
	    l.init_base == NONE || l.init_size == NONE)
		return err_set(e, ret && ret != -ENOENT ? -ret : ENOENT,
			       "the kernel's types do not describe struct module");
	l.name = name.off;
	l.name_size = name.size;
	l.build_id = NONE;
	if (types->member(types->ctx, "module", "build_id", &build_id) == 0 && build_id.size &&
	    build_id.size <= KIMAGE_BUILD_ID_MAX && build_id.off <= MAX_OFFSET) {
		l.build_id = build_id.off;
		l.build_id_size = build_id.size;
	}
	if (types->size(types->ctx, "bin_attribute", &stride) == 0 && stride <= MAX_OFFSET)
		l.attr_stride = (uint32_t)stride;
	*out = l;
	return 0;
}

/* -- one module --------------------------------------------------------------------- */

static bool read_range(const struct memory *m, const struct linux_module_layout *l, uint64_t mod,
		       uint32_t base, uint32_t size, struct linux_module_range *out)
{
	uint64_t start;
	uint32_t len;

	*out = (struct linux_module_range){ 0 };
	if (!memory_u64(m, mod + base, &start) || !memory_u32(m, mod + size, &len))
		return false;
	if (!start || !len)
		return true;
	if (!(start >> 63) || len > LINUX_MODULE_MAX_TEXT || start > UINT64_MAX - len ||
	    (start < l->kernel_end && start + len > l->kernel_start))
		return false;
	*out = (struct linux_module_range){ start, start + len };
	return true;
}

static bool overlap(const struct linux_module_range *a, const struct linux_module_range *b)
{
	return a->start < b->end && b->start < a->end;
}

static bool collides(const struct linux_module_list *list, const struct linux_module *mod)
{
	if (overlap(&mod->text, &mod->init_text))
		return true;
	for (size_t i = 0; i < list->n; i++) {
		const struct linux_module *x = &list->module[i];

		if (overlap(&x->text, &mod->text) || overlap(&x->text, &mod->init_text) ||
		    overlap(&x->init_text, &mod->text) || overlap(&x->init_text, &mod->init_text))
			return true;
	}
	return false;
}

static bool read_name(const struct linux_module_layout *l, const struct memory *m, uint64_t mod,
		      char name[LINUX_MODULE_NAME])
{
	memset(name, 0, LINUX_MODULE_NAME);
	if (!memory_read(m, MEMORY_KERNEL, mod + l->name, name, l->name_size) || !name[0] ||
	    !memchr(name, '\0', l->name_size))
		return false;
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/' || *c == '[' || *c == ']')
			return false;
	/* Clear the bytes after the name. */
	for (size_t i = strlen(name); i < LINUX_MODULE_NAME; i++)
		name[i] = 0;
	return true;
}

/* Parses a note section: u32 name length, length, type; name and content padded to 4 bytes. */
static bool take_note(struct linux_module *mod, const uint8_t *p, size_t len)
{
	size_t at = 0;

	while (len - at >= 12) {
		uint32_t head[3];
		size_t name, desc;

		memcpy(head, p + at, sizeof(head));
		at += sizeof(head);
		if (head[0] > len || head[1] > len)
			return false;
		name = (head[0] + 3ul) & ~3ul;
		desc = (head[1] + 3ul) & ~3ul;
		if (name > len - at || head[1] > len - at - name)
			return false;
		if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && !memcmp(p + at, "GNU", 4) &&
		    head[1] && head[1] <= KIMAGE_BUILD_ID_MAX) {
			memcpy(mod->build_id, p + at + name, head[1]);
			mod->build_id_len = head[1];
			return true;
		}
		if (desc > len - at - name)
			return false;
		at += name + desc;
	}
	return false;
}

static void read_notes(const struct linux_module_layout *l, const struct memory *m,
		       struct linux_module *mod)
{
	uint64_t notes, size, data;
	uint8_t bytes[MAX_NOTE];
	uint32_t n;

	if (l->notes_attrs == NONE || l->notes == NONE || l->attrs == NONE || !l->attr_stride ||
	    l->attr_size == NONE || l->attr_data == NONE ||
	    !memory_u64(m, mod->module + l->notes_attrs, &notes) || !is_pointer(notes) ||
	    !memory_u32(m, notes + l->notes, &n))
		return;
	for (uint32_t i = 0; i < n && i < MAX_NOTES; i++) {
		uint64_t attr = notes + l->attrs + (uint64_t)i * l->attr_stride;

		if (!memory_u64(m, attr + l->attr_size, &size) ||
		    !memory_u64(m, attr + l->attr_data, &data) || !(data >> 63) ||
		    size > MAX_NOTE || !memory_read(m, MEMORY_KERNEL, data, bytes, size))
			return;
		if (take_note(mod, bytes, size))
			return;
	}
}

static void read_build_id(const struct linux_module_layout *l, const struct memory *m,
			  struct linux_module *mod)
{
	static const uint8_t none[KIMAGE_BUILD_ID_MAX];

	if (l->build_id == NONE) {
		read_notes(l, m, mod);
		return;
	}
	if (memory_read(m, MEMORY_KERNEL, mod->module + l->build_id, mod->build_id,
			l->build_id_size) &&
	    memcmp(mod->build_id, none, l->build_id_size) != 0)
		mod->build_id_len = l->build_id_size;
}

/*
 * Reads a module. Returns 1 if it is to be listed, 0 if it is not formed yet, or -EINVAL if it is
 * implausible.
 */
static int read_module(const struct linux_module_layout *l, const struct memory *m, uint64_t at,
		       struct linux_module *out)
{
	uint32_t state;

	*out = (struct linux_module){ .module = at };
	if (!memory_u32(m, at + l->state, &state) || state > LINUX_MODULE_UNFORMED)
		return -EINVAL;
	if (state == LINUX_MODULE_UNFORMED)
		return 0;
	out->state = (enum linux_module_state)state;
	if (!read_name(l, m, at, out->name) ||
	    !read_range(m, l, at, l->text_base, l->text_size, &out->text) ||
	    !read_range(m, l, at, l->init_base, l->init_size, &out->init_text))
		return -EINVAL;
	read_build_id(l, m, out);
	return 1;
}

/* -- the list ------------------------------------------------------------------------- */

/*
 * Advances along the list and stores the next struct module in *mod. Returns 1 if there is one, 0
 * at the end, or -EINVAL if the list cannot be followed.
 */
static int next_module(const struct linux_module_layout *l, const struct memory *m, uint64_t *at,
		       uint64_t *mod)
{
	uint64_t next, prev;

	if (!memory_u64(m, *at, &next) || !is_pointer(next) || next < MAX_OFFSET)
		return -EINVAL;
	/* In a loop that does not include the head, one element has two predecessors. */
	if (!memory_u64(m, next + 8, &prev) || prev != *at)
		return -EINVAL;
	*at = next;
	*mod = next - l->list;
	return next != l->modules;
}

int linux_module_list(const struct linux_module_layout *l, const struct memory *m,
		      struct linux_module_list *out, struct err *e)
{
	struct linux_module_list list = { 0 };
	uint64_t at = l->modules, mod;
	unsigned int turns = 0;
	size_t cap = 0;
	int ret;

	while ((ret = next_module(l, m, &at, &mod)) > 0 && turns++ < LINUX_MODULE_MAX) {
		if (ARRAY_ROOM(list.module, list.n, cap)) {
			linux_module_list_deinit(&list);
			return err_set(e, ENOMEM, "no memory for a list of modules");
		}
		ret = read_module(l, m, mod, &list.module[list.n]);
		if (ret < 0 || (ret > 0 && collides(&list, &list.module[list.n])))
			list.skipped++;
		else
			list.n += ret > 0;
	}
	list.cut = ret != 0;
	if (list.cut && at == l->modules) {
		linux_module_list_deinit(&list);
		return err_set(e, ENOENT, "the list of modules at 0x%llx can't be read",
			       (unsigned long long)l->modules);
	}
	*out = list;
	return 0;
}

void linux_module_list_deinit(struct linux_module_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		symtab_destroy(list->module[i].symbols);
		orc_destroy(list->module[i].orc);
		orc_destroy(list->module[i].init_orc);
	}
	free(list->module);
	*list = (struct linux_module_list){ 0 };
}

static uint64_t linux_module_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

int linux_module_hash(const struct linux_module_layout *l, const struct memory *m, uint64_t *out)
{
	uint64_t at = l->modules, mod, h = 1;
	int ret;

	for (unsigned int n = 0; (ret = next_module(l, m, &at, &mod)) > 0; n++) {
		uint64_t name[LINUX_MODULE_NAME / 8] = { 0 };
		uint32_t state;

		if (n >= LINUX_MODULE_MAX || !memory_u32(m, mod + l->state, &state) ||
		    !memory_read(m, MEMORY_KERNEL, mod + l->name, name, l->name_size))
			return -ENOENT;
		h = linux_module_mix(linux_module_mix(h, mod), state);
		for (size_t i = 0; i < ARRAY_SIZE(name); i++)
			h = linux_module_mix(h, name[i]);
	}
	if (ret)
		return -ENOENT;
	*out = h;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct unwind_region *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

size_t linux_module_regions(const struct linux_module_list *list, struct unwind_region *out,
			    size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct linux_module *x = &list->module[i];

		if (x->text.end && n < cap)
			out[n++] = (struct unwind_region){ .start = x->text.start,
							   .end = x->text.end,
							   .orc = x->orc,
							   .symbols = x->symbols };
		if (x->init_text.end && n < cap)
			out[n++] = (struct unwind_region){ .start = x->init_text.start,
							   .end = x->init_text.end,
							   .orc = x->init_orc,
							   .symbols = x->symbols };
	}
	if (n)
		qsort(out, n, sizeof(*out), by_start);
	return n;
}
