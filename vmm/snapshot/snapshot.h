/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot: saves a stopped machine to a file, and creates machines from such a file.
 *
 * The file consists of sections, each with a name, a version, a length and a checksum. A machine
 * is restored only if the file has all sections that the machine needs. RAM comes last, sparse and
 * page-aligned, so that it can be mapped copy-on-write: any number of machines start from one
 * file, which is never changed.
 *
 *	  0  magic "KVMPSNAP", u32 version, u32 n
 *	 16  u64 offset and u64 length of RAM; the file ends with it
 *	 32  u32 CRC-32 of header (with 0 here) and table, u32 0
 *	 40  n times: name[24], u32 version, u32 CRC-32 of its bytes, u64 offset, u64 length
 *	 ...  the sections' bytes in the table's order, each at a multiple of 4096
 *	 ...  RAM at a multiple of 4096, regions by address; pages of zeros are holes
 *
 * All integers are little endian. RAM has no checksum: reading all of it would take longer than
 * the guest needs.
 *
 * Threads: the main thread calls all functions, one at a time. An open struct snapshot does not
 * change and may be read by several threads.
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
#define SNAPSHOT_MAX_SECTION (64u << 20) /* bytes of a section other than a file or an overlay */
/* Bytes of a file ("file:...") or an overlay ("overlay..."). */
#define SNAPSHOT_MAX_FILE (2ull << 30)
#define SNAPSHOT_MAX_RAM (1ull << 44)
#define SNAPSHOT_NAME 24u /* including the NUL */
#define SNAPSHOT_PAGE 4096u

struct vm;
struct vm_config;
struct gmem;

/*
 * The functions of one part of the machine. `what` is struct vm, struct vcpu or a device. save()
 * appends the part's bytes to *out; restore() parses them. Both return 0, or -errno with *e set.
 */
struct snapshot_part {
	const char *name; /* name of the section: "serial", "vcpu", "virtio" ... */
	uint32_t version; /* version of its bytes */
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
 * Parses header and table from the first len bytes of a file of file_len bytes. Everything in *out
 * can then be used without further checks, except that the sections' checksums are not verified.
 * path is for messages. Returns 0; -EINVAL if it is not a snapshot or damaged, -ENOTSUP if it has
 * another version, or -ENOMEM; *out is written only on success.
 */
int snapshot_parse(struct snapshot_table *out, const char *path, const uint8_t *data, size_t len,
		   uint64_t file_len, struct err *e);

struct snapshot;
/*
 * Opens and maps the file, and verifies the checksums of all sections except files and overlays.
 * Copies path. Returns 0, or -errno with *e set. The caller frees *out with snapshot_close(),
 * which accepts NULL.
 */
int snapshot_open(struct snapshot **out, const char *path, struct err *e);
/* Returns whether path is a file that begins as a snapshot does. */
bool snapshot_is_file(const char *path);
/* Unmaps the file and frees *s. Accepts NULL. */
void snapshot_close(struct snapshot *s);
/* Returns the path that was passed to snapshot_open(); it belongs to s. */
const char *snapshot_path(const struct snapshot *s);

/*
 * Finds the section `name`, which must have this version, and initialises *out with its bytes,
 * valid as long as s. Returns 0, -ENOENT if there is no such section, or -ENOTSUP if it has
 * another version.
 */
int snapshot_find(const struct snapshot *s, const char *name, uint32_t version, struct cursor *out,
		  struct err *e);
/*
 * Works like snapshot_find() for a file or an overlay, and verifies its checksum. Returns -EINVAL
 * if that is wrong; *out is then undefined.
 */
int snapshot_find_large(const struct snapshot *s, const char *name, uint32_t version,
			struct cursor *out, struct err *e);
/*
 * Maps a section. The caller closes *out with file_map_close(), also after snapshot_close().
 * Returns 0, -ENOENT if there is no such section, -EINVAL if it is empty, or -errno of mmap(2).
 * The checksum is not verified.
 */
int snapshot_map(const struct snapshot *s, const char *name, struct file_map *out, struct err *e);

/*
 * Replaces the allocated guest memory by a private mapping of the file. Returns 0, or -errno with
 * *e set.
 */
int snapshot_map_ram(const struct snapshot *s, struct gmem *mem, struct err *e);
/*
 * Copies the file's RAM to guest memory, which must be all zeros; for memory whose backing was
 * chosen. Returns 0, or -errno with *e set.
 */
int snapshot_read_ram(const struct snapshot *s, struct gmem *mem, struct err *e);

/*
 * Sets in *cfg what the machine consists of: memory, vCPUs, and devices that need nothing of the
 * host; snapshot_devices.h does the others. cfg borrows s. Returns 0, or -errno with *e set.
 */
int snapshot_configure(const struct snapshot *s, struct vm_config *cfg, struct err *e);

/* -- writing -------------------------------------------------------------------------- */

/* A section of the caller's, which the machine does not interpret. Its data is borrowed. */
struct snapshot_blob {
	const char *name;
	uint32_t version;
	const uint8_t *data;
	size_t len;
};

/*
 * The content of a new file. Sections are written in the order in which they are added. Starts as
 * all zeros.
 */
struct snapshot_writer {
	struct snapshot_table table;
	struct snapshot_blob blob[SNAPSHOT_MAX_SECTIONS];
};

/*
 * Adds a section. Copies the name, and borrows the data until snapshot_write(). Returns 0; -EINVAL
 * without room or if the name is too long or present already; -EFBIG if it is too large.
 */
int snapshot_add(struct snapshot_writer *w, const struct snapshot_blob *b, struct err *e);

/*
 * The file that is written. It has no name where the file system supports that (O_TMPFILE), else
 * the name `tmp`, so an incomplete snapshot has no name in any directory, or this one.
 */
struct snapshot_file {
	int fd;	    /* -1: none */
	bool named; /* whether tmp exists */
	int noted;  /* result of signals_remove(), for signals_keep() */
	char *path; /* final name: the target of the caller's path, if that is a link */
	char *tmp;  /* temporary name in the same directory */
};

/* Initial value of a file that is not open, for snapshot_file_close(). */
#define SNAPSHOT_FILE_NONE            \
	{                             \
		.fd = -1, .noted = -1 \
	}

/*
 * Opens a new file for a snapshot at path; the path itself is not changed yet. Returns 0, or
 * -errno with *e set and *f unchanged. The caller frees *f with snapshot_file_close().
 */
int snapshot_file_open(struct snapshot_file *f, const char *path, struct err *e);
/*
 * Gives the file its final name, and replaces an existing file. Returns 0, or -errno with *e set.
 */
int snapshot_file_publish(struct snapshot_file *f, struct err *e);
/*
 * Removes the file if it was not published, closes it and frees everything. May be called
 * repeatedly.
 */
void snapshot_file_close(struct snapshot_file *f);

/* Writes the snapshot and flushes it to the disk. Returns 0, or -errno with *e set. */
int snapshot_write(struct snapshot_writer *w, const struct gmem *mem, const struct snapshot_file *f,
		   struct err *e);

/*
 * Writes the machine and the caller's sections to a file. Call it between vm_pause() and
 * vm_resume(). The machine continues unchanged. Returns 0, or -errno with *e set.
 */
int snapshot_save_vm(struct vm *vm, const struct snapshot_file *to,
		     const struct snapshot_blob *blob, unsigned int nblobs, struct err *e);

#endif
