/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_read: the records of a perf.data file, ours or perf's.
 *
 * Files and pipes' contents, with one event or several (of which one is read),
 * compressed or not, in one file or in a directory with a file for each thread of
 * the recorder. What is damaged or ends early gives what comes before;
 * `partial` is set then and `message` says why in one line. What is no
 * perf.data, or of a big-endian machine, is refused by open.
 *
 * Everything points into the mapped file or its decompressed records; valid
 * until close. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PERFDATA_MAX_FILE (64ull << 30)
#define PERFDATA_MAX_STREAM (8ull << 30) /* read from what cannot be mapped */
#define PERFDATA_MAX_INFLATED (16ull << 30)
#define PERFDATA_MAX_ATTRS 64u
#define PERFDATA_MAX_PARTS 4096u /* files data.N of perf record --threads */
#define PERFDATA_MAX_IDS (1u << 20)
#define PERFDATA_MAX_BUILD_IDS (256u << 10)
#define PERFDATA_MAX_WORDS 4096u  /* of a command line */
#define PERFDATA_MAX_FRAMES 8190u /* what fits a record of 64 KiB */

enum perfdata_kind {
	PERFDATA_SAMPLE = 1,
	PERFDATA_COMM,
	PERFDATA_MAP,  /* MMAP or MMAP2 */
	PERFDATA_LOST, /* LOST or LOST_SAMPLES */
	PERFDATA_FORK,
	PERFDATA_EXIT,
	PERFDATA_DEFERRED, /* a program's chain for earlier samples; perfdata_next() does not return it */
	PERFDATA_MARKER, /* of ours: see markers.h; as a sample when its event was asked for */
	PERFDATA_EPOCH, /* another kernel begins: nothing that was mapped or that ran before exists any more */
};

/*
 * The machine and the level whose code a frame or a mapping is. Only code of the recorded machine may be looked up in its
 * maps and files: the addresses of a guest are those of another machine, although perf records them with the VMM's pid.
 */
enum perfdata_owner {
	/* The machine on which perf ran, or, in our own profiles, the guest itself. */
	PERFDATA_RECORDED = 0,
	PERFDATA_GUEST_KERNEL, /* the kernel of a guest of that machine */
	PERFDATA_GUEST_USER,   /* a program of such a guest */
	PERFDATA_HYPERVISOR,   /* the hypervisor below the recorded machine */
	PERFDATA_NO_MODE,      /* the record does not contain a mode */
	PERFDATA_OWNERS
};

struct perfdata_record {
	enum perfdata_kind kind;
	bool kernel; /* sample: innermost frame; map: the kernel's or a module's; only with PERFDATA_RECORDED */
	bool exec; /* comm: the process runs another program now */
	bool idle; /* sample: the vCPU was halted; see perfdata.has_idle */
	uint32_t pid, tid, cpu;
	uint64_t time_ns; /* 0 when the file has no times */
	const char *marker_name;
	uint8_t marker_kind; /* enum marker_kind */
	uint8_t owner;	     /* enum perfdata_owner; sample: of the innermost frame */
	union {
		struct {
			uint64_t ip, period;
			/* nr words, not aligned, contexts included; the perfdata_frame_* functions read them. */
			const uint8_t *chain;
			uint32_t nr;
			uint64_t code_page, data_page; /* bytes; 0 not known */
			const uint8_t *raw;	       /* PERF_SAMPLE_RAW; NULL: none */
			uint32_t raw_len;
			/*
			 * A copy of the program's stack from the stack pointer on and its registers, words in the order of the
			 * bits of regs_mask (PERFDATA_REG_*): of perf record --call-graph dwarf. Not aligned; NULL: none.
			 */
			const uint8_t *regs, *stack;
			uint64_t regs_mask;
			uint32_t stack_len;
			const uint8_t *values; /* the reader's own: PERF_SAMPLE_READ */
			/* The reader's own: nbranches entries of a call stack, 24 bytes each. */
			const uint8_t *branches;
			uint32_t values_len, nbranches;
		} sample;
		const char *comm;
		struct {
			uint64_t addr, len, pgoff;
			const char *path;
			const uint8_t *build_id; /* build_id_len bytes; NULL: none */
			uint8_t build_id_len;	 /* 1 to 20 */
			/* The file by its numbers, where there is no build id; ino 0: not known. */
			uint32_t major, minor;
			uint64_t ino, generation;
		} map;
		struct {
			uint32_t ppid, ptid;
		} fork; /* and exit */
		uint64_t lost;
		const struct perfdata *epoch; /* the profile that the next records are of */
	};
};

struct perfdata_build_id_entry {
	bool kernel;
	uint8_t owner; /* enum perfdata_owner */
	uint8_t len;   /* 1 to 20 */
	const uint8_t *id;
	const char *name;
};

struct perfdata_event {
	char name[64];
	uint64_t samples;
};

/* A string of the file, not terminated beyond what the file holds; "" when it is not there. */
struct perfdata {
	char event[64], hostname[256], osrelease[256], version[64];
	char guest[272]; /* "Linux RELEASE", or which guest without a release it was; "" unknown */
	bool ours;	 /* written by kvmprof: chain addresses are exact */
	bool has_cpu;	 /* samples say on which CPU */
	/* Samples say in which size of page their code, or the data they used, lies. */
	bool has_code_page, has_data_page;
	bool has_raw;
	/*
	 * Samples say whether the vCPU was halted. Those of perf, of kvmprof before it
	 * wrote this, and of a guest that was never seen running do not: then what pid 0
	 * does counts as idle.
	 */
	bool has_idle;
	/* Each weight is a count of all that happened (run --call-counts): nothing was sampled. */
	bool counted;
	bool has_stacks;	    /* samples have copies of stacks and registers */
	uint32_t ncpus;		    /* 0 unknown */
	uint64_t first_ns, last_ns; /* of the samples read */
	const char *json;	    /* our totals, json_len bytes, or NULL */
	size_t json_len;
	char *dir; /* the directory when it is one, else NULL; owned */
	bool partial;
	char message[320];

	uint64_t nsamples, nlost; /* counted by open; samples of the chosen event */
	struct perfdata_event events[PERFDATA_MAX_ATTRS];
	uint32_t nevents, chosen; /* events[chosen] is read: its name is `event` */

	const struct perfdata_build_id_entry *build_ids;
	size_t nbuild_ids;
	/* The kernel's, out of its mapping or of the table, whatever name stands there; length 0: not known. */
	uint8_t kernel_id[20];
	uint8_t kernel_id_len;
	/*
	 * The profile of the kernel that followed this one in the same guest, owned; NULL: there is none. perfdata_next() goes on
	 * with its records, and the first one's nsamples, nlost, events, first_ns, last_ns and partial include it.
	 */
	struct perfdata *next_epoch;
	uint32_t epoch; /* number of the guest's kernel, from 1 on */
	struct {
		uint64_t samples, first_ns, last_ns;
	} own; /* as nsamples, first_ns and last_ns, of this kernel alone */
	int64_t changed_s; /* when the file was changed last (CLOCK_REALTIME, s); INT64_MAX: it comes through a pipe */

	struct perfdata_private *priv;
};

/*
 * A directory with `data` in it, a file, or a pipe; "-" is standard input. event: its
 * name, or NULL for the first one that has samples.
 */
int perfdata_open_event(struct perfdata **out, const char *path, const char *event, struct err *e);
int perfdata_open(struct perfdata **out, const char *path, struct err *e);
/* Opens the profile of one kernel, from 1 on; 0: of all kernels. Returns -ENOENT if the profile does not have so many. */
int perfdata_open_epoch(struct perfdata **out, const char *path, const char *event, uint32_t epoch,
			struct err *e);
/* Returns the path of a later kernel's profile in the first one's directory, for free(). Returns NULL if out of memory. */
char *perfdata_epoch_path(const char *dir, uint32_t epoch);
/*
 * Borrowed bytes, with the contents of the files data.N of perf record --threads, if there are any, borrowed as
 * well; name is for messages.
 */
struct cursor;
int perfdata_open_split(struct perfdata **out, const char *name, const struct cursor *data,
			const struct cursor *part, uint32_t nparts, struct err *e);
void perfdata_close(struct perfdata *p);

/*
 * The next record in order of time (records of one moment in file order, those
 * without a time first). False at the end. Records of other kinds are skipped.
 */
bool perfdata_next(struct perfdata *p, struct perfdata_record *r);
/*
 * Returns a copy of a chain's words that lasts until close; equal chains share one. NULL: out of memory. For callers that put
 * chains together.
 */
const uint8_t *perfdata_keep_chain(struct perfdata *p, const uint64_t *words, uint32_t nr);
/*
 * Samples before from_ns, and at or after to_ns, are left out from now on; not of the
 * counts in struct perfdata.
 */
void perfdata_set_window(struct perfdata *p, uint64_t from_ns, uint64_t to_ns);
/*
 * The command line that made it, without the program's name: *words is the caller's, in one piece for
 * free(). How many, 0: the file does not say, or it is damaged; -ENOMEM.
 */
int perfdata_command(const struct perfdata *p, char ***words);
/* Our totals, an object, for json_decref(); NULL: there are none, or they are damaged. */
struct json_t *perfdata_totals(const struct perfdata *p);

/* Walk a sample's frames, innermost first; a sample without a chain has its ip alone. */
struct perfdata_walk {
	const uint8_t *at;
	uint32_t left;
	bool kernel, skip; /* context of the next frame; skip: it is unknown */
	bool first;	   /* the next frame is the sample's innermost */
	bool entered;	   /* the next frame is its context's innermost */
	uint8_t owner;	   /* enum perfdata_owner of the next frame */
	uint64_t ip;	   /* the sample's own */
	bool ip_kernel;	   /* where that lies, whatever the chain's markers say */
	uint8_t ip_owner;  /* enum perfdata_owner of the sample */
};

struct perfdata_frame {
	uint64_t ip;
	bool kernel;
	bool innermost;
	/*
	 * It is the innermost of its context (kernel, user, guest): ip is the instruction that was interrupted, or that
	 * follows a system call. The ip of every other frame is what a call returns to.
	 */
	bool interrupted;
	uint8_t owner; /* enum perfdata_owner */
};

void perfdata_walk_begin(struct perfdata_walk *w, const struct perfdata_record *r);
bool perfdata_walk_next(struct perfdata_walk *w, struct perfdata_frame *f);

#endif
