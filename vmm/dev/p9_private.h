/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_private: declarations shared by the files of p9 only. */
#ifndef KVMPROF_VMM_DEV_P9_PRIVATE_H
#define KVMPROF_VMM_DEV_P9_PRIVATE_H

#include "base/cursor.h"
#include "vmm/dev/p9.h"

#include <dirent.h>
#include <sys/stat.h>

/* Types of request messages; the reply has the next number. */
enum p9_type {
	P9_RLERROR = 7,
	P9_TSTATFS = 8,
	P9_TLOPEN = 12,
	P9_TLCREATE = 14,
	P9_TSYMLINK = 16,
	P9_TREADLINK = 22,
	P9_TGETATTR = 24,
	P9_TSETATTR = 26,
	P9_TREADDIR = 40,
	P9_TFSYNC = 50,
	P9_TLOCK = 52,
	P9_TGETLOCK = 54,
	P9_TMKDIR = 72,
	P9_TRENAMEAT = 74,
	P9_TUNLINKAT = 76,
	P9_TVERSION = 100,
	P9_TATTACH = 104,
	P9_TFLUSH = 108,
	P9_TWALK = 110,
	P9_TREAD = 116,
	P9_TWRITE = 118,
	P9_TCLUNK = 120,
};

/* The minimum that a client needs: diod and Linux use 4096. */
#define P9_MSIZE_MIN 4096u
#define P9_HEADER 7u /* size[4] type[1] tag[2] */
#define P9_QID 13u   /* type[1] version[4] path[8] */

/* A file or directory that the guest has walked to, and its parent on that walk. */
struct p9_node {
	struct p9 *p9;
	int fd;			/* O_PATH */
	struct p9_node *parent; /* NULL: the root */
	unsigned int refs;	/* references by fids and by child nodes */
};

/* A fid: the guest's number for a node. */
struct p9_fid {
	uint32_t id;
	struct p9_node *node;
	int fd;	  /* opened for reading or writing; -1: not open, or a directory */
	DIR *dir; /* opened as a directory */
	bool writable;
	struct p9_fid *next;
};

#define P9_BUCKETS 256u

struct p9 {
	int proc;	 /* /proc/self/fd, through which an O_PATH node is opened */
	char shown[256]; /* name of the directory for messages */
	struct p9_node *root;
	dev_t dev; /* device of the root */
	bool read_only;
	uint32_t msize;
	struct p9_fid *fid[P9_BUCKETS];
	unsigned int nfids;
	unsigned int nfiles, max_files; /* descriptors of nodes and of open fids */
	struct p9_stats stats;
};

/* A reply being written. What does not fit is left out and sets `full`. */
struct p9_out {
	uint8_t *data;
	size_t len, cap;
	bool full;
};
/* Appends len bytes to a reply. */
void p9_put(struct p9_out *o, const void *src, size_t len);
/* Appends 1 byte to a reply. */
void p9_put8(struct p9_out *o, uint8_t v);
/* Appends an integer of 2 bytes in little-endian order. */
void p9_put16(struct p9_out *o, uint16_t v);
/* Appends an integer of 4 bytes in little-endian order. */
void p9_put32(struct p9_out *o, uint32_t v);
/* Appends an integer of 8 bytes in little-endian order. */
void p9_put64(struct p9_out *o, uint64_t v);
/* Appends a string of len bytes with its length. */
void p9_put_string(struct p9_out *o, const char *s, size_t len);
/* Appends the qid of a file. */
void p9_put_qid(const struct p9 *p, struct p9_out *o, const struct stat *st);

/* Returns the number by which the guest identifies the file (qid.path). */
uint64_t p9_path(const struct p9 *p, dev_t dev, ino_t ino);

/*
 * Reads a string of the message into s, with a NUL. Returns 0; -EINVAL if it is incomplete or
 * contains a NUL; -ENAMETOOLONG.
 */
int p9_get_string(struct cursor *c, char *s, size_t cap);
/*
 * Reads the name of a directory entry in the same way. Returns -EINVAL also for a '/', "." and
 * "..".
 */
int p9_get_name(struct cursor *c, char s[P9_NAME_MAX + 1]);

/* Returns the fid with this number; NULL: none. */
struct p9_fid *p9_find(struct p9 *p, uint32_t id);
/*
 * Adds a fid, which takes over the caller's reference to the node on success. Returns 0, -EINVAL if
 * the number is in use, -EMFILE or -ENOMEM.
 */
int p9_fid_add(struct p9 *p, uint32_t id, struct p9_node *node, struct p9_fid **out);
/* Closes and frees a fid, and drops its reference. */
void p9_fid_remove(struct p9 *p, struct p9_fid *f);

/* Adds a reference, and returns the node. */
struct p9_node *p9_node_ref(struct p9_node *n);
/* Drops a reference; frees the node with the last one. Accepts NULL. */
void p9_node_put(struct p9_node *n);
/*
 * Creates a node with one reference for a file of any type. Takes over fd, also on failure, and
 * counts it. Returns NULL if out of memory.
 */
struct p9_node *p9_node_new(struct p9 *p, struct p9_node *parent, int fd);
/*
 * Returns -EMFILE if the guest may not make this process keep n more descriptors, else 0. Called
 * before each of them is opened.
 */
int p9_files_left(const struct p9 *p, unsigned int n);
/*
 * Opens the inode behind an O_PATH descriptor, whatever its name is now. Returns a descriptor,
 * which the caller closes, or -errno. This and p9_link_of() use no path except the descriptor's
 * number in /proc/self/fd.
 */
int p9_open_again(const struct p9 *p, int fd, int flags);
/* Copies the path of a descriptor, as this process sees it; "" if it is not known. */
void p9_link_of(const struct p9 *p, int fd, char *path, size_t cap);
/*
 * Calls openat2() so that it cannot leave the directory. Returns a descriptor, which the caller
 * closes, or -errno.
 */
int p9_open_beneath(int dir, const char *name, uint64_t flags, uint32_t mode);

/*
 * Handles a request: reads the fields after the header from c, and appends those of the reply to o.
 * Returns 0, or -errno for the guest. p9_session.h, p9_file.h and p9_dir.h declare the handlers.
 */
typedef int p9_request(struct p9 *p, struct cursor *c, struct p9_out *o);

#endif
