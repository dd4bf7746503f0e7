/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_read: reads the records of a perf.data file made by kvmprof or perf.
 *
 * It accepts files and the contents of pipes, with one event or several (one of them is read),
 * compressed or not, in one file or in a directory with a file for each thread of the recorder. A
 * damaged or truncated file gives the records before the damage; `partial` is set then and
 * `message` has the reason in one line. Opening fails for other formats and for files of big-endian
 * machines.
 *
 * All pointers lead into the mapped file or its decompressed records, and are valid until
 * perfdata_close(). Not thread-safe: the caller serialises calls on one reader.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PERFDATA_MAX_FILE (64ull << 30)
#define PERFDATA_MAX_STREAM (8ull << 30) /* bytes read from an input that cannot be mapped */
#define PERFDATA_MAX_INFLATED (16ull << 30)
#define PERFDATA_MAX_ATTRS 64u
#define PERFDATA_MAX_PARTS 4096u /* files data.N of perf record --threads */
#define PERFDATA_MAX_IDS (1u << 20)
#define PERFDATA_MAX_BUILD_IDS (256u << 10)
#define PERFDATA_MAX_WORDS 4096u  /* in a command line */
#define PERFDATA_MAX_FRAMES 8190u /* limit given by records of 64 KiB */

enum perfdata_kind {
	PERFDATA_SAMPLE = 1,
	PERFDATA_COMM,
	PERFDATA_MAP,  /* MMAP or MMAP2 */
	PERFDATA_LOST, /* LOST or LOST_SAMPLES */
	PERFDATA_FORK,
	PERFDATA_EXIT,
	/* the user part of earlier samples' chains; perfdata_next() does not return it */
	PERFDATA_DEFERRED,
	/*
	 * a marker of kvmprof: see markers.h; returned as a sample if its event is the chosen one
	 */
	PERFDATA_MARKER,
	/* another kernel begins: earlier mappings and tasks do not exist any more */
	PERFDATA_EPOCH,
};

/*
 * The machine and privilege level of a frame's or mapping's code. Only code of the recorded machine
 * may be looked up in its maps and files: a guest's addresses belong to another machine, although
 * perf records them with the VMM's pid.
 */
enum perfdata_owner {
	/* The machine on which perf ran; in kvmprof's own profiles, the guest itself. */
	PERFDATA_RECORDED = 0,
	PERFDATA_GUEST_KERNEL, /* the kernel of a guest of that machine */
	PERFDATA_GUEST_USER,   /* a program of such a guest */
	PERFDATA_HYPERVISOR,   /* the hypervisor below the recorded machine */
	PERFDATA_NO_MODE,      /* the record does not contain a mode */
	PERFDATA_OWNERS
};

struct perfdata_record {
	enum perfdata_kind kind;
	/*
	 * sample: the innermost frame is the kernel's; map: the kernel's or a module's; set only
	 * with PERFDATA_RECORDED
	 */
	bool kernel;
	bool exec; /* comm: the process has begun another program */
	bool idle; /* sample: the vCPU was halted; see perfdata.has_idle */
	uint32_t pid, tid, cpu;
	uint64_t time_ns; /* in the clock of the file; 0 if the file has no times */
	const char *marker_name;
	uint8_t marker_kind; /* enum marker_kind */
	uint8_t owner;	     /* enum perfdata_owner; sample: that of the innermost frame */
	union {
		struct {
			uint64_t ip, period;
			/*
			 * nr words of 8 bytes, not aligned, context marks included;
			 * perfdata_walk_next() decodes them.
			 */
			const uint8_t *chain;
			uint32_t nr;
			uint64_t code_page, data_page; /* page sizes in bytes; 0 unknown */
			/* PERF_SAMPLE_RAW without its length; NULL: none */
			const uint8_t *raw;
			uint32_t raw_len;
			/*
			 * Copy of the user stack from the stack pointer on, and registers as words
			 * in the order of the bits of regs_mask (PERFDATA_REG_*), from perf record
			 * --call-graph dwarf. Not aligned; NULL: none.
			 */
			const uint8_t *regs, *stack;
			uint64_t regs_mask;
			uint32_t stack_len;
			const uint8_t *values; /* PERF_SAMPLE_READ; used by the reader only */
			/*
			 * nbranches entries of a call stack, 24 bytes each; used by the reader
			 * only.
			 */
			const uint8_t *branches;
			uint32_t values_len, nbranches;
		} sample;
		const char *comm;
		struct {
			uint64_t addr, len, pgoff;
			const char *path;
			const uint8_t *build_id; /* build_id_len bytes; NULL: none */
			uint8_t build_id_len;	 /* 1 to 20 */
			/* Identity of the file if it has no build id; ino 0: unknown. */
			uint32_t major, minor;
			uint64_t ino, generation;
		} map;
		struct {
			uint32_t ppid, ptid;
		} fork; /* for PERFDATA_FORK and PERFDATA_EXIT */
		uint64_t lost;
		const struct perfdata *epoch; /* the profile that the next records belong to */
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

/* An open profile. Strings that are missing in the file are "". */
struct perfdata {
	char event[64], hostname[256], osrelease[256], version[64];
	char guest[272]; /* "Linux RELEASE", or the kind of a guest without a release; "" unknown */
	bool ours;	 /* written by kvmprof: chain addresses are inside the call instructions */
	bool has_cpu;	 /* samples have the number of a CPU */
	/* Samples have the size of the page with their code, or with their data. */
	bool has_code_page, has_data_page;
	bool has_raw;
	/*
	 * Samples record whether the vCPU was halted. Samples of perf, of older versions of
	 * kvmprof, and of a guest that was never seen running do not: then everything pid 0 does
	 * counts as idle.
	 */
	bool has_idle;
	/* Each weight is a count of all events (run --call-counts), not a sample. */
	bool counted;
	bool has_stacks;	    /* samples have copies of stacks and registers */
	uint32_t ncpus;		    /* number of CPUs; 0 unknown */
	uint64_t first_ns, last_ns; /* range of the times of the samples */
	const char *json;	    /* kvmprof's totals, json_len bytes; NULL: none */
	size_t json_len;
	char *dir; /* owned; path of the profile's directory; NULL: the profile is a file */
	bool partial;
	char message[320];

	uint64_t nsamples, nlost; /* counts made by open; samples of the chosen event */
	struct perfdata_event events[PERFDATA_MAX_ATTRS];
	uint32_t nevents, chosen; /* events[chosen] is read; `event` is its name */

	const struct perfdata_build_id_entry *build_ids;
	size_t nbuild_ids;
	/*
	 * The kernel's build id, from its mapping or from the table of build ids, under any name
	 * there; length 0: unknown.
	 */
	uint8_t kernel_id[20];
	uint8_t kernel_id_len;
	/*
	 * The profile of the kernel that followed this one in the same guest, owned; NULL: none.
	 * perfdata_next() continues with its records, and the first profile's nsamples, nlost,
	 * events, first_ns, last_ns and partial include it.
	 */
	struct perfdata *next_epoch;
	uint32_t epoch; /* number of the guest's kernel, from 1 on */
	struct {
		uint64_t samples, first_ns, last_ns;
	} own; /* nsamples, first_ns and last_ns of this kernel only */
	/* time of the file's last change (CLOCK_REALTIME, s); INT64_MAX: input from a pipe */
	int64_t changed_s;

	struct perfdata_private *priv;
};

/*
 * Opens a profile: a directory with the file `data`, a file, or a pipe; "-" is standard input.
 * event is a name, or NULL for the first event that has samples. Returns 0 or -errno; the caller
 * frees *out with perfdata_close(). perfdata_open() does the same for event NULL.
 */
int perfdata_open_event(struct perfdata **out, const char *path, const char *event, struct err *e);
int perfdata_open(struct perfdata **out, const char *path, struct err *e);
/*
 * Opens the profile of one kernel of the guest, counted from 1; 0: of all kernels. Returns 0,
 * -ENOENT if the profile has fewer kernels, or another -errno.
 */
int perfdata_open_epoch(struct perfdata **out, const char *path, const char *event, uint32_t epoch,
			struct err *e);
/*
 * Returns the path of a later kernel's profile in the first one's directory; the caller frees it
 * with free(). Returns NULL if out of memory.
 */
char *perfdata_epoch_path(const char *dir, uint32_t epoch);
/*
 * Opens a profile in memory: data, and the contents of the nparts files data.N of perf record
 * --threads, if any. The bytes are borrowed until perfdata_close(); name is for messages. Returns 0
 * or -errno.
 */
struct cursor;
int perfdata_open_split(struct perfdata **out, const char *name, const struct cursor *data,
			const struct cursor *part, uint32_t nparts, struct err *e);
/* Frees p and everything it returned; does nothing for NULL. */
void perfdata_close(struct perfdata *p);

/*
 * Reads the next record into *r, in order of time (records of the same time in file order, those
 * without a time first). Returns false at the end. Skips records of other kinds.
 */
bool perfdata_next(struct perfdata *p, struct perfdata_record *r);
/*
 * Returns a copy of a chain's words that is valid until perfdata_close(); equal chains share one.
 * Returns NULL if out of memory. For callers that construct chains.
 */
const uint8_t *perfdata_keep_chain(struct perfdata *p, const uint64_t *words, uint32_t nr);
/*
 * Restricts the samples returned from now on to from_ns <= time < to_ns; to_ns 0 means no limit.
 * The counts in struct perfdata do not change.
 */
void perfdata_set_window(struct perfdata *p, uint64_t from_ns, uint64_t to_ns);
/*
 * Sets *words to the command line that made the profile, without the program's name, in one
 * allocation that the caller frees with free(). Returns the number of words; 0 if the file has no
 * command line or it is damaged; or -ENOMEM.
 */
int perfdata_command(const struct perfdata *p, char ***words);
/*
 * Returns kvmprof's totals, an object that the caller releases with json_decref(); NULL if there
 * are none or they are damaged.
 */
struct json_t *perfdata_totals(const struct perfdata *p);

/*
 * State of a walk over a sample's frames, innermost first. A sample without a chain has one frame,
 * its ip.
 */
struct perfdata_walk {
	const uint8_t *at;
	uint32_t left;
	bool kernel, skip; /* context of the next frame; skip: the context is unknown */
	bool first;	   /* the next frame is the sample's innermost */
	bool entered;	   /* the next frame is its context's innermost */
	uint8_t owner;	   /* enum perfdata_owner of the next frame */
	uint64_t ip;	   /* the sample's own ip */
	bool ip_kernel;	   /* the mode of that ip, whatever the chain's marks say */
	uint8_t ip_owner;  /* enum perfdata_owner of the sample */
};

struct perfdata_frame {
	uint64_t ip;
	bool kernel;
	bool innermost;
	/*
	 * The innermost frame of its context (kernel, user, guest): ip is the interrupted
	 * instruction, or the one after a system call. The ip of every other frame is a return
	 * address.
	 */
	bool interrupted;
	uint8_t owner; /* enum perfdata_owner */
};

/* Begins a walk over the frames of *r, whose bytes must stay valid. */
void perfdata_walk_begin(struct perfdata_walk *w, const struct perfdata_record *r);
/* Stores the next frame in *f. Returns false at the end. */
bool perfdata_walk_next(struct perfdata_walk *w, struct perfdata_frame *f);

#endif
