/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_mm: reads the mappings of a process of a Linux guest, and their files.
 *
 * A process's mappings are vm_area_structs (VMAs), which are found through its mm_struct: a maple
 * tree mm_mt since Linux 6.1, before that a list from mmap along vm_next. A maple tree's pointers
 * contain the type of their target:
 *
 *	ma_root		NULL, or a node's pointer with bit 1 set in addition
 *	pointer		256-byte aligned address | type << 3 | 4
 *	types		0 dense (never has VMAs), 1 leaf_64 and 2 range_64 (both struct
 *			maple_range_64), 3 arange_64 (struct maple_arange_64)
 *	node		slot[i] covers what follows pivot[i - 1] up to pivot[i]; the
 *			last one's pivot is 0, the end of the node's range, or not there.
 *			Which is the last, meta.end says in a node that isn't full.
 *			A node whose parent is itself is dead: somebody replaced it
 *
 * Sources: include/linux/maple_tree.h, lib/maple_tree.c, include/linux/mm_types.h,
 * fs/d_path.c and fs/proc/task_mmu.c of Linux 4.20 to 6.12.
 *
 * The guest may change all of it meanwhile. If the data contradicts itself, a walk is restarted a
 * few times, then ends with a reason; what was found until then is returned, in order.
 *
 * Addresses are guest-virtual, lengths and offsets in bytes. No state: any thread.
 * The vsyscall page (0xffffffffff600000) is in /proc/PID/maps but is no VMA.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_MM_H
#define KVMPROF_SYMBOLIZER_LINUX_MM_H

#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/types/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINUX_MM_MAX_VMAS 65536u
#define LINUX_MM_MAX_NODES 65536u /* most nodes of one maple tree */
#define LINUX_MM_MAX_HEIGHT 31u	  /* highest maple tree (MAPLE_HEIGHT_MAX) */
#define LINUX_PATH_MAX 4096u	  /* bytes with the NUL; PATH_MAX */
#define LINUX_PATH_MAX_DEPTH 256u /* names in a path, and mounts that it crosses */
#define LINUX_NAME_MAX 255u
#define LINUX_VDSO_MAX (16u * 4096u)

/* The reason why something could not be determined. */
enum linux_why {
	LINUX_OK,
	LINUX_UNREADABLE, /* not mapped or not canonical */
	LINUX_CHANGING,	  /* contradicts itself: it is being changed, or is something else */
	LINUX_TOO_MANY,	  /* beyond a limit */
	LINUX_UNKNOWN,	  /* an unsupported form */
	LINUX_NO_MEMORY,  /* out of memory in this program */
	LINUX_NOT_THERE,  /* does not exist */
	LINUX_WHY_COUNT
};

/* Returns the reason as text for messages, such as "guest memory cannot be read"; static. */
const char *linux_why_text(enum linux_why why);

/* The offset of a member that this kernel does not have. */
#define LINUX_NO_MEMBER UINT32_MAX

/* Offsets of members. Computed once per kernel, then constant. */
struct linux_mm_layout {
	bool maple;	       /* mm_mt; false: the list */
	uint32_t mm_root;      /* mm_mt.ma_root or mmap */
	uint32_t mm_map_count; /* number of VMAs: int; may be absent */
	uint32_t mm_pgd;       /* kernel address of the top-level page table; may be absent */
	uint32_t mm_vdso;      /* context.vdso; may be absent */
	/* A number that differs after each change of the mappings; may be absent. */
	uint32_t mm_changes;
	uint32_t mm_start_brk, mm_brk; /* bounds of the heap; may be absent */
	/* The kernel's own copy: context.vdso_image; may be absent. */
	uint32_t mm_vdso_image, image_data, image_size;
	struct linux_maple {
		uint32_t pivot, npivots, slot, nslots, meta_end;
	} range, arange;
	uint32_t vma_start, vma_end, vma_mm, vma_flags, vma_pgoff, vma_file;
	uint32_t vma_next; /* lists only */
	uint32_t vma_span; /* bytes that contain the members above */
	uint32_t file_mnt, file_dentry, file_inode, file_mode;
	uint32_t file_mapping;		/* may be absent */
	uint32_t user_mnt, user_dentry; /* in struct backing_file (6.8); may be absent */
	uint32_t dentry_parent, dentry_name, dentry_name_len, dentry_pprev;
	uint32_t mount_mnt, mount_parent, mount_mountpoint; /* in struct mount */
	uint32_t mnt_root;				    /* in struct vfsmount */
	uint32_t inode_ino;
	uint32_t inode_size, inode_sb, sb_dev; /* may be absent */
	uint32_t inode_generation;	       /* may be absent */
	uint32_t inode_mtime, inode_mtime_ns;  /* seconds: s64; nanoseconds; may be absent */
};

/*
 * Finds the offsets. Returns 0; -ENOENT if the kernel lacks something (the message names it); or
 * -EINVAL for damaged types.
 */
int linux_mm_layout_init(struct linux_mm_layout *l, const struct types *t, struct err *e);

/* Bits of linux_vma.flags, as in the kernel's vm_flags. */
#define LINUX_VM_READ 1u
#define LINUX_VM_WRITE 2u
#define LINUX_VM_EXEC 4u
#define LINUX_VM_SHARED 8u
#define LINUX_VM_DONTEXPAND 0x40000u /* without a file: made by the kernel, like the vDSO */

struct linux_vma {
	uint64_t start, end;
	uint64_t file_off; /* file offset of start, bytes */
	uint64_t file;	   /* address of the struct file; 0: none */
	uint64_t at;	   /* address of the struct vm_area_struct */
	uint32_t flags;	   /* LINUX_VM_... and other low bits of vm_flags */
};

/* Mappings in ascending order. Starts as all zeros, and can be filled repeatedly. */
struct linux_vmas {
	struct linux_vma *v;
	size_t n, cap;
};

/* Frees the mappings and clears s. */
void linux_vmas_deinit(struct linux_vmas *s);

/*
 * Reads the mappings of the mm_struct at mm that have all bits of `flags` (LINUX_VM_EXEC: those
 * with code; 0: all). Returns LINUX_OK; or a reason, and *out then has what was found, in order.
 * The caller frees *out with linux_vmas_deinit().
 */
enum linux_why linux_mm_vmas(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			     uint32_t flags, struct linux_vmas *out);

/*
 * Finds the mapping that covers va now, without reading the others. Returns LINUX_OK,
 * LINUX_NOT_THERE if none does, LINUX_UNKNOWN if the kernel has a list instead of a tree, or
 * another reason.
 */
enum linux_why linux_mm_lookup(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
			       uint64_t va, struct linux_vma *out);

/*
 * Reads a number that the kernel increases whenever a mapping was removed or changed (and at other
 * times). Returns false if this kernel has none, or it cannot be read.
 */
bool linux_mm_changes(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		      uint32_t *out);

/* Returns the mapping in s that covers va, or NULL. */
const struct linux_vma *linux_vmas_find(const struct linux_vmas *s, uint64_t va);

/* Returns the address of the process's vDSO; 0 if it has none. */
uint64_t linux_mm_vdso(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm);

/*
 * Copies the vDSO of a process: from the kernel's copy, else from the process's pages, some of
 * which may be missing. buf has LINUX_VDSO_MAX bytes. Returns the length of the ELF image, 0 if
 * there is none.
 */
size_t linux_vdso_read(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		       uint64_t space, uint8_t *buf);

#endif
