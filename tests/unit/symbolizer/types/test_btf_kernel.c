/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debian's kernels say where members lie twice: in the BTF of the image and in the
 * DWARF of the -dbg package, made by different programs. Both must tell the same.
 */
#include "base/file.h"
#include "symbolizer/types/btf_types.h"
#include "symbolizer/types/dwarf.h"
#include "tests/unit/cached_kernel.h"
#include "tests/unit/skip.h"
#include "vmm/image/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define IN_6_1 1u
#define IN_6_12 2u
#define IN_BOTH 3u

static const struct {
	const char *structure, *path;
	unsigned int in;
} members[] = {
	{ "task_struct", "comm", IN_BOTH },
	{ "task_struct", "comm[7]", IN_BOTH },
	{ "task_struct", "pid", IN_BOTH },
	{ "task_struct", "tgid", IN_BOTH },
	{ "task_struct", "mm", IN_BOTH },
	{ "task_struct", "tasks", IN_BOTH },
	{ "task_struct", "tasks.next", IN_BOTH },
	{ "task_struct", "thread_node", IN_BOTH },
	{ "task_struct", "real_parent", IN_BOTH },
	{ "task_struct", "group_leader", IN_BOTH },
	{ "task_struct", "start_boottime", IN_BOTH },
	{ "task_struct", "in_execve", IN_BOTH },
	{ "task_struct", "sched_reset_on_fork", IN_BOTH },
	{ "task_struct", "thread.sp", IN_BOTH },
	{ "module", "name", IN_BOTH },
	{ "module", "list", IN_BOTH },
	{ "module", "kallsyms", IN_BOTH },
	{ "module", "state", IN_BOTH },
	{ "module", "core_layout.base", IN_6_1 },
	{ "module", "core_layout.text_size", IN_6_1 },
	{ "module", "mem", IN_6_12 },
	{ "module", "mem[0].base", IN_6_12 },
	{ "module", "mem[6].size", IN_6_12 },
	{ "module", "mem[7].size", 0 },
	{ "mod_kallsyms", "symtab", IN_BOTH },
	{ "mm_struct", "mm_mt", IN_BOTH },
	{ "mm_struct", "mm_mt.ma_root", IN_BOTH },
	{ "mm_struct", "pgd", IN_BOTH },
	{ "mm_struct", "map_count", IN_BOTH },
	{ "mm_struct", "exe_file", IN_BOTH },
	{ "mm_struct", "saved_auxv[3]", IN_BOTH },
	{ "mm_struct", "mmap", 0 },
	{ "vm_area_struct", "vm_start", IN_BOTH },
	{ "vm_area_struct", "vm_end", IN_BOTH },
	{ "vm_area_struct", "vm_pgoff", IN_BOTH },
	{ "vm_area_struct", "vm_file", IN_BOTH },
	{ "vm_area_struct", "vm_flags", IN_BOTH },
	{ "file", "f_path.dentry", IN_BOTH },
	{ "file", "f_path.mnt", IN_BOTH },
	{ "file", "f_inode", IN_BOTH },
	{ "dentry", "d_name.name", IN_BOTH },
	{ "dentry", "d_name.len", IN_BOTH },
	{ "dentry", "d_name.hash_len", IN_BOTH },
	{ "dentry", "d_parent", IN_BOTH },
	{ "page", "flags", IN_BOTH },
	{ "page", "mapping", IN_BOTH },
	{ "page", "compound_head", IN_BOTH },
	{ "page", "_refcount.counter", IN_BOTH },
	{ "xa_node", "slots", IN_BOTH },
	{ "xa_node", "slots[63]", IN_BOTH },
	{ "xa_node", "slots[64]", 0 },
	{ "xa_node", "tags[2]", IN_BOTH },
	{ "xa_node", "tags[2][0]", 0 },
	{ "xarray", "xa_head", IN_BOTH },
	{ "inode", "i_mapping", IN_BOTH },
	{ "inode", "i_size", IN_BOTH },
	{ "address_space", "i_pages.xa_head", IN_BOTH },
	{ "maple_node", "mr64.slot[15]", IN_BOTH },
	{ "maple_node", "mr64.pad", IN_BOTH },
	{ "maple_node", "ma64.gap", IN_BOTH },
	{ "mount", "mnt_mountpoint", IN_BOTH },
	{ "qstr", "name", IN_BOTH },
	{ "pt_regs", "orig_ax", IN_6_1 | IN_6_12 },
	{ "desc_struct", "type", IN_BOTH },
	{ "desc_struct", "base2", IN_BOTH },
	{ "tcphdr", "syn", IN_BOTH },
	{ "iphdr", "ihl", IN_BOTH },
	{ "bpf_prog", "jited", IN_BOTH },
	{ "bpf_prog", "insns", IN_BOTH },
	{ "no_such_structure", "x", 0 },
};

static const char *const sizes[] = { "task_struct", "module",	 "mm_struct", "vm_area_struct",
				     "file",	    "dentry",	 "page",      "xa_node",
				     "maple_node",  "list_head", "no_such",   "inode" };
static const char *const enumerators[] = { "PIDTYPE_TGID",  "MODULE_STATE_COMING", "maple_leaf_64",
					   "PG_locked",	    "HRTIMER_RESTART",	   "NO_SUCH_VALUE",
					   "BPF_F_INGRESS", "KOBJ_NS_TYPES" };

static void same_member(struct types *btf, struct types *dwarf, size_t i, unsigned int kernel)
{
	struct type_member a = { 0 }, b = { 0 };
	const char *structure = members[i].structure, *path = members[i].path;
	int x = btf->member(btf->ctx, structure, path, &a);
	int y = dwarf->member(dwarf->ctx, structure, path, &b);

	if (x != y || x != (members[i].in & kernel ? 0 : -ENOENT))
		fail_msg("%s.%s: BTF says %d, DWARF %d", structure, path, x, y);
	if (a.off != b.off || a.size != b.size || a.bit_off != b.bit_off ||
	    a.bit_count != b.bit_count)
		fail_msg("%s.%s: BTF has byte %u, size %u, bits %u:%u; DWARF %u, %u, %u:%u",
			 structure, path, a.off, a.size, a.bit_off, a.bit_count, b.off, b.size,
			 b.bit_off, b.bit_count);
}

static void same_answers(struct types *btf, struct types *dwarf, unsigned int kernel)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		same_member(btf, dwarf, i, kernel);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t a = 0, b = 0;

		assert_int_equal(btf->size(btf->ctx, sizes[i], &a),
				 dwarf->size(dwarf->ctx, sizes[i], &b));
		if (a != b)
			fail_msg("sizeof(%s): BTF says %llu, DWARF %llu", sizes[i],
				 (unsigned long long)a, (unsigned long long)b);
		assert_true(a || i == 10);
	}
	for (size_t i = 0; i < sizeof(enumerators) / sizeof(enumerators[0]); i++) {
		int64_t a = 0, b = 0;

		assert_int_equal(btf->enumerator(btf->ctx, enumerators[i], &a),
				 dwarf->enumerator(dwarf->ctx, enumerators[i], &b));
		if (a != b)
			fail_msg("%s: BTF says %lld, DWARF %lld", enumerators[i], (long long)a,
				 (long long)b);
	}
}

static void compare(const char *image_pattern, const char *debug_pattern, unsigned int kernel)
{
	struct file_map image_file = { 0 }, debug_file = { 0 };
	char image_path[4096], debug_path[4096];
	struct types_dwarf *dwarf = NULL;
	struct types from_btf, from_dwarf;
	struct boot_image image = { 0 };
	struct btf *btf = NULL;
	struct type_member m;
	struct err e = { 0 };
	struct kimage k;

	if (!cached_kernel(image_pattern, image_path, sizeof(image_path)) ||
	    !cached_kernel(debug_pattern, debug_path, sizeof(debug_path))) {
		SKIP("no %s or %s in the cache of the scripts", image_pattern, debug_pattern);
	}
	if (file_map_open(&image_file, image_path, BOOT_MAX_FILE, &e) < 0 ||
	    image_parse(&image, image_path, image_file.data, image_file.len, &e) < 0 ||
	    kimage_parse(&k, image_path, image.elf, image.elf_len, &e) < 0 ||
	    btf_from_image(&btf, &k, image_path, &e) < 0 ||
	    file_map_open(&debug_file, debug_path, BOOT_MAX_FILE, &e) < 0 ||
	    types_dwarf_open(&dwarf, debug_file.data, debug_file.len, debug_path, &e) < 0)
		fail_msg("%s", e.text);
	from_btf = btf_types(btf);
	from_dwarf = types_dwarf_types(dwarf);
	assert_int_equal(from_dwarf.member(from_dwarf.ctx, "task_struct", "comm", &m), 0);
	same_answers(&from_btf, &from_dwarf, kernel);
	types_dwarf_destroy(dwarf);
	btf_destroy(btf);
	file_map_close(&debug_file);
	image_deinit(&image);
	file_map_close(&image_file);
}

static void debian_6_1(void **state)
{
	(void)state;
	compare("debian-6.1.*/vmlinuz-*", "debian-6.1.*/dbg/vmlinux-*", IN_6_1);
}

static void debian_6_12(void **state)
{
	(void)state;
	compare("debian-6.12.*/vmlinuz-*", "debian-6.12.*/dbg/vmlinux-*", IN_6_12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debian_6_1),
		cmocka_unit_test(debian_6_12),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
