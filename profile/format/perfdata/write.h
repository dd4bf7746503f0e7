/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_write: the bytes of one perf.data file (the `data` of a directory).
 *
 * Order of time: samples of several vCPUs arrive only roughly sorted. The
 * writer holds them back until perfdata_write_flush() asks for the older ones or
 * PERFDATA_WINDOW bytes have come together, sorts them, and writes the older ones.
 * Where what was written since the last one and what was held make up such a window,
 * a FINISHED_ROUND follows. perf may then hand out what it has read up to the
 * round before last. Should a record come that is older than that, it is written
 * and counted as late, and no further rounds are: perf then sorts the rest of the
 * file as a whole.
 *
 * What is on disk can be read at any time, also when its writer was killed: each flush
 * enters the size of the records into the header. There are no features then.
 *
 * Addresses: the callers in a call chain are written as the return address
 * minus 1, inside the call instruction, unless the frame is marked exact. perf
 * looks chain addresses up as they stand; a return address behind a last call
 * that does not return (start_kernel's, cpu_startup_entry's) would be given the
 * name of the next function.
 *
 * Not thread-safe. No errors are lost: the first one sticks, and the writer's end cuts the
 * file back to what fits.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/table.h"
#include "profile/format/sink/sink.h"

#define PERFDATA_EARLY 65528u /* one record: some 580 module maps */
#define PERFDATA_WRITE_MAX_IDS (256u << 10)
#define PERFDATA_WINDOW (8u << 20) /* bytes held back: about 35,000 samples of 20 frames */

struct perfdata_held {
	uint64_t time_ns;
	uint32_t off, len; /* in held bytes */
};

/* One entry of the build-id table. */
struct perfdata_build_id {
	bool kernel; /* the kernel or a module: pid -1, in kernel mode */
	uint8_t id[KIMAGE_BUILD_ID_MAX];
	unsigned int len;
	char *name; /* owned */
};

struct perfdata_writer {
	int fd;			   /* owned; -1 when closed */
	char *path;		   /* owned; for messages */
	uint64_t pos;		   /* bytes of the file so far, with those in `out` */
	uint64_t on_disk;	   /* bytes that certainly are in the file: whole records */
	uint64_t told_size;	   /* of the records, in the file's header */
	uint64_t since_round;	   /* bytes of records since the last FINISHED_ROUND */
	bool drained;		   /* perfdata_write_drain() */
	uint64_t data_off;	   /* where the records begin */
	unsigned int nevents;	   /* with that of markers, if there may be some */
	unsigned int marker_event; /* its index */
	bool mem; /* samples, not markers, have PERFDATA_MEM_SAMPLE_TYPE's fields */
	uint32_t
		exits; /* bits of the events whose samples have RAW of profile/format/sink/exittime.h */
	uint64_t ids_off, attr_off;
	uint64_t early_off;	   /* of the room for module maps; 0: none */
	struct buf out;		   /* next write */
	struct buf held;	   /* records in order of arrival */
	struct buf spare;	   /* what held is copied to when its oldest records are written */
	struct perfdata_held *idx; /* one per held record */
	size_t nidx, idx_cap;
	uint64_t max_ns;		  /* latest time written */
	uint64_t round_ns, prev_round_ns; /* latest time at the end of the last two rounds */
	bool rounds_off;		  /* set before the first record: no rounds at all */
	uint64_t late;			  /* records that came too late for the rounds */
	uint64_t first_ns, last_ns;	  /* of the samples; 0 before the first */
	uint64_t samples;		  /* that it was given */
	/* After perfdata_write_end(): */
	bool readable;	       /* there is a profile, with samples or without */
	uint64_t kept_samples; /* so many of them are in it */
	struct table ids;      /* struct perfdata_build_id */
	uint64_t ids_left_out; /* over PERFDATA_WRITE_MAX_IDS; their maps are there */
	struct buf kept;       /* blob of PERFDATA_FEAT_BPF_PROG_INFO, or empty */
	int failed;	       /* 0 or the first -errno of a write */
	int cause;	       /* the same once perfdata_write_end() has cut the file back */
};

/* Create path (it must not exist), mode 0644. */
int perfdata_writer_open(struct perfdata_writer *w, const char *path, struct err *e);
/*
 * Another writer with all that w has, in a new file at path; both go on by themselves.
 */
int perfdata_writer_copy(struct perfdata_writer *out, const struct perfdata_writer *w,
			 const char *path, struct err *e);
/* Closes the file and frees; what was written stays. Fine after a failed open. */
void perfdata_writer_close(struct perfdata_writer *w);

/* Header and attr. A reader that finds this file unfinished sees a data size of 0. */
int perfdata_write_begin(struct perfdata_writer *w, const struct profile_info *info, struct err *e);

/*
 * The kernel's map when k->end > k->text, and room for PERFDATA_EARLY bytes of
 * module maps in front of all samples: see perfdata_write_early().
 */
int perfdata_write_kernel(struct perfdata_writer *w, const struct profile_kernel *k, struct err *e);

int perfdata_write_fork(struct perfdata_writer *w, const struct profile_fork *f, struct err *e);
int perfdata_write_exit(struct perfdata_writer *w, uint32_t pid, uint32_t tid, uint64_t time_ns,
			struct err *e);
int perfdata_write_comm(struct perfdata_writer *w, const struct profile_comm *c, struct err *e);
/* The map of a module, named `[NAME]`. */
int perfdata_write_module(struct perfdata_writer *w, const struct profile_module *m, struct err *e);
/* Also enters the build id into the table. */
int perfdata_write_map(struct perfdata_writer *w, const struct profile_map *map, struct err *e);
int perfdata_write_sample(struct perfdata_writer *w, const struct profile_sample *s, struct err *e);
/*
 * Of the event that markers have, which perf knows as bpf-output: a string with its kind
 * ("start: run_init_process") is what it prints as such.
 */
int perfdata_write_marker(struct perfdata_writer *w, const struct profile_marker *m, struct err *e);
int perfdata_write_lost(struct perfdata_writer *w, uint32_t cpu, uint64_t count, uint64_t time_ns,
			struct err *e);
/*
 * Add to the build-id table; the same id and name twice is one entry. len <= 20. whose:
 * PERFDATA_MISC_KERNEL or PERFDATA_MISC_USER.
 */
int perfdata_write_build_id(struct perfdata_writer *w, uint16_t whose, const uint8_t *id,
			    unsigned int len, const char *name, struct err *e);

enum perfdata_maps { PERFDATA_MAPS_BY_NAME, PERFDATA_MAPS_KEPT };

/*
 * Module maps without a time, in the room kept by perfdata_write_kernel(): perf
 * gives a module's functions to it only when its map came before the first
 * sample in kernel mode. Modules that find no room are left out; *left is their
 * number. PERFDATA_MAPS_KEPT: perf keeps these maps when it takes the kcore, see
 * docs/perf-data.md; then a name may have several ranges. Before perfdata_write_end().
 */
int perfdata_write_early(struct perfdata_writer *w, const struct profile_module *const *m, size_t n,
			 enum perfdata_maps how, size_t *left, struct err *e);

/* The file's header; data_end 0: no records yet. */
void perfdata_put_header(struct buf *b, const struct perfdata_writer *w, uint64_t data_end,
			 const uint64_t features[4]);
/* A LOST_SAMPLES record. */
void perfdata_put_lost(struct buf *b, const struct perfdata_writer *w, uint32_t cpu, uint64_t count,
		       uint64_t time_ns);

/* Which event a record belongs to is told only where there are several. */
static inline bool perfdata_has_identifier(const struct perfdata_writer *w)
{
	return w->nevents > 1;
}

#endif
