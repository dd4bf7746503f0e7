/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/side.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/format.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define COPY_PAGES 64u

/* -- kallsyms -------------------------------------------------------------------- */

static bool is_function(char type)
{
	return type == 'T' || type == 't' || type == 'W' || type == 'w' || type == 'i';
}

/* Appends one line; module is NULL for the kernel itself. */
static void put_symbol(struct buf *out, uint64_t addr, char type, const char *name,
		       const struct profile_module *module)
{
	static const char digit[] = "0123456789abcdef";
	char line[20];

	for (unsigned int i = 0; i < 16; i++)
		line[i] = digit[addr >> (60 - 4 * i) & 15];
	line[16] = ' ';
	line[17] = type;
	line[18] = ' ';
	buf_add(out, line, 19);
	buf_add(out, name, strlen(name));
	if (module) {
		if (module->shared)
			buf_add(out, PERFDATA_OLDER_CODE, strlen(PERFDATA_OLDER_CODE));
		buf_add(out, "\t[", 2);
		buf_add(out, module->name, strnlen(module->name, PROFILE_MODULE_NAME - 1));
		buf_u8(out, ']');
	}
	buf_u8(out, '\n');
}

static bool has_name(const struct symbol *s)
{
	return *s->name && !strpbrk(s->name, "\n\t");
}

/*
 * Returns the symbol that names an address: if there are several, the one that kvmprof's commands
 * print. NULL: none.
 */
static const struct symbol *function_at(const struct symtab *t, uint64_t addr)
{
	uint64_t off;
	const struct symbol *s = symtab_lookup(t, addr, &off);

	return !s || off || !has_name(s) ? NULL : s;
}

/*
 * Writes all functions at the address of the i-th symbol, preceded by `more` unless it is NULL.
 * perf uses the last name that is not weak; the name that kvmprof's commands print is therefore
 * both. Returns the index after the last symbol there.
 */
static size_t put_place(struct buf *out, const struct symtab *t, size_t i, const char *more,
			const struct profile_module *module)
{
	const uint64_t addr = symtab_at(t, i)->addr;
	const struct symbol *best = function_at(t, addr), *s;
	const char *last = more && best && strcmp(best->name, more) ? more : NULL;
	bool has_others = last != NULL;

	if (last)
		put_symbol(out, addr, 'W', last, module);
	for (; (s = symtab_at(t, i)) && s->addr == addr; i++) {
		if (!best || !is_function(s->type) || !has_name(s) ||
		    !strcmp(s->name, best->name) || (last && !strcmp(s->name, last)) ||
		    (more && !strcmp(s->name, more)))
			continue;
		last = s->name;
		has_others = true;
		put_symbol(out, addr, 'W', last, module);
	}
	if (best)
		put_symbol(out, addr,
			   has_others && (best->type == 'W' || best->type == 'w') ? 't'
										  : best->type,
			   best->name, module);
	return i;
}

void perfdata_kallsyms(struct buf *out, const struct profile_kernel *k)
{
	size_t n = k->symbols ? symtab_count(k->symbols) : 0;
	bool text_done = k->end <= k->text;

	for (size_t i = 0; i < n;) {
		uint64_t addr = symtab_at(k->symbols, i)->addr;
		bool named = !text_done && function_at(k->symbols, addr);
		bool is_text = named && addr == k->text;

		if (named && addr > k->text) {
			put_symbol(out, k->text, 'W', "_text", NULL);
			text_done = true;
		}
		text_done |= is_text;
		i = put_place(out, k->symbols, i, is_text ? "_text" : NULL, NULL);
	}
	/* Without other symbols, `_text` would give its name to every address. */
	if (!text_done && out->len)
		put_symbol(out, k->text, 'W', "_text", NULL);
}

void perfdata_kallsyms_modules(struct buf *out, const struct buf *kernel,
			       const struct profile_module *const *m, size_t n)
{
	buf_add(out, kernel->data, kernel->len);
	for (size_t j = 0; j < n; j++) {
		const struct symtab *t = m[j]->symbols;
		size_t count = t ? symtab_count(t) : 0;

		for (size_t i = 0; i < count;) {
			uint64_t addr = symtab_at(t, i)->addr;

			if (addr >= m[j]->addr && addr - m[j]->addr < m[j]->len)
				i = put_place(out, t, i, NULL, m[j]);
			else
				i++;
		}
	}
}

/* -- identity -------------------------------------------------------------------- */

/* Three lanes of a multiplicative hash. It need not be cryptographic. */
struct id_hash {
	uint64_t lane[3];
};

static void hash_add(struct id_hash *h, const void *data, size_t len)
{
	static const uint64_t prime[3] = { 0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu,
					   0x165667b19e3779f9u };
	const uint8_t *p = data;

	while (len) {
		size_t n = len < 8 ? len : 8;
		uint64_t v = 0;

		memcpy(&v, p, n);
		for (unsigned int i = 0; i < 3; i++) {
			h->lane[i] = (h->lane[i] ^ v ^ n) * prime[i];
			h->lane[i] ^= h->lane[i] >> 29;
		}
		p += n;
		len -= n;
	}
}

unsigned int perfdata_kernel_id(uint8_t id[KIMAGE_BUILD_ID_MAX],
				const struct profile_kernel *kernel, const struct buf *kallsyms)
{
	const struct kimage *k = kernel->image;
	struct id_hash h = { { 1, 2, 3 } };

	if (k && k->build_id_len) {
		memcpy(id, k->build_id, k->build_id_len);
		return k->build_id_len;
	}
	/*
	 * Do not hash the live text: the kernel patches it, and the id would change with every run.
	 */
	if (k) {
		for (unsigned int i = 0; i < k->nseg; i++) {
			size_t avail = 0;
			const uint8_t *p = kimage_ptr(k, k->seg[i].va, &avail);

			if (p)
				hash_add(&h, p, avail);
		}
	}
	if (!k)
		hash_add(&h, kallsyms->data, kallsyms->len);
	if (kernel->osrelease)
		hash_add(&h, kernel->osrelease, strlen(kernel->osrelease));
	memcpy(id, h.lane, KIMAGE_BUILD_ID_MAX);
	return KIMAGE_BUILD_ID_MAX;
}

void perfdata_hash_id(uint8_t id[KIMAGE_BUILD_ID_MAX], const void *data, size_t len)
{
	struct id_hash h = { { 1, 2, 3 } };

	hash_add(&h, data, len);
	memcpy(id, h.lane, KIMAGE_BUILD_ID_MAX);
}

/* -- kcore ----------------------------------------------------------------------- */

static void mark_pages(uint8_t *wanted, uint64_t base, uint64_t limit, uint64_t from, uint64_t to)
{
	if (from < base)
		from = base;
	if (to > limit)
		to = limit;
	for (uint64_t page = (from - base) / PAGE; from < to && page <= (to - 1 - base) / PAGE;
	     page++)
		wanted[page / 8] |= (uint8_t)(1u << (page % 8));
}

static int write_at(int fd, uint64_t off, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)off);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int perfdata_kcore(int fd, const char *path, const struct profile_kernel *k, const uint64_t *ip,
		   size_t nip, struct err *e)
{
	uint64_t base = k->text & ~(uint64_t)(PAGE - 1);
	uint64_t npages = (k->end - base + PAGE - 1) / PAGE;
	cleanup_free uint8_t *wanted = NULL, *page = NULL;
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
	} head = { 0 };
	int ret;

	if (!k->read_text || !k->symbols || k->end <= k->text || k->end - base > PERFDATA_KCORE_MAX)
		return 0;
	wanted = calloc(npages / 8 + 1, 1);
	page = malloc(COPY_PAGES * PAGE);
	if (!wanted || !page)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	for (size_t i = 0; i < nip; i++) {
		const struct symbol *s = symtab_lookup(k->symbols, ip[i], &(uint64_t){ 0 });

		if (s)
			mark_pages(wanted, base, k->end, s->addr, s->addr + s->size);
	}

	memcpy(head.eh.e_ident, ELFMAG, SELFMAG);
	head.eh.e_ident[EI_CLASS] = ELFCLASS64;
	head.eh.e_ident[EI_DATA] = ELFDATA2LSB;
	head.eh.e_ident[EI_VERSION] = EV_CURRENT;
	head.eh.e_type = ET_CORE;
	head.eh.e_machine = EM_X86_64;
	head.eh.e_version = EV_CURRENT;
	head.eh.e_phoff = sizeof(head.eh);
	head.eh.e_ehsize = sizeof(head.eh);
	head.eh.e_phentsize = sizeof(head.ph);
	head.eh.e_phnum = 1;
	head.ph.p_type = PT_LOAD;
	head.ph.p_flags = PF_R | PF_X;
	head.ph.p_offset = PAGE;
	head.ph.p_vaddr = base;
	head.ph.p_filesz = head.ph.p_memsz = npages * PAGE;
	head.ph.p_align = PAGE;
	if (ftruncate(fd, (off_t)((npages + 1) * PAGE)) < 0)
		return err_set(e, errno, "%s: cannot write: %s", path, strerror(errno));
	ret = write_at(fd, 0, &head, sizeof(head));
	for (uint64_t i = 0; i < npages && !ret; i++) {
		uint64_t n = 0;
		size_t got;

		while (n < COPY_PAGES && i + n < npages && wanted[(i + n) / 8] >> ((i + n) % 8) & 1)
			n++;
		if (!n)
			continue;
		got = k->read_text(k->read_ctx, base + i * PAGE, page, n * PAGE);
		if (got > n * PAGE)
			got = n * PAGE;
		ret = write_at(fd, (i + 1) * PAGE, page, got);
		/* A hole: continue after it, page by page. */
		i += got < n * PAGE ? got / PAGE : n - 1;
	}
	return ret ? err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret)) : 0;
}
