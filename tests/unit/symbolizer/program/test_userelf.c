/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of this system, as readelf, nm and objdump see them, whole and with holes.
 */
#include "symbolizer/program/userelf.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "tests/unit/skip.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

extern const uint8_t demo_elf[], demo_elf_end[];

/* A file of which the pages [hole, hole + len) are missing. */
struct holed {
	const uint8_t *data;
	size_t len;
	uint64_t hole[4], hole_len[4];
};

static uint64_t next_hole(const struct holed *h, uint64_t off)
{
	uint64_t next = h->len;

	for (unsigned int i = 0; i < 4; i++) {
		if (off >= h->hole[i] && off < h->hole[i] + h->hole_len[i])
			return off;
		if (h->hole_len[i] && h->hole[i] > off && h->hole[i] < next)
			next = h->hole[i];
	}
	return next;
}

static size_t read_holed(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct holed *h = ctx;
	uint64_t end = off < h->len ? next_hole(h, off) : off;

	if (len > end - off)
		len = (size_t)(end - off);
	memcpy(dst, h->data + off, len);
	return len;
}

static struct file_source source(struct holed *h)
{
	return (struct file_source){ read_holed, h, h->len };
}

/* A page-wise hole over these bytes. */
static void make_hole(struct holed *h, unsigned int i, uint64_t off, uint64_t len)
{
	h->hole[i] = off & ~4095ull;
	h->hole_len[i] = ((off + len + 4095) & ~4095ull) - h->hole[i];
}

struct loaded {
	struct holed h;
	struct file_map map;
	struct userelf u;
	struct userelf_names n;
	struct symtab *t;
};

static void load_again(struct loaded *l)
{
	struct file_source src = source(&l->h);
	struct err e = { 0 };

	symtab_destroy(l->t);
	l->t = NULL;
	if (userelf_open(&l->u, "file", &src, &e) < 0 ||
	    userelf_symbols(&l->u, &l->t, &l->n, &e) < 0)
		fail_msg("%s", e.text);
}

static void load(struct loaded *l, const char *path)
{
	struct err e = { 0 };

	memset(l, 0, sizeof(*l));
	if (file_map_open(&l->map, path, 1u << 30, &e) < 0)
		fail_msg("%s", e.text);
	l->h.data = l->map.data;
	l->h.len = l->map.len;
	load_again(l);
}

static void unload(struct loaded *l)
{
	symtab_destroy(l->t);
	file_map_close(&l->map);
}

static bool has(const struct symtab *t, uint64_t addr, const char *name)
{
	size_t lo = 0, hi = symtab_count(t);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (symtab_at(t, mid)->addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < symtab_count(t) && symtab_at(t, lo)->addr == addr; lo++)
		if (!strcmp(symtab_at(t, lo)->name, name))
			return true;
	return false;
}

static FILE *tool(const char *what, const char *path)
{
	char cmd[8192];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s '%s' 2>/dev/null", what, path);
	f = popen(cmd, "r");
	assert_non_null(f);
	return f;
}

static bool have_binutils(void)
{
	return system("nm --version >/dev/null 2>&1") == 0;
}

/* The functions and labels that readelf prints, in a table of their own. */
static struct symtab *by_readelf(const struct userelf *u, const char *path)
{
	struct symtab *t = symtab_create();
	FILE *f = tool("readelf -sW", path);
	static char line[65536], name[65536];
	bool dyn = false;

	while (fgets(line, sizeof(line), f)) {
		char type[32], bind[32], vis[32], ndx[32], size[32];
		unsigned long long addr;

		dyn = strstr(line, "Symbol table '") ? strstr(line, "'.dynsym'") != NULL : dyn;
		if (sscanf(line, " %*d: %llx %31s %31s %31s %31s %31s %65535s", &addr, size, type,
			   bind, vis, ndx, name) != 7 ||
		    !strcmp(ndx, "UND") || !strcmp(ndx, "ABS"))
			continue;
		if (strcmp(type, "FUNC") && strcmp(type, "IFUNC") &&
		    (strcmp(type, "NOTYPE") || !strcmp(vis, "HIDDEN") || !strcmp(vis, "INTERNAL") ||
		     !userelf_is_text(u, addr)))
			continue;
		/* Versions of dynamic symbols are readelf's addition. */
		if (dyn && strchr(name, '@'))
			*strchr(name, '@') = 0;
		else if (strstr(name, "@@"))
			*strstr(name, "@@") = 0;
		symtab_add(t, addr, strtoull(size, NULL, 0),
			   !strcmp(bind, "LOCAL")  ? 't'
			   : !strcmp(bind, "WEAK") ? 'W'
						   : 'T',
			   name);
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

/* Both ways: nothing is missing, nothing is invented. PLT entries apart. */
static void same_as_readelf(const struct loaded *l, const char *path, size_t at_least)
{
	struct symtab *want = by_readelf(&l->u, path);
	size_t n = 0;

	for (size_t i = 0; i < symtab_count(want); i++) {
		const struct symbol *s = symtab_at(want, i);

		if (!has(l->t, s->addr, s->name))
			fail_msg("%s: %llx %s is missing", path, (unsigned long long)s->addr,
				 s->name);
	}
	for (size_t i = 0; i < symtab_count(l->t); i++) {
		const struct symbol *s = symtab_at(l->t, i);

		if (strstr(s->name, "@plt"))
			continue;
		n++;
		if (!has(want, s->addr, s->name))
			fail_msg("%s: %llx %s is not in the file", path,
				 (unsigned long long)s->addr, s->name);
	}
	print_message("%s: %zu functions\n", path, n);
	assert_int_equal(n, symtab_count(want));
	assert_true(n >= at_least);
	symtab_destroy(want);
}

static unsigned int same_as_nm(const struct loaded *l, const char *path, const char *cmd)
{
	FILE *f = tool(cmd, path);
	static char line[65536], name[65536];
	unsigned int n = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned long long addr;
		char type;

		if (sscanf(line, "%llx %c %65535s", &addr, &type, name) != 3 ||
		    !strchr("TWi", type) || !userelf_is_text(&l->u, addr))
			continue;
		if (strchr(name, '@'))
			*strchr(name, '@') = 0;
		n++;
		if (!has(l->t, addr, name))
			fail_msg("%s: nm has %llx %c %s", path, addr, type, name);
	}
	pclose(f);
	return n;
}

static unsigned int same_plt(const struct loaded *l, const char *path)
{
	FILE *f = tool("objdump -d -j .plt -j .plt.sec -j .plt.got", path);
	static char line[65536], name[65536];
	unsigned int n = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned long long addr;
		size_t len;

		if (sscanf(line, "%llx <%65535s", &addr, name) != 2 || !strstr(name, "@plt>:"))
			continue;
		len = strlen(name);
		name[len - 2] = 0;
		n++;
		if (!has(l->t, addr, name))
			fail_msg("%s: objdump has %llx %s", path, addr, name);
	}
	pclose(f);
	print_message("%s: %u PLT entries\n", path, n);
	assert_int_equal(n, l->n.from_plt);
	return n;
}

/* The C library that this program runs with. */
static const char *libc_path(void)
{
	static char path[4096];
	char line[4200];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && !path[0] && fgets(line, sizeof(line), f))
		if (strstr(line, "/libc.so.6") || strstr(line, "/libc-2."))
			sscanf(strchr(line, '/'), "%4095s", path);
	if (f)
		fclose(f);
	return path;
}

static void real_files(void **state)
{
	const char *path[] = { "/proc/self/exe", libc_path(), "/bin/ls", NULL };
	char self[4096];
	struct loaded l;
	ssize_t n = readlink(path[0], self, sizeof(self) - 1);

	(void)state;
	if (!have_binutils())
		SKIP("binutils are not installed");
	assert_true(n > 0);
	self[n] = 0;
	path[0] = self;
	for (unsigned int i = 0; path[i]; i++) {
		if (access(path[i], R_OK) < 0)
			continue;
		load(&l, path[i]);
		same_as_readelf(&l, path[i], i == 2 ? 0 : 50);
		assert_true(same_as_nm(&l, path[i], "nm -D --defined-only") > 0 || i != 1);
		same_as_nm(&l, path[i], "nm --defined-only");
		assert_true(same_plt(&l, path[i]) > 0);
		assert_int_equal(l.n.lost, 0);
		assert_string_equal(l.n.why, "");
		assert_int_equal(l.u.build_id_len, 20);
		unload(&l);
	}
}

/* Statically linked, with IFUNCs resolved through .plt or .iplt. */
static void static_file(void **state)
{
	char dir[] = "/tmp/kvmprof-userelf-XXXXXX", cmd[256], path[64];
	struct loaded l;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(cmd, sizeof(cmd),
		 "echo 'int main(void) { return 0; }' | cc -static -x c - -o %s 2>/dev/null", path);
	if (!have_binutils() || system(cmd) != 0) {
		file_remove_tree(dir, NULL);
		SKIP("binutils or cc cannot make this file here");
	}
	load(&l, path);
	same_as_readelf(&l, path, 500);
	assert_true(same_as_nm(&l, path, "nm --defined-only") > 100);
	/* objdump has no names for these. */
	assert_true(l.n.from_plt > 0);
	assert_int_equal(l.n.symtab, USERELF_READ);
	assert_int_equal(l.n.dynsym, USERELF_ABSENT);
	unload(&l);
	file_remove_tree(dir, NULL);
}

/* .gnu_debugdata put by objcopy into a stripped copy of this program. */
static void debugdata(void **state)
{
	char dir[] = "/tmp/kvmprof-userelf-XXXXXX", cmd[1024];
	struct loaded l, whole;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd),
		 "cd %s && objcopy --only-keep-debug /proc/$PPID/exe d && strip -g d -o e && "
		 "xz -k e && strip /proc/$PPID/exe -o s && "
		 "objcopy --add-section .gnu_debugdata=e.xz s f 2>/dev/null",
		 dir);
	if (!have_binutils() || system(cmd) != 0) {
		file_remove_tree(dir, NULL);
		SKIP("binutils or cc cannot make this file here");
	}
	load(&whole, "/proc/self/exe");
	snprintf(cmd, sizeof(cmd), "%s/f", dir);
	load(&l, cmd);
	assert_int_equal(l.n.symtab, USERELF_ABSENT);
	assert_int_equal(l.n.debugdata, USERELF_READ);
	assert_int_equal(l.n.from_debugdata, whole.n.from_symtab);
	assert_int_equal(symtab_count(l.t), symtab_count(whole.t));
	assert_true(has(l.t, symtab_find(whole.t, "main")->addr, "main"));
	unload(&l);
	unload(&whole);
	file_remove_tree(dir, NULL);
}

/*
 * Exported functions without a size, one with call frame information, and static ones behind them
 * whose names strip takes away.
 */
static const char unsized_source[] =
	".text\n.globl early\n.type early,@function\nearly: ret\n"
	"hidden: nop\n.rept 200\nnop\n.endr\nret\n"
	".globl framed\n.type framed,@function\nframed: .cfi_startproc\n.rept 30\nnop\n.endr\nret\n"
	".cfi_endproc\nhidden2: .rept 99\nnop\n.endr\nret\n"
	".globl go\n.type go,@function\ngo: call hidden\nret\n.size go,.-go\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void unsized_of_stripped_file(void **state)
{
	char dir[] = "/tmp/kvmprof-userelf-XXXXXX", cmd[1024];
	struct loaded l, whole;
	uint64_t early, framed;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd), "%s/u.S", dir);
	f = fopen(cmd, "w");
	assert_non_null(f);
	assert_true(fputs(unsized_source, f) >= 0 && fclose(f) == 0);
	snprintf(cmd, sizeof(cmd),
		 "cd %s && cc -shared -nostdlib -Wl,--eh-frame-hdr -o w u.S && strip w -o s", dir);
	if (!have_binutils() || system(cmd) != 0) {
		file_remove_tree(dir, NULL);
		SKIP("binutils or cc cannot make this file here");
	}
	snprintf(cmd, sizeof(cmd), "%s/w", dir);
	load(&whole, cmd);
	snprintf(cmd, sizeof(cmd), "%s/s", dir);
	load(&l, cmd);
	early = symtab_find(whole.t, "early")->addr;
	framed = symtab_find(whole.t, "framed")->addr;
	assert_true(has(whole.t, early + 1, "hidden"));
	assert_true(has(l.t, early, "early"));
	assert_null(symtab_lookup(l.t, early + 1, NULL));
	assert_null(symtab_lookup(l.t, early + 100, NULL));
	assert_true(has(l.t, framed, "framed"));
	assert_string_equal(symtab_lookup(l.t, framed + 30, NULL)->name, "framed");
	assert_null(symtab_lookup(l.t, framed + 31, NULL));
	assert_null(symtab_lookup(l.t, symtab_find(whole.t, "hidden2")->addr, NULL));
	assert_string_equal(symtab_lookup(l.t, symtab_find(whole.t, "go")->addr + 5, NULL)->name,
			    "go");
	unload(&l);
	unload(&whole);
	file_remove_tree(dir, NULL);
}

static Elf64_Shdr find_section(const struct loaded *l, uint32_t type)
{
	Elf64_Ehdr eh;
	Elf64_Shdr s = { 0 };

	memcpy(&eh, l->map.data, sizeof(eh));
	for (unsigned int i = 0; i < eh.e_shnum; i++) {
		memcpy(&s, l->map.data + eh.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == type)
			return s;
	}
	fail_msg("no section of type %u", type);
	return s;
}

/* Without section headers .dynsym is found all the same, with the same content. */
static void no_sections(void **state)
{
	struct loaded l, cut;
	Elf64_Ehdr eh;
	size_t n = 0;

	(void)state;
	load(&l, libc_path());
	load(&cut, libc_path());
	memcpy(&eh, cut.map.data, sizeof(eh));
	make_hole(&cut.h, 0, eh.e_shoff, cut.h.len - eh.e_shoff);
	load_again(&cut);
	assert_true(cut.n.no_sections);
	assert_int_equal(cut.n.dynsym, USERELF_READ);
	assert_non_null(strstr(cut.n.why, "section headers"));
	assert_int_equal(cut.n.from_dynsym, l.n.from_dynsym);
	for (size_t i = 0; i < symtab_count(cut.t); i++) {
		const struct symbol *s = symtab_at(cut.t, i);

		n += has(l.t, s->addr, s->name);
	}
	assert_int_equal(n, symtab_count(cut.t));
	assert_int_equal(memcmp(l.u.build_id, cut.u.build_id, 20), 0);
	unload(&l);
	unload(&cut);
}

static void holes(void **state)
{
	struct loaded l;
	struct file_source src;
	struct err e = { 0 };
	Elf64_Shdr s;
	uint32_t all;

	(void)state;
	/* One page of .symtab: it is not used, .dynsym is. */
	load(&l, "/proc/self/exe");
	assert_int_equal(l.n.symtab, USERELF_READ);
	s = find_section(&l, SHT_SYMTAB);
	make_hole(&l.h, 0, s.sh_offset + s.sh_size / 2, 1);
	src = source(&l.h);
	symtab_destroy(l.t);
	l.t = NULL;
	assert_int_equal(userelf_open(&l.u, "file", &src, NULL), 0);
	(void)userelf_symbols(&l.u, &l.t, &l.n, NULL);
	assert_int_equal(l.n.symtab, USERELF_HOLES);
	assert_int_equal(l.n.from_symtab, 0);
	assert_non_null(strstr(l.n.why, ".symtab"));
	unload(&l);

	/* A page of .dynsym: what lies in it is lost, and counted, the rest is there. */
	load(&l, libc_path());
	all = l.n.from_dynsym;
	s = find_section(&l, SHT_DYNSYM);
	make_hole(&l.h, 0, s.sh_offset + s.sh_size / 2, 1);
	load_again(&l);
	assert_int_equal(l.n.dynsym, USERELF_HOLES);
	assert_true(l.n.lost >= 4096 / sizeof(Elf64_Sym));
	assert_true(l.n.from_dynsym > all / 2 && l.n.from_dynsym < all);
	/* No first page: nothing. */
	make_hole(&l.h, 1, 0, 1);
	src = source(&l.h);
	assert_int_equal(userelf_open(&l.u, "file", &src, &e), -ENODATA);
	assert_non_null(strstr(e.text, "first page"));
	unload(&l);
}

static void refused(void **state)
{
	static uint8_t elf[256];
	static const struct {
		unsigned int at;
		uint8_t value;
		const char *word;
	} bad[] = {
		{ 0, 'x', "not an ELF" },
		{ EI_CLASS, ELFCLASS32, "32-bit" },
		{ EI_DATA, ELFDATA2MSB, "byte order" },
		{ 16, ET_REL, "ELF type 1" },
		{ 18, EM_AARCH64, "machine 183" },
		{ 56, 0, "0 program headers" },
		{ 54, 32, "of 32 bytes" },
		{ 32, 250, "not in it" },
	};
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = 64,
			  .e_phnum = 1,
			  .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr ph = { .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0x1000, .p_memsz = 4096 };
	struct holed h = { .data = elf, .len = sizeof(elf) };
	struct file_source src = source(&h);
	struct symtab *t;
	struct userelf u;
	struct err e;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(elf, &eh, sizeof(eh));
		memcpy(elf + 64, &ph, sizeof(ph));
		elf[bad[i].at] = bad[i].value;
		err_clear(&e);
		assert_int_equal(userelf_open(&u, "file", &src, &e), -EINVAL);
		if (!strstr(e.text, bad[i].word))
			fail_msg("%u: %s", i, e.text);
	}
	memcpy(elf, &eh, sizeof(eh));
	assert_int_equal(userelf_open(&u, "file", &src, NULL), 0);
	err_clear(&e);
	assert_int_equal(userelf_symbols(&u, &t, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no names"));
	src.len = 20;
	assert_int_equal(userelf_open(&u, "file", &src, NULL), -EINVAL);
}

static void offsets(void **state)
{
	struct loaded l;
	uint64_t va, off;

	(void)state;
	memset(&l, 0, sizeof(l));
	l.h.data = demo_elf;
	l.h.len = (size_t)(demo_elf_end - demo_elf);
	load_again(&l);
	assert_int_equal(l.u.type, ET_EXEC);
	for (size_t i = 0; i < symtab_count(l.t); i++) {
		uint64_t addr = symtab_at(l.t, i)->addr;

		assert_true(userelf_is_text(&l.u, addr));
		assert_true(userelf_off_of(&l.u, addr, &off));
		assert_true(userelf_va_of(&l.u, off, &va));
		assert_true(va == addr);
	}
	assert_false(userelf_va_of(&l.u, 1ull << 40, &va));
	assert_false(userelf_off_of(&l.u, 8, &off));
	symtab_destroy(l.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_files), cmocka_unit_test(static_file),
		cmocka_unit_test(debugdata),  cmocka_unit_test(no_sections),
		cmocka_unit_test(holes),      cmocka_unit_test(refused),
		cmocka_unit_test(offsets),    cmocka_unit_test(unsized_of_stripped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
