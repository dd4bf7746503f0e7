/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/guest.h"

#include "base/json.h"

#include <inttypes.h>

static void print_slide(const struct guest_stats *g, FILE *out)
{
	const struct kslide *k = &g->slide;
	const char *sep = "";

	if (!g->moves)
		return;
	if (k->status != KSLIDE_SOLVED) {
		fprintf(out, "kvmprof: note: no kernel names: %s\n",
			k->reason[0] ? k->reason : "no sample shows the guest in its kernel");
		return;
	}
	fprintf(out, "kvmprof: the kernel runs 0x%" PRIx64 " from where it was linked, by ",
		k->slide);
	for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
		if (!k->by[i].found)
			continue;
		fprintf(out, "%s%s", sep, kslide_kind_name((enum kslide_kind)i));
		if (k->by[i].of > 1)
			fprintf(out, " (%u of %u)", k->by[i].yes, k->by[i].of);
		sep = ", ";
	}
	if (!*sep)
		fputs("its snapshot", out);
	fputc('\n', out);
}

/* Why stacks of programs may end early. */
static void print_cfi(const struct guest_cfi_stats *c, FILE *out)
{
	if (!c->cache.found[CFI_HOLE] && !c->cache.found[CFI_BAD] && !c->without && !c->beyond)
		return;
	fprintf(out,
		"kvmprof: call frame information: %" PRIu64 " of %" PRIu64
		" files have none; of %" PRIu64 " looks at addresses %" PRIu64
		" met pages that are not in memory (--guest-root), %" PRIu64
		" what is damaged or not known; %" PRIu64
		" addresses are of files beyond the first %u\n",
		c->without, c->files, c->cache.looked_up, c->cache.found[CFI_HOLE],
		c->cache.found[CFI_BAD], c->beyond, GUEST_CFI_MAX_FILES);
}

static void print_python(const struct guest_python_stats *p, FILE *out)
{
	fprintf(out,
		"kvmprof: Python: %" PRIu64 " programs; %" PRIu64 " samples with %" PRIu64
		" frames of %" PRIu64 " functions\n",
		p->programs, p->samples, p->frames, p->names.functions);
	if (p->before || p->changing || p->untied)
		fprintf(out,
			"kvmprof: Python: of these programs' samples %" PRIu64
			" are of threads not known (yet) to run Python, %" PRIu64
			" of moments in which a call begins or ends, %" PRIu64
			" fit no C frame: these have C frames alone\n",
			p->before, p->changing, p->untied);
	if (p->cut || p->names.unknown || p->names.beyond)
		fprintf(out,
			"kvmprof: Python: %" PRIu64
			" samples lack frames behind the innermost %u, %" PRIu64
			" frames are called py::?\n",
			p->cut, SAMPLE_MAX_PYTHON, p->names.unknown);
	if (p->foreign)
		fprintf(out,
			"kvmprof: note: Python: %" PRIu64
			" programs run one that is not known (CPython 3.11 to 3.13 is), or had no "
			"thread in a function of Python when they were looked at\n",
			p->foreign);
}

static void print_programs(const struct guest_stats *g, FILE *out)
{
	const struct guest_maps_stats *m = &g->maps;

	if (!g->have_maps) {
		if (g->no_maps[0]) /* without a kernel that was found there is nothing to explain */
			fprintf(out, "kvmprof: note: programs and libraries are not named: %s\n",
				g->no_maps);
		return;
	}
	fprintf(out,
		"kvmprof: programs: %" PRIu64 " processes sampled, %" PRIu64
		" files mapped, %" PRIu64 " with names; %" PRIu64 " of %" PRIu64
		" user frames in no known mapping\n",
		m->processes, g->dsos.files, g->dsos.named, m->unmapped, m->frames);
	if (g->dsos.unverified)
		fprintf(out,
			"kvmprof: note: the names of %" PRIu64
			" files come from the files of these paths in --guest-root, which could "
			"not "
			"be checked: the guest's memory does not tell a build id\n",
			g->dsos.unverified);
	if (g->dsos.beyond)
		fprintf(out,
			"kvmprof: %" PRIu64
			" mappings have no names: their files are beyond the first %u\n",
			g->dsos.beyond, GUEST_DSO_MAX);
	print_cfi(&g->cfi, out);
	if (m->changed)
		fprintf(out,
			"kvmprof: %" PRIu64 " mappings took another one's place while they were "
			"sampled; %" PRIu64 " user frames may be of either and have no name\n",
			m->changed, m->doubtful);
	if (g->jit.regions)
		fprintf(out,
			"kvmprof: code made at run time: %" PRIu64 " regions, %" PRIu64
			" with names, %" PRIu64 " of processes without a map (--guest-root)\n",
			g->jit.regions, g->jit.named, g->jit.without_map);
	if (g->jit.doubtful)
		fprintf(out,
			"kvmprof: %" PRIu64 " of %" PRIu64
			" names of such code are marked [or older code]: earlier functions of "
			"the program had their place, and samples may be of these\n",
			g->jit.doubtful, g->jit.names);
	if (g->want_python)
		print_python(&g->python, out);
	if (g->jit.why[0])
		fprintf(out, "kvmprof: note: names of code made at run time: %s\n", g->jit.why);
	if (m->failed)
		fprintf(out,
			"kvmprof: %" PRIu64 " of %" PRIu64
			" looks at a process's mappings failed, the last one because %s\n",
			m->failed, m->reads, m->why);
}

static void print_mem(const struct memprobe_stats *m, FILE *out)
{
	uint64_t unknown = 0, unmapped = m->operands - m->status[MEM_OK];

	if (!m->samples)
		return;
	for (unsigned int i = 1; i < MEMOP_WHY_COUNT; i++)
		unknown += m->why[i];
	fprintf(out,
		"kvmprof: memory: %" PRIu64 " accesses, %" PRIu64
		" of them to no mapped page; %" PRIu64 " instructions without any, %" PRIu64
		" not understood: see `kvmprof mem`\n",
		m->operands, unmapped, m->without, unknown);
}

void summary_guest_print(const struct guest_stats *g, FILE *out)
{
	print_slide(g, out);
	print_mem(&g->mem, out);
	if (!g->is_linux)
		return;
	if (g->have_tasks) {
		fprintf(out,
			"kvmprof: tasks: %" PRIu64 " seen, %" PRIu64 " of them ended; %" PRIu64
			" samples of unknown tasks",
			g->tasks.seen, g->tasks.exits, g->tasks.unreadable);
		if (g->found_late)
			fprintf(out,
				", %" PRIu64
				" of them from before tasks were found: the kernel has "
				"no type information (BTF)",
				g->unknown_before);
		fputc('\n', out);
	} else if (g->no_tasks[0])
		fprintf(out, "kvmprof: note: tasks are not told apart: %s\n", g->no_tasks);
	if (g->modules.seen)
		fprintf(out,
			"kvmprof: modules: %" PRIu64 " seen, %" PRIu64 " without symbols, %" PRIu64
			" without ORC tables\n",
			g->modules.seen, g->modules.without_symbols, g->modules.without_orc);
	if (g->dyncode.seen)
		fprintf(out,
			"kvmprof: code made at run time: %" PRIu64 " pieces seen, %" PRIu64
			" without a name\n",
			g->dyncode.seen, g->dyncode.without_symbols + g->dyncode.skipped);
	print_programs(g, out);
}

/* -- JSON ------------------------------------------------------------------------------ */

static void guest_number(struct buf *b, const char *key, uint64_t v)
{
	buf_printf(b, ",\"%s\":%" PRIu64, key, v);
}

static void guest_text(struct buf *b, const char *key, const char *v)
{
	buf_printf(b, ",\"%s\":", key);
	json_quote(b, v);
}

static void json_slide(const struct guest_stats *g, struct buf *b)
{
	static const char *const status[] = {
		[KSLIDE_NOT_YET] = "not found",
		[KSLIDE_SOLVED] = "solved",
		[KSLIDE_CONFLICT] = "refused",
	};

	if (!g->moves)
		return;
	buf_printf(b, ",\"slide\":{\"status\":\"%s\",\"slide\":\"%" PRIx64 "\",\"evidence\":{",
		   status[g->slide.status], g->slide.slide);
	for (unsigned int i = 0, n = 0; i < KSLIDE_KINDS; i++)
		if (g->slide.by[i].found)
			buf_printf(b, "%s\"%s\":\"%" PRIx64 "\"", n++ ? "," : "",
				   kslide_kind_name((enum kslide_kind)i), g->slide.by[i].slide);
	buf_printf(b, "}");
	guest_text(b, "reason", g->slide.reason);
	buf_printf(b, "}");
}

void summary_guest_json(const struct guest_stats *g, struct buf *b)
{
	buf_printf(b, ",\"guest\":{\"linux\":%s", g->is_linux ? "true" : "false");
	json_slide(g, b);
	guest_number(b, "tasks", g->tasks.seen);
	guest_number(b, "tasks_ended", g->tasks.exits);
	guest_number(b, "samples_of_unknown_tasks", g->tasks.unreadable);
	guest_number(b, "samples_before_tasks", g->tasks.not_yet);
	guest_text(b, "no_tasks_because", g->no_tasks);
	guest_number(b, "modules", g->modules.seen);
	guest_number(b, "modules_without_symbols", g->modules.without_symbols);
	guest_number(b, "modules_without_orc", g->modules.without_orc);
	guest_text(b, "no_modules_because", g->no_modules);
	guest_number(b, "made_code", g->dyncode.seen);
	guest_number(b, "made_code_without_names", g->dyncode.without_symbols);
	guest_number(b, "made_code_not_believed", g->dyncode.skipped);
	guest_number(b, "made_code_looks_failed", g->dyncode.failed);
	guest_number(b, "processes", g->maps.processes);
	guest_number(b, "map_reads", g->maps.reads);
	guest_number(b, "map_reads_failed", g->maps.failed);
	guest_number(b, "user_frames", g->maps.frames);
	guest_number(b, "user_frames_unmapped", g->maps.unmapped);
	guest_number(b, "mappings_changed", g->maps.changed);
	guest_number(b, "user_frames_doubtful", g->maps.doubtful);
	guest_text(b, "no_maps_because", g->no_maps);
	guest_number(b, "jit_regions", g->jit.regions);
	guest_number(b, "jit_regions_named", g->jit.named);
	guest_number(b, "jit_regions_without_map", g->jit.without_map);
	guest_number(b, "jit_regions_beyond", g->jit.beyond);
	guest_number(b, "jit_maps_from_memory", g->jit.from_memory);
	guest_number(b, "jit_names", g->jit.names);
	guest_number(b, "jit_names_in_doubt", g->jit.doubtful);
	guest_text(b, "jit_unnamed_because", g->jit.why);
	guest_number(b, "python_programs", g->python.programs);
	guest_number(b, "python_programs_not_known", g->python.foreign);
	guest_number(b, "python_threads", g->python.threads);
	guest_number(b, "python_samples", g->python.samples);
	guest_number(b, "python_frames", g->python.frames);
	guest_number(b, "python_functions", g->python.names.functions);
	guest_number(b, "python_samples_thread_not_known", g->python.before);
	guest_number(b, "python_samples_changing", g->python.changing);
	guest_number(b, "python_samples_untied", g->python.untied);
	guest_number(b, "python_samples_cut", g->python.cut);
	guest_number(b, "python_frames_unknown", g->python.names.unknown);
	guest_number(b, "files", g->dsos.files);
	guest_number(b, "files_named", g->dsos.named);
	guest_number(b, "files_unverified", g->dsos.unverified);
	guest_number(b, "files_beyond", g->dsos.beyond);
	guest_number(b, "files_named_from_memory", g->dsos.from_memory);
	guest_number(b, "files_named_from_root", g->dsos.from_root);
	guest_number(b, "files_named_from_debug", g->dsos.from_debug);
	guest_number(b, "cfi_files", g->cfi.files);
	guest_number(b, "cfi_files_without", g->cfi.without);
	guest_number(b, "cfi_files_from_host", g->cfi.from_host);
	guest_number(b, "cfi_beyond", g->cfi.beyond);
	guest_number(b, "cfi_asked", g->cfi.cache.asked);
	guest_number(b, "cfi_looked_up", g->cfi.cache.looked_up);
	guest_number(b, "cfi_missing", g->cfi.cache.found[CFI_HOLE]);
	guest_number(b, "cfi_bad", g->cfi.cache.found[CFI_BAD]);
	guest_number(b, "mem_samples", g->mem.samples);
	guest_number(b, "mem_accesses", g->mem.operands);
	guest_number(b, "mem_accesses_mapped", g->mem.status[MEM_OK]);
	guest_number(b, "mem_instructions_without", g->mem.without);
	guest_number(b, "mem_instructions_no_bytes", g->mem.why[MEMOP_NO_BYTES]);
	guest_number(b, "mem_instructions_not_known", g->mem.why[MEMOP_UNKNOWN_INSN]);
	guest_number(b, "mem_instructions_vector_index", g->mem.why[MEMOP_VECTOR_INDEX]);
	buf_printf(b, "}");
}
