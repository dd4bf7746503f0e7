/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9_private: what the files of p9 share. Not for others.
 */
#ifndef KVMPROF_VMM_DEV_P9_PRIVATE_H
#define KVMPROF_VMM_DEV_P9_PRIVATE_H

#include "base/cursor.h"
#include "vmm/dev/p9.h"

#include <dirent.h>
#include <sys/stat.h>

/* Message types: the request's; its answer has the next number. */
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

/* What a client needs at the least: diod and Linux have 4096. */
#define P9_MSIZE_MIN 4096u
#define P9_HEADER 7u /* size[4] type[1] tag[2] */
#define P9_QID 13u   /* type[1] version[4] path[8] */

/* A file or directory that the guest has walked to, and how it came there. */
struct p9_node {
	struct p9 *p9;
	int fd;			/* O_PATH */
	struct p9_node *parent; /* NULL: the root */
	unsigned int refs;
};

struct p9_fid {
	uint32_t id;
	struct p9_node *node;
	int fd;	  /* opened for reading or writing; -1: not (or a directory) */
	DIR *dir; /* opened as a directory */
	bool writable;
	struct p9_fid *next;
};

#define P9_BUCKETS 256u

struct p9 {
	int proc;	 /* /proc/self/fd, through which a file that was only walked to is opened */
	char shown[256]; /* the directory, for messages */
	struct p9_node *root;
	dev_t dev; /* of the root */
	bool read_only;
	uint32_t msize;
	struct p9_fid *fid[P9_BUCKETS];
	unsigned int nfids;
	unsigned int nfiles, max_files; /* descriptors: of nodes, and of fids that are open */
	struct p9_stats stats;
};

/* A reply being written: what does not fit sets `full`. */
struct p9_out {
	uint8_t *data;
	size_t len, cap;
	bool full;
};
void p9_put(struct p9_out *o, const void *src, size_t len);
void p9_put8(struct p9_out *o, uint8_t v);
void p9_put16(struct p9_out *o, uint16_t v);
void p9_put32(struct p9_out *o, uint32_t v);
void p9_put64(struct p9_out *o, uint64_t v);
void p9_put_string(struct p9_out *o, const char *s, size_t len);
void p9_put_qid(const struct p9 *p, struct p9_out *o, const struct stat *st);

/* The number by which the guest knows the file. */
uint64_t p9_path(const struct p9 *p, dev_t dev, ino_t ino);

/*
 * A string of the message into s, with its NUL: 0, -EINVAL when it is not all there or has a
 * NUL, -ENAMETOOLONG.
 */
int p9_get_string(struct cursor *c, char *s, size_t cap);
/* The same for the name of a directory's entry: no '/', neither "." nor "..". */
int p9_get_name(struct cursor *c, char s[P9_NAME_MAX + 1]);

struct p9_fid *p9_find(struct p9 *p, uint32_t id);
/* -errno: there is one, or there are too many. Takes node's reference when it succeeds. */
int p9_fid_add(struct p9 *p, uint32_t id, struct p9_node *node, struct p9_fid **out);
void p9_fid_remove(struct p9 *p, struct p9_fid *f);

struct p9_node *p9_node_ref(struct p9_node *n);
void p9_node_put(struct p9_node *n);
/* The entry of a directory, which may be anything. Takes fd, counts it. NULL: out of memory. */
struct p9_node *p9_node_new(struct p9 *p, struct p9_node *parent, int fd);
/* Before each descriptor that a request makes us hold: -EMFILE when there are enough. */
int p9_files_left(const struct p9 *p, unsigned int n);
/*
 * Opens the inode behind an O_PATH descriptor, whatever its name is now. Returns a descriptor or -errno. This
 * and p9_link_of() take no path but the descriptor's number in /proc/self/fd.
 */
int p9_open_again(const struct p9 *p, int fd, int flags);
/* Copies the path of a descriptor, as the process sees it; "" when it is not known. */
void p9_link_of(const struct p9 *p, int fd, char *path, size_t cap);
/* openat2() that can't leave the directory, -errno. */
int p9_open_beneath(int dir, const char *name, uint64_t flags, uint32_t mode);

/*
 * A request: the fields behind the header are in c, the answer's go to o. 0 or -errno of the
 * guest. p9_session.h, p9_file.h and p9_dir.h declare them.
 */
typedef int p9_request(struct p9 *p, struct cursor *c, struct p9_out *o);

#endif
