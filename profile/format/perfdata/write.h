/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_write: writes one perf.data file (the `data` of a directory).
 *
 * Order of time: samples of several vCPUs arrive only roughly sorted. The writer holds them back
 * until perfdata_write_flush() requests the older ones or PERFDATA_WINDOW bytes are held; then it
 * sorts them and writes the older ones. If the bytes written since the last round and the bytes
 * held make up such a window, it adds a FINISHED_ROUND. perf may then process what it has read up
 * to the round before last. A record that is older than that is written, counted as late, and no
 * further rounds are added: perf then sorts the rest of the file as a whole.
 *
 * The file can be read at any time, also if its writer was killed: each flush stores the size of
 * the records in the header. It has no features then.
 *
 * Addresses: the callers in a call chain are written as the return address minus 1, inside the call
 * instruction, unless the frame is marked exact. perf looks chain addresses up unchanged; a return
 * address after a final call that does not return (start_kernel's, cpu_startup_entry's) would get
 * the name of the next function.
 *
 * Not thread-safe: the caller serialises calls on one writer. Functions with e return 0 or -errno.
 * The first error is kept, later writes return it again, and perfdata_write_end() truncates the
 * file to what fits.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/table.h"
#include "profile/format/sink/sink.h"

#define PERFDATA_EARLY 65528u /* bytes of one record: about 580 module maps */
#define PERFDATA_WRITE_MAX_IDS (256u << 10)
#define PERFDATA_WINDOW (8u << 20) /* bytes held back: about 35,000 samples of 20 frames */

struct perfdata_held {
	uint64_t time_ns;
	uint32_t off, len; /* range in the held bytes */
};

/* One entry of the build-id table. */
struct perfdata_build_id {
	bool kernel; /* the kernel or a module: pid -1, kernel mode */
	uint8_t id[KIMAGE_BUILD_ID_MAX];
	unsigned int len;
	char *name; /* owned */
};

struct perfdata_writer {
	int fd;			   /* owned; -1 when closed */
	char *path;		   /* owned; for messages */
	uint64_t pos;		   /* bytes of the file so far, including those in `out` */
	uint64_t on_disk;	   /* bytes known to be in the file: whole records */
	uint64_t told_size;	   /* size of the records in the file's header */
	uint64_t since_round;	   /* bytes of records since the last FINISHED_ROUND */
	bool drained;		   /* perfdata_write_drain() was called */
	uint64_t data_off;	   /* offset of the records */
	unsigned int nevents;	   /* includes the event of markers, if the profile has one */
	unsigned int marker_event; /* index of the markers' event */
	bool mem; /* samples, except markers, have the fields of PERFDATA_MEM_SAMPLE_TYPE */
	/*
	 * bit mask of the events whose samples have RAW as in
	 * profile/format/sink/exittime.h
	 */
	uint32_t exits;
	uint64_t ids_off, attr_off;
	uint64_t early_off; /* offset of the room for module maps; 0: none */
	struct buf out;	    /* bytes for the next write */
	struct buf held;    /* records in order of arrival */
	/* second buffer for held: receives the rest when the oldest records are written */
	struct buf spare;
	struct perfdata_held *idx; /* one per held record */
	size_t nidx, idx_cap;
	uint64_t max_ns;		  /* latest time written */
	uint64_t round_ns, prev_round_ns; /* latest time at the end of the last two rounds */
	bool rounds_off;		  /* set before the first record: write no rounds */
	uint64_t late;			  /* records that came too late for the rounds */
	uint64_t first_ns, last_ns;	  /* times of the samples; 0 before the first */
	uint64_t samples;		  /* samples received */
	/* Set by perfdata_write_end(): */
	bool readable;	       /* the file is a profile, with or without samples */
	uint64_t kept_samples; /* number of samples in it */
	struct table ids;      /* struct perfdata_build_id */
	uint64_t ids_left_out; /* entries beyond PERFDATA_WRITE_MAX_IDS; their maps are written */
	struct buf kept;       /* blob of PERFDATA_FEAT_BPF_PROG_INFO, or empty */
	int failed;	       /* 0, or the -errno of the first failed write */
	int cause;	       /* the same after perfdata_write_end() has truncated the file */
};

/*
 * Creates the file at path (which must not exist), mode 0644. The caller calls
 * perfdata_writer_close(), also after a failure.
 */
int perfdata_writer_open(struct perfdata_writer *w, const char *path, struct err *e);
/*
 * Creates another writer with the state of w and a copy of its file at path. Both are independent
 * afterwards.
 */
int perfdata_writer_copy(struct perfdata_writer *out, const struct perfdata_writer *w,
			 const char *path, struct err *e);
/* Closes the file, which stays, and frees the writer's memory. Allowed after a failed open. */
void perfdata_writer_close(struct perfdata_writer *w);

/* Writes header and attr. A reader of the unfinished file sees a data size of 0. */
int perfdata_write_begin(struct perfdata_writer *w, const struct profile_info *info, struct err *e);

/*
 * Writes the kernel's map if k->end > k->text, and reserves PERFDATA_EARLY bytes for module maps
 * before all samples: see perfdata_write_early().
 */
int perfdata_write_kernel(struct perfdata_writer *w, const struct profile_kernel *k, struct err *e);

/* Appends a FORK record. The next two append an EXIT and a COMM record. */
int perfdata_write_fork(struct perfdata_writer *w, const struct profile_fork *f, struct err *e);
int perfdata_write_exit(struct perfdata_writer *w, uint32_t pid, uint32_t tid, uint64_t time_ns,
			struct err *e);
int perfdata_write_comm(struct perfdata_writer *w, const struct profile_comm *c, struct err *e);
/* Appends the map of a module, named `[NAME]`. */
int perfdata_write_module(struct perfdata_writer *w, const struct profile_module *m, struct err *e);
/* Appends a map and adds its build id to the table. */
int perfdata_write_map(struct perfdata_writer *w, const struct profile_map *map, struct err *e);
int perfdata_write_sample(struct perfdata_writer *w, const struct profile_sample *s, struct err *e);
/*
 * Appends a sample of the markers' event, which perf knows as bpf-output: perf prints the string
 * with its kind ("start: run_init_process").
 */
int perfdata_write_marker(struct perfdata_writer *w, const struct profile_marker *m, struct err *e);
/* Appends a LOST_SAMPLES record. */
int perfdata_write_lost(struct perfdata_writer *w, uint32_t cpu, uint64_t count, uint64_t time_ns,
			struct err *e);
/*
 * Adds an entry to the build-id table, unless it has the same id and name already. len is 1 to 20.
 * whose is PERFDATA_MISC_KERNEL or PERFDATA_MISC_USER.
 */
int perfdata_write_build_id(struct perfdata_writer *w, uint16_t whose, const uint8_t *id,
			    unsigned int len, const char *name, struct err *e);

enum perfdata_maps { PERFDATA_MAPS_BY_NAME, PERFDATA_MAPS_KEPT };

/*
 * Writes module maps without a time into the room reserved by perfdata_write_kernel(): perf assigns
 * functions to a module only if its map precedes the first sample in kernel mode. Modules that do
 * not fit are omitted; *left is their number. PERFDATA_MAPS_KEPT: perf keeps these maps when it
 * loads the kcore, see docs/perf-data.md; a name may then have several ranges. Call it before
 * perfdata_write_end().
 */
int perfdata_write_early(struct perfdata_writer *w, const struct profile_module *const *m, size_t n,
			 enum perfdata_maps how, size_t *left, struct err *e);

/* Appends the file's header to b; data_end 0: no records yet. */
void perfdata_put_header(struct buf *b, const struct perfdata_writer *w, uint64_t data_end,
			 const uint64_t features[4]);
/* Appends a LOST_SAMPLES record to b. */
void perfdata_put_lost(struct buf *b, const struct perfdata_writer *w, uint32_t cpu, uint64_t count,
		       uint64_t time_ns);

/*
 * Returns true if records contain the id of their event, which only files with several events need.
 */
static inline bool perfdata_has_identifier(const struct perfdata_writer *w)
{
	return w->nevents > 1;
}

#endif
