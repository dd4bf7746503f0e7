/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_files: the state of a sink_perfdata, and the files beside the samples. Called by the sink's
 * thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_FILES_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_FILES_H

#include "base/table.h"
#include "profile/format/perfdata/text.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/write.h"
#include "profile/format/perfdata/sink.h"

#define SINK_RECENT 1024u /* power of two */

struct sink_perfdata {
	struct sink sink;
	struct sink_perfdata_options opt; /* its strings are the copies below */
	char *path, *tmp, *buildid_dir;
	bool registered; /* opt.publisher knows the temporary, and renames and removes it */
	bool published;
	struct perfdata_writer w;
	struct profile_info info;
	bool have_kernel;
	struct profile_kernel kernel;
	struct buf kallsyms; /* the kernel's functions without modules */
	struct profile_module *module;
	size_t nmodules, module_cap;
	uint64_t modules_left_out;    /* ranges beyond MAX_MODULES: they have no names */
	struct table hot;	      /* uint64_t: sampled kernel addresses */
	struct table callers;	      /* the same of their callers; only `text` has their code */
	uint64_t recent[SINK_RECENT]; /* callers that were noted last, by their hash */
	struct perfdata_text own_text;
	struct perfdata_text *text; /* &own_text, or in a copy that of the original */
	/* The first file that could not be written. */
	int failed;	   /* -errno; 0: none */
	char at_fault[64]; /* name of the file; "" for the data */
};

/* -- files of the directory; a failure is remembered -------- */

/*
 * Records that writing the file `name` failed with the -errno `ret`, unless a failure is recorded.
 * Returns ret.
 */
int perfdata_sink_failed(struct sink_perfdata *p, const char *name, int ret);
/*
 * Creates a file in the profile's directory. Returns a descriptor and sets *path, both owned by the
 * caller, or returns -errno; *path may be set then, too.
 */
int perfdata_sink_create_in(struct sink_perfdata *p, const char *name, char **path, struct err *e);
/* Writes a whole file of len bytes, or removes it if that fails. Returns 0 or -errno. */
int perfdata_sink_put_file(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			   struct err *e);
/* Appends len bytes to a file. Returns 0 or -errno. */
int perfdata_sink_append(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			 struct err *e);
/* Renames a file in the profile's directory. Returns 0 or -errno. */
int perfdata_sink_rename_in(struct sink_perfdata *p, const char *from, const char *to,
			    struct err *e);
/* Removes a file of the profile's directory; errors are ignored. */
void perfdata_sink_remove_in(struct sink_perfdata *p, const char *name);
/*
 * Adds a file to perf's build-id cache, unless the options exclude it. A failure becomes a note
 * (opt.note).
 */
void perfdata_sink_cache(struct sink_perfdata *p, const struct buildid_file_entry *x);
/*
 * Stores *ce as the note about something that the profile lacks or that failed outside it; it does
 * not make end() fail.
 */
void perfdata_sink_note(struct sink_perfdata *p, const struct err *ce);

/* Renames the temporary to its final name. Returns 0 or -errno. */
int perfdata_sink_publish(struct sink_perfdata *p, struct err *e);
/* Removes the temporary. Returns 0 or -errno. */
int perfdata_sink_remove(struct sink_perfdata *p, struct err *e);

#endif
