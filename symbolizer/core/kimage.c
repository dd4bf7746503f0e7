/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/kimage.h"

#include "symbolizer/core/elf64.h"
#include "symbolizer/core/insn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF (1ull << 63)
#define PAGE 4096ull
/* Limit for occurrences of "Linux version " that are examined; other strings may contain it. */
#define MAX_BANNER_TRIES 64
#define BANNER_PREFIX "Linux version "

static void *find_bytes(const uint8_t *hay, size_t len, const char *needle)
{
	return memmem(hay, len, needle, strlen(needle));
}

static int parse_segments(struct kimage *k, const struct elf64 *f, struct err *e)
{
	for (uint32_t i = 0; i < f->phnum; i++) {
		Elf64_Phdr p = elf64_phdr(f, i);
		struct kimage_segment *s = &k->seg[k->nseg];

		if (p.p_type != PT_LOAD || p.p_memsz == 0)
			continue;
		if (k->nseg == KIMAGE_MAX_SEGMENTS)
			return err_set(e, EINVAL, "%s: more than %d loadable segments", f->name,
				       KIMAGE_MAX_SEGMENTS);
		if (p.p_filesz > p.p_memsz || p.p_memsz - 1 > UINT64_MAX - p.p_vaddr ||
		    p.p_memsz - 1 > UINT64_MAX - p.p_paddr)
			return err_set(e, EINVAL,
				       "%s: program header %u: sizes 0x%llx in the file and "
				       "0x%llx in memory at 0x%llx make no sense",
				       f->name, i, (unsigned long long)p.p_filesz,
				       (unsigned long long)p.p_memsz,
				       (unsigned long long)p.p_vaddr);
		if (p.p_filesz && cursor_window(&f->file, p.p_offset, p.p_filesz).bad)
			return err_set(e, EINVAL,
				       "%s: program header %u: 0x%llx bytes at offset 0x%llx "
				       "are not in the file (0x%zx bytes; is it complete?)",
				       f->name, i, (unsigned long long)p.p_filesz,
				       (unsigned long long)p.p_offset, f->file.len);
		*s = (struct kimage_segment){
			.va = p.p_vaddr,
			.pa = p.p_paddr,
			/* An offset without bytes may have any value, so it is not used in sums. */
			.file_off = p.p_filesz ? p.p_offset : 0,
			.file_len = p.p_filesz,
			.mem_len = p.p_memsz,
			.flags = p.p_flags,
		};
		k->nseg++;
	}
	if (k->nseg == 0)
		return err_set(e, EINVAL, "%s: no loadable segment: not a kernel image", f->name);
	return 0;
}

/* Returns whether this address counts. Per-CPU templates and user parts are in the low half. */
static bool in_half(uint64_t va, uint64_t half)
{
	return (va & KERNEL_HALF) == half;
}

/* Returns the end of a byte range, limited to the top of the address space. */
static uint64_t range_end(uint64_t va, uint64_t len)
{
	return len > UINT64_MAX - va ? UINT64_MAX : va + len;
}

static uint64_t page_up(uint64_t v)
{
	return v > UINT64_MAX - (PAGE - 1) ? UINT64_MAX : (v + PAGE - 1) & ~(PAGE - 1);
}

static void find_extent(struct kimage *k, const struct elf64 *f)
{
	uint64_t half = 0, exec_end = 0;
	bool exec = false;

	for (unsigned int i = 0; i < k->nseg; i++)
		if ((k->seg[i].flags & PF_X) && (k->seg[i].va & KERNEL_HALF))
			half = KERNEL_HALF;
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];
		uint64_t end = range_end(s->va, s->mem_len);

		if (!in_half(s->va, half))
			continue;
		if (end > k->end)
			k->end = end;
		if (!(s->flags & PF_X))
			continue;
		if (!exec || s->va < k->text)
			k->text = s->va;
		exec = true;
		end = range_end(s->va, s->file_len);
		if (end > k->etext)
			k->etext = end;
	}
	/* Linux pads its image to a page before it sets _end (vmlinux.lds.S). */
	k->end = page_up(k->end);
	/*
	 * Segments tell code from data only roughly: Linux has init code and all
	 * that follows it in one segment, since 6.16 in that of its data, which is
	 * not even executable. Sections know better.
	 */
	for (uint32_t i = 0; i < f->shnum; i++) {
		Elf64_Shdr s = elf64_shdr(f, i);
		uint64_t end = range_end(s.sh_addr, s.sh_size);

		if (s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_EXECINSTR) &&
		    (s.sh_flags & SHF_ALLOC) && in_half(s.sh_addr, half) && end <= k->end &&
		    s.sh_addr >= k->text && end > exec_end)
			exec_end = end;
	}
	if (exec_end)
		k->etext = exec_end;
}

static void find_build_id(struct kimage *k, const struct elf64 *f)
{
	for (uint32_t i = 0; i < f->phnum && !k->build_id_len; i++) {
		Elf64_Phdr p = elf64_phdr(f, i);

		if (p.p_type == PT_NOTE)
			k->build_id_len = elf64_build_id(f, p.p_offset, p.p_filesz, k->build_id,
							 sizeof(k->build_id));
	}
	for (uint32_t i = 0; i < f->shnum && !k->build_id_len; i++) {
		Elf64_Shdr s = elf64_shdr(f, i);

		if (s.sh_type == SHT_NOTE)
			k->build_id_len = elf64_build_id(f, s.sh_offset, s.sh_size, k->build_id,
							 sizeof(k->build_id));
	}
}

/* Copies a banner that begins at p: printable, ended by a newline or NUL, with a version number. */
static bool take_banner(struct kimage *k, const uint8_t *p, size_t left)
{
	size_t n = strlen(BANNER_PREFIX);

	if (left <= n || p[n] < '0' || p[n] > '9')
		return false;
	for (; n < left && n < sizeof(k->banner); n++) {
		if (p[n] == '\n' || p[n] == 0) {
			memcpy(k->banner, p, n);
			k->banner[n] = 0;
			return true;
		}
		if (p[n] < 0x20 || p[n] > 0x7e)
			return false;
	}
	return false;
}

static void find_banner(struct kimage *k)
{
	unsigned int tries = 0;

	for (unsigned int i = 0; i < k->nseg; i++) {
		const uint8_t *p = k->elf + k->seg[i].file_off;
		const uint8_t *end = p + k->seg[i].file_len;

		if (!k->seg[i].file_len)
			continue;
		while (tries < MAX_BANNER_TRIES &&
		       (p = find_bytes(p, (size_t)(end - p), BANNER_PREFIX))) {
			if (take_banner(k, p, (size_t)(end - p)))
				return;
			tries++;
			p++;
		}
	}
}

int kimage_parse(struct kimage *k, const char *name, const uint8_t *elf, size_t len, struct err *e)
{
	struct kimage x = { .elf = elf, .elf_len = len };
	struct elf64 f;
	int ret;

	ret = elf64_open(&f, name, elf, len, e);
	if (ret < 0)
		return ret;
	if (f.type != ET_EXEC && f.type != ET_DYN)
		return err_set(e, EINVAL, "%s: ELF type %u, expected an executable (%u)", name,
			       f.type, ET_EXEC);
	ret = parse_segments(&x, &f, e);
	if (ret < 0)
		return ret;
	find_extent(&x, &f);
	if (x.text == x.etext)
		return err_set(e, EINVAL,
			       "%s: no executable segment with bytes: not a kernel image "
			       "(a file that holds only debug information?)",
			       name);
	find_build_id(&x, &f);
	find_banner(&x);
	for (uint32_t i = 0; i < f.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&f, i);
		const char *sn = elf64_section_name(&f, &s);

		if (!strcmp(sn, ".orc_unwind") || !strcmp(sn, ".orc_unwind_ip"))
			x.has_orc = true;
		if (s.sh_type == SHT_SYMTAB && s.sh_size >= 2 * sizeof(Elf64_Sym))
			x.has_symtab = true;
	}
	*k = x;
	return 0;
}

const uint8_t *kimage_ptr(const struct kimage *k, uint64_t va, size_t *avail)
{
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		if (va >= s->va && va - s->va < s->file_len) {
			*avail = (size_t)(s->file_len - (va - s->va));
			return k->elf + s->file_off + (va - s->va);
		}
	}
	return NULL;
}

int kimage_read(const struct kimage *k, uint64_t va, void *dst, size_t len)
{
	size_t avail;
	const uint8_t *p = kimage_ptr(k, va, &avail);

	if (!p || avail < len)
		return -EFAULT;
	if (k->need)
		k->need(k->need_ctx, va, len);
	memcpy(dst, p, len);
	return 0;
}

bool kimage_section(const struct kimage *k, const char *name, uint64_t *va, uint64_t *len)
{
	struct elf64 f;

	if (elf64_open(&f, "kernel image", k->elf, k->elf_len, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < f.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&f, i);

		if ((s.sh_flags & SHF_ALLOC) && !strcmp(elf64_section_name(&f, &s), name)) {
			*va = s.sh_addr;
			*len = s.sh_size;
			return true;
		}
	}
	return false;
}

/* Returns the letter that nm prints. */
static char symbol_type(const struct elf64 *f, uint16_t shndx, uint8_t info)
{
	unsigned int bind = ELF64_ST_BIND(info);
	bool global = bind != STB_LOCAL;
	Elf64_Shdr s;
	char type;

	if (shndx == SHN_ABS || shndx >= f->shnum)
		type = 'a';
	else {
		s = elf64_shdr(f, shndx);
		if (s.sh_flags & SHF_EXECINSTR)
			type = bind == STB_WEAK ? 'w' : 't';
		else if (bind == STB_WEAK)
			type = 'v';
		else if (s.sh_type == SHT_NOBITS)
			type = 'b';
		else
			type = (s.sh_flags & SHF_WRITE) ? 'd' : 'r';
	}
	return global ? (char)(type - 'a' + 'A') : type;
}

static int add_elf_symbols(const struct elf64 *f, const Elf64_Shdr *symtab, struct symtab *t,
			   struct err *e)
{
	struct cursor c = cursor_window(&f->file, symtab->sh_offset, symtab->sh_size);
	struct cursor names;
	Elf64_Shdr str;
	int ret = 0;

	if (c.bad || symtab->sh_link >= f->shnum || symtab->sh_entsize != sizeof(Elf64_Sym))
		return err_set(e, EINVAL,
			       "%s: the symbol table (0x%llx bytes at offset 0x%llx) is "
			       "not inside the file or has no string table",
			       f->name, (unsigned long long)symtab->sh_size,
			       (unsigned long long)symtab->sh_offset);
	str = elf64_shdr(f, symtab->sh_link);
	names = cursor_window(&f->file, str.sh_offset, str.sh_size);
	if (str.sh_type != SHT_STRTAB || names.bad)
		return err_set(e, EINVAL, "%s: the symbols' string table is not inside the file",
			       f->name);
	while (cursor_left(&c) >= sizeof(Elf64_Sym)) {
		uint32_t name = cursor_u32(&c);
		uint8_t info = cursor_u8(&c);
		uint16_t shndx;
		uint64_t addr, size;
		struct cursor one;

		cursor_skip(&c, 1);
		shndx = cursor_u16(&c);
		addr = cursor_u64(&c);
		size = cursor_u64(&c);
		if (shndx == SHN_UNDEF || shndx == SHN_COMMON ||
		    ELF64_ST_TYPE(info) == STT_SECTION || ELF64_ST_TYPE(info) == STT_TLS)
			continue;
		/*
		 * Global symbols come after all local ones and belong to no file. The name of a
		 * new file may be unreadable.
		 */
		if (ELF64_ST_BIND(info) != STB_LOCAL || ELF64_ST_TYPE(info) == STT_FILE)
			(void)symtab_set_file(t, NULL);
		if (name >= names.len)
			continue;
		/* Only as many bytes as a name may have: names overlap in a hostile table. */
		one = cursor_window(&names, name,
				    names.len - name < SYMTAB_MAX_NAME + 1 ? names.len - name
									   : SYMTAB_MAX_NAME + 1);
		if (!cursor_str_at(&one, 0))
			continue;
		/*
		 * The local symbols that follow belong to this file (System V ABI, "Symbol
		 * Table"). A file name that cannot be stored counts as unknown.
		 */
		if (ELF64_ST_TYPE(info) == STT_FILE)
			(void)symtab_set_file(t, (const char *)one.base);
		else if (one.base[0])
			ret = symtab_add(t, addr, size, symbol_type(f, shndx, info),
					 (const char *)one.base);
		if (ret < 0)
			return err_set(e, -ret, "%s: cannot keep more than %zu symbols: %s",
				       f->name, symtab_count(t), strerror(-ret));
	}
	return 0;
}

int kimage_symbols(const struct kimage *k, struct symtab **out, struct err *e)
{
	struct elf64 f;
	int ret;

	ret = elf64_open(&f, "kernel image", k->elf, k->elf_len, e);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < f.shnum; i++) {
		Elf64_Shdr s = elf64_shdr(&f, i);
		struct symtab *t;

		if (s.sh_type != SHT_SYMTAB || s.sh_size < 2 * sizeof(Elf64_Sym))
			continue;
		t = symtab_create();
		if (!t)
			return err_set(e, ENOMEM, "no memory for symbols");
		ret = add_elf_symbols(&f, &s, t, e);
		if (ret == 0)
			ret = symtab_freeze(t, e);
		if (ret < 0) {
			symtab_destroy(t);
			return ret;
		}
		*out = t;
		return 0;
	}
	return err_set(e, ENOENT, "the kernel image has no symbols (.symtab)");
}

/* -- whether the code keeps frame pointers, judged by its functions' first instructions -------- */

/* Number of functions that are examined, spread over the image. */
#define MAX_FUNCTIONS 1024u
/* Bytes of each function that are examined: a call comes early, or the function matters little. */
#define MAX_FUNCTION_BYTES 512u
/*
 * Without symbols: number of call targets that are collected, and bytes of text searched for them.
 */
#define MAX_TARGETS 8192u
#define MAX_SEARCH (4u << 20)

/* 32-bit code: shorter functions need no frame, and are not counted. */
#define MIN_FUNCTION32 24u

struct kimage_fp_verdict {
	unsigned int calling, framed;
};

/*
 * Decodes a function in address order up to its first call. push %rbp and mov %rsp,%rbp may be
 * apart: the compiler schedules other instructions between them, and moves the prologue after an
 * early return.
 */
static void look_at_function(const struct kimage *k, uint64_t va, uint64_t len,
			     struct kimage_fp_verdict *v)
{
	bool pushed = false, framed = false;
	uint64_t at = 0;
	size_t avail;
	const uint8_t *p = kimage_ptr(k, va, &avail);

	if (!p)
		return;
	if (len > avail)
		len = avail;
	if (len > MAX_FUNCTION_BYTES)
		len = MAX_FUNCTION_BYTES;
	while (at < len) {
		struct insn i;

		if (!insn_decode(&i, va + at, p + at, (size_t)(len - at)))
			return;
		if (i.kind == INSN_PUSH_RBP)
			pushed = true;
		else if (i.kind == INSN_MOV_RSP_RBP)
			framed = pushed;
		if (i.kind == INSN_CALL_IND ||
		    (i.kind == INSN_CALL && !insn_is_fentry(p, (size_t)len, at))) {
			v->calling++;
			v->framed += framed;
			return;
		}
		at += i.len;
	}
}

static bool kimage_fp_judge(const struct kimage_fp_verdict *v)
{
	return v->calling && v->framed * 10ull >= v->calling * 9ull;
}

static bool is_function(const struct kimage *k, const struct symbol *s)
{
	return (s->type == 't' || s->type == 'T') && s->size && s->addr >= k->text &&
	       s->addr < k->etext;
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Collects call targets by decoding text in address order. Returns their number; they are sorted
 * and unique.
 */
static size_t collect_targets(const struct kimage *k, uint64_t *target)
{
	size_t avail, at = 0, n = 0, out = 0;
	const uint8_t *p = kimage_ptr(k, k->text, &avail);

	if (!p)
		return 0;
	if (avail > k->etext - k->text)
		avail = (size_t)(k->etext - k->text);
	if (avail > MAX_SEARCH)
		avail = MAX_SEARCH;
	while (at < avail && n < MAX_TARGETS) {
		struct insn i;

		if (!insn_decode(&i, k->text + at, p + at, avail - at)) {
			at++;
			continue;
		}
		if (i.kind == INSN_CALL && (uint64_t)i.value >= k->text &&
		    (uint64_t)i.value < k->etext)
			target[n++] = (uint64_t)i.value;
		at += i.len;
	}
	qsort(target, n, sizeof(*target), cmp_u64);
	for (size_t i = 0; i < n; i++)
		if (out == 0 || target[out - 1] != target[i])
			target[out++] = target[i];
	return out;
}

bool kimage_keeps_frame_pointers(const struct kimage *k, const struct symtab *t)
{
	struct kimage_fp_verdict v = { 0 };

	if (k->has_orc)
		return false;
	if (t) {
		size_t n = 0, seen = 0, step;

		for (size_t i = 0; i < symtab_count(t); i++)
			n += is_function(k, symtab_at(t, i));
		step = n / MAX_FUNCTIONS + 1;
		for (size_t i = 0; i < symtab_count(t); i++) {
			const struct symbol *s = symtab_at(t, i);

			if (is_function(k, s) && seen++ % step == 0)
				look_at_function(k, s->addr, s->size, &v);
		}
	} else {
		uint64_t *target = malloc(MAX_TARGETS * sizeof(*target));
		size_t n = target ? collect_targets(k, target) : 0, step = n / MAX_FUNCTIONS + 1;

		for (size_t i = 0; i < n; i += step)
			look_at_function(k, target[i],
					 i + 1 < n ? target[i + 1] - target[i] : MAX_FUNCTION_BYTES,
					 &v);
		free(target);
	}
	return kimage_fp_judge(&v);
}

bool kimage_keeps_frame_pointers32(const struct kimage *k, const struct symtab *t)
{
	struct kimage_fp_verdict v = { 0 };

	for (size_t i = 0; t && i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);
		unsigned int push, mov;
		size_t avail;
		const uint8_t *p = kimage_ptr(k, s->addr, &avail);

		if (!p || !is_function(k, s) || s->size < MIN_FUNCTION32)
			continue;
		v.calling++;
		v.framed +=
			insn_prologue32(p, avail < s->size ? avail : (size_t)s->size, &push, &mov);
	}
	/* Labels in assembly count as functions, and small kernels have many of them. */
	return v.calling && v.framed * 4ull >= v.calling * 3ull;
}
