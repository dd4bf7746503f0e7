/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sink_files: a sink's state, and the files that it has beside the samples. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_FILES_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SINK_FILES_H

#include "base/table.h"
#include "profile/format/perfdata/text.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/perfdata/write.h"
#include "profile/format/perfdata/sink.h"

struct sink_perfdata {
	struct sink sink;
	struct sink_perfdata_options opt; /* its strings are the ones below */
	char *path, *tmp, *buildid_dir;
	bool registered; /* with opt.publisher, which renames and removes it */
	bool published;
	struct perfdata_writer w;
	struct profile_info info;
	bool have_kernel;
	struct profile_kernel kernel;
	struct buf kallsyms; /* of the kernel proper */
	struct profile_module *module;
	size_t nmodules, module_cap;
	uint64_t modules_left_out; /* ranges over MAX_MODULES: without names */
	struct table hot;	   /* of uint64_t: sampled kernel addresses */
	struct perfdata_text own_text;
	struct perfdata_text *text; /* a copy's is that of what it was copied from */
	/* The first thing that could not be written; 0: none. */
	int failed;	   /* -errno */
	char at_fault[64]; /* a file of the directory; "" for the data */
};

/* -- files of the directory; a failure is remembered -------- */

/* Remember -errno `ret` of writing the file `name`; returns ret. */
int perfdata_sink_failed(struct sink_perfdata *p, const char *name, int ret);
/* fd, *path: owned by the caller. */
int perfdata_sink_create_in(struct sink_perfdata *p, const char *name, char **path, struct err *e);
/* Whole, or it is not there. */
int perfdata_sink_put_file(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			   struct err *e);
int perfdata_sink_append(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			 struct err *e);
int perfdata_sink_rename_in(struct sink_perfdata *p, const char *from, const char *to,
			    struct err *e);
void perfdata_sink_remove_in(struct sink_perfdata *p, const char *name);
/* Into perf's build-id cache, if it is wanted. What goes wrong there is a note. */
void perfdata_sink_cache(struct sink_perfdata *p, const struct buildid_file_entry *x);
/* What the profile lacks, or what could not be done outside of it: told, but no failure. */
void perfdata_sink_note(struct sink_perfdata *p, const struct err *ce);

/* Gives the temporary its final name: 0 or -errno. */
int perfdata_sink_publish(struct sink_perfdata *p, struct err *e);
/* Removes the temporary: 0 or -errno. */
int perfdata_sink_remove(struct sink_perfdata *p, struct err *e);

#endif
