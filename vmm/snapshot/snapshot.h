/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: a stopped machine as a file, and a machine out of such a file.
 *
 * A file of sections, each with a name, a version, a length and a checksum; those that
 * a machine needs and those that the file has must be the same. RAM comes last, sparse and
 * page-aligned, so that it is mapped copy-on-write: as many machines as wanted start
 * from one file, which is never changed.
 *
 *	0	magic "KVMPSNAP", u32 version, u32 n
 *	16	u64 offset and u64 length of RAM; the file ends with it
 *	32	u32 CRC-32 of header (with 0 here) and table, u32 0
 *	40	n times: name[24], u32 version, u32 CRC-32 of its bytes, u64 offset, u64 length
 *	...	the sections' bytes in the table's order, each at a multiple of 4096
 *	...	RAM at a multiple of 4096, regions by address; pages of zeros are holes
 *
 * All integers are little endian. RAM has no checksum: reading it all would take longer
 * than the guest needs.
 */
#ifndef KVMPROF_VMM_SNAPSHOT_SNAPSHOT_H
#define KVMPROF_VMM_SNAPSHOT_SNAPSHOT_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNAPSHOT_VERSION 1u
#define SNAPSHOT_MAX_SECTIONS 256u
#define SNAPSHOT_MAX_SECTION (64u << 20) /* bytes, but for RAM, overlays and files */
#define SNAPSHOT_MAX_FILE (2ull << 30)	 /* of a file ("file:...") or an overlay ("overlay...") */
#define SNAPSHOT_MAX_RAM (1ull << 44)
#define SNAPSHOT_NAME 24u /* with the NUL */
#define SNAPSHOT_PAGE 4096u

struct vm;
struct vm_config;
struct gmem;

/* Every part of the machine has such a pair; `what` is struct vm, struct vcpu or a device. */
struct snapshot_part {
	const char *name; /* of the section: "serial", "vcpu", "virtio" ... */
	uint32_t version; /* of its bytes */
	int (*save)(void *what, struct buf *out, struct err *e);
	int (*restore)(void *what, struct cursor *in, struct err *e);
};

struct snapshot_section {
	char name[SNAPSHOT_NAME];
	uint32_t version, crc;
	uint64_t off, len;
};

struct snapshot_table {
	uint64_t ram_off, ram_len;
	unsigned int n;
	struct snapshot_section at[SNAPSHOT_MAX_SECTIONS];
};

/* -- reading -------------------------------------------------------------------------- */

/*
 * Header and table out of the first `len` bytes of a file of file_len; what is in *out can
 * be used without further checks, but for checksums of sections. path is for messages.
 * -EINVAL: not a snapshot, or a damaged one. -ENOTSUP: of another version.
 */
int snapshot_parse(struct snapshot_table *out, const char *path, const uint8_t *data, size_t len,
		   uint64_t file_len, struct err *e);

struct snapshot;
/* Map the file; all sections but files and overlays are checked. path is copied. */
int snapshot_open(struct snapshot **out, const char *path, struct err *e);
void snapshot_close(struct snapshot *s);
const char *snapshot_path(const struct snapshot *s);

/*
 * The bytes of a section, of this version. -ENOENT: there is none of that name,
 * -ENOTSUP: it has another version. The bytes live as long as s.
 */
int snapshot_find(const struct snapshot *s, const char *name, uint32_t version, struct cursor *out,
		  struct err *e);
/* The same for a file or an overlay: its checksum is looked at now. */
int snapshot_find_large(const struct snapshot *s, const char *name, uint32_t version,
			struct cursor *out, struct err *e);
/* A mapping of its own, to be closed with file_map_close(); -ENOENT as above. */
int snapshot_map(const struct snapshot *s, const char *name, struct file_map *out, struct err *e);

/* Guest memory, which has been allocated, becomes the file's, copy-on-write. */
int snapshot_map_ram(const struct snapshot *s, struct gmem *mem, struct err *e);
/* ... or, where what backs it was chosen, a copy: it is all zeros before. */
int snapshot_read_ram(const struct snapshot *s, struct gmem *mem, struct err *e);

/*
 * What the machine is made of: memory, vCPUs, devices that need nothing of the host; of the
 * others see snapshot_devices.h. The rest of cfg is the caller's.
 */
int snapshot_configure(const struct snapshot *s, struct vm_config *cfg, struct err *e);

/* -- writing -------------------------------------------------------------------------- */

/* A section that is the caller's: bytes that the machine does not know. */
struct snapshot_blob {
	const char *name;
	uint32_t version;
	const uint8_t *data;
	size_t len;
};

/* What becomes of a file; sections are written in the order in which they come. */
struct snapshot_writer {
	struct snapshot_table table;
	struct snapshot_blob blob[SNAPSHOT_MAX_SECTIONS];
};

/* Borrows the bytes until snapshot_write(). */
int snapshot_add(struct snapshot_writer *w, const struct snapshot_blob *b, struct err *e);

/*
 * The file that is written: without a name where the file system has such files (O_TMPFILE), else with the name `tmp`. A snapshot
 * that is not complete has no name in any directory, or this one.
 */
struct snapshot_file {
	int fd;	    /* -1: none */
	bool named; /* tmp exists */
	int noted;  /* the result of signals_remove() */
	char *path; /* the final name: what the caller's path leads to */
	char *tmp;  /* in the same directory */
};

/* A file that is not open, for snapshot_file_close(). */
#define SNAPSHOT_FILE_NONE            \
	{                             \
		.fd = -1, .noted = -1 \
	}

/* Opens a new file for a snapshot at path, where nothing changes yet. Returns 0 or -errno. */
int snapshot_file_open(struct snapshot_file *f, const char *path, struct err *e);
/* Gives the file its final name; what was there is replaced. Returns 0 or -errno. */
int snapshot_file_publish(struct snapshot_file *f, struct err *e);
/* Removes a file that was not published, and frees. */
void snapshot_file_close(struct snapshot_file *f);

/* Writes the snapshot, to the disk itself. Returns 0 or -errno. */
int snapshot_write(struct snapshot_writer *w, const struct gmem *mem, const struct snapshot_file *f,
		   struct err *e);

/*
 * Between vm_pause() and vm_resume(): write the machine to a file, with sections of the caller's.
 * The machine is as it was before.
 */
int snapshot_save_vm(struct vm *vm, const struct snapshot_file *to,
		     const struct snapshot_blob *blob, unsigned int nblobs, struct err *e);

#endif
