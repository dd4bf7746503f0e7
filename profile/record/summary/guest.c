/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/guest.h"

#include <inttypes.h>

static void write_slide(const struct facts_out *o, const struct guest_stats *g)
{
	static const char *const status[] = {
		[KSLIDE_NOT_YET] = "not found",
		[KSLIDE_SOLVED] = "solved",
		[KSLIDE_CONFLICT] = "refused",
	};
	const struct kslide *k = &g->slide;
	const bool solved = k->status == KSLIDE_SOLVED;
	struct buf by;

	if (!g->moves)
		return;
	buf_init(&by);
	facts_object(o, "slide");
	facts_object(o, "evidence");
	for (unsigned int i = 0; i < KSLIDE_KINDS; i++) {
		const char *name = kslide_kind_name((enum kslide_kind)i);

		if (!k->by[i].found)
			continue;
		buf_printf(&by, "%s%s", by.len ? ", " : "", name);
		if (k->by[i].of > 1)
			buf_printf(&by, " (%u of %u)", k->by[i].yes, k->by[i].of);
		FACTS(o, HEX(name, k->by[i].slide));
	}
	facts_object_end(o);
	if (!by.len)
		buf_printf(&by, "its snapshot");

	FACTS(o, STR("status", status[k->status]), HEX("slide", k->slide), STR("reason", k->reason),
	      VARS("by", facts_string(&by)),
	      LINE(!solved && k->reason[0], "note: no kernel names: {reason}"),
	      LINE(!solved && !k->reason[0],
		   "note: no kernel names: no sample shows the guest in its kernel"),
	      LINE(solved, "the kernel's slide is 0x{slide}; evidence: {by}"));
	facts_object_end(o);
	buf_deinit(&by);
}

static void write_mem(const struct facts_out *o, const struct memprobe_stats *m)
{
	uint64_t unknown = 0;

	for (unsigned int i = 1; i < MEMOP_WHY_COUNT; i++)
		unknown += m->why[i];

	FACTS(o, VAR("unmapped", m->operands - m->status[MEM_OK]), VAR("unknown", unknown),
	      NUM("mem_samples", m->samples,
		  "memory: {mem_accesses} accesses, {unmapped} of them to pages that are not "
		  "mapped; {mem_instructions_without} instructions access no memory, {unknown} "
		  "could not be decoded; `kvmprof mem` shows the accesses"),
	      NUM("mem_accesses", m->operands), NUM("mem_accesses_mapped", m->status[MEM_OK]),
	      NUM("mem_instructions_without", m->without),
	      NUM("mem_instructions_no_bytes", m->why[MEMOP_NO_BYTES]),
	      NUM("mem_instructions_not_known", m->why[MEMOP_UNKNOWN_INSN]),
	      NUM("mem_instructions_vector_index", m->why[MEMOP_VECTOR_INDEX]));
}

#define TASKS                                                                                   \
	"tasks: {tasks} seen, {tasks_ended} of them ended; {samples_of_unknown_tasks} samples " \
	"of unknown tasks"

static void write_kernel(const struct facts_out *o, const struct guest_stats *g)
{
	FACTS(o, VAR("unknown_before", g->unknown_before),
	      VAR("nameless", g->dyncode.without_symbols + g->dyncode.skipped),
	      NUM("tasks", g->tasks.seen), NUM("tasks_ended", g->tasks.exits),
	      NUM("samples_of_unknown_tasks", g->tasks.unreadable),
	      NUM("samples_named_late", g->named_late,
		  "{samples_named_late} samples were taken before the tasks were known; their "
		  "tasks come from a later list of all tasks"),
	      NUM("samples_before_tasks", g->tasks.not_yet), STR("no_tasks_because", g->no_tasks),
	      LINE(g->have_tasks && !g->found_late, TASKS),
	      LINE(g->have_tasks && g->found_late,
		   TASKS ", {unknown_before} of them from before tasks were found: the kernel has "
			 "no type information (BTF)"),
	      LINE(!g->have_tasks && g->no_tasks[0],
		   "note: samples have no tasks: {no_tasks_because}"),
	      NUM("modules", g->modules.seen,
		  "modules: {modules} seen, {modules_without_symbols} without symbols, "
		  "{modules_without_orc} without ORC tables"),
	      NUM("code_replaced", g->modules.replaced,
		  "modules and generated code: {code_replaced} pieces were removed or replaced "
		  "while they were sampled; frames that may belong to either are named [changed "
		  "code]"),
	      NUM("modules_without_symbols", g->modules.without_symbols),
	      NUM("modules_without_orc", g->modules.without_orc),
	      STR("no_modules_because", g->no_modules),
	      NUM("made_code", g->dyncode.seen,
		  "code made at run time: {made_code} pieces seen, {nameless} without a name"),
	      NUM("made_code_without_names", g->dyncode.without_symbols),
	      NUM("made_code_not_believed", g->dyncode.skipped),
	      NUM("made_code_looks_failed", g->dyncode.failed));
}

/* Includes call frame information, which explains why stacks of programs may end early. */
static void write_files(const struct facts_out *o, const struct guest_stats *g)
{
	const struct guest_cfi_stats *c = &g->cfi;
	const uint64_t holes = c->cache.found[CFI_HOLE], bad = c->cache.found[CFI_BAD];

	FACTS(o, VAR("most_files", GUEST_DSO_MAX), VAR("most_cfi", GUEST_CFI_MAX_FILES),
	      NUM("files_unverified", g->dsos.unverified,
		  "note: the names of {files_unverified} files come from the files at these "
		  "paths in --guest-root, which could not be checked: the guest's memory has no "
		  "build id of them"),
	      NUM("files_beyond", g->dsos.beyond,
		  "{files_beyond} mappings have no names, because only the first {most_files} "
		  "files get names"),
	      NUM("files_named_from_memory", g->dsos.from_memory),
	      NUM("files_named_from_root", g->dsos.from_root),
	      NUM("files_named_from_debug", g->dsos.from_debug), NUM("cfi_files", c->files),
	      NUM("cfi_files_without", c->without), NUM("cfi_files_from_host", c->from_host),
	      NUM("cfi_beyond", c->beyond), NUM("cfi_asked", c->cache.asked),
	      NUM("cfi_looked_up", c->cache.looked_up), NUM("cfi_missing", holes),
	      NUM("cfi_bad", bad),
	      LINE(holes || bad || c->without || c->beyond,
		   "call frame information: {cfi_files_without} of {cfi_files} files have none; "
		   "of {cfi_looked_up} lookups {cfi_missing} needed pages that are not in memory "
		   "(--guest-root helps), {cfi_bad} found damaged or unknown information; "
		   "{cfi_beyond} addresses belong to files beyond the first {most_cfi}"));
}

static void write_jit(const struct facts_out *o, const struct guest_stats *g)
{
	FACTS(o,
	      NUM("mappings_changed", g->maps.changed,
		  "{mappings_changed} mappings replaced others while they were sampled; "
		  "{user_frames_doubtful} user frames may belong to either and have no name"),
	      NUM("user_frames_doubtful", g->maps.doubtful),
	      NUM("jit_regions", g->jit.regions,
		  "code made at run time: {jit_regions} regions, {jit_regions_named} with names, "
		  "{jit_regions_without_map} of processes without a map (--guest-root)"),
	      NUM("jit_regions_named", g->jit.named),
	      NUM("jit_regions_without_map", g->jit.without_map),
	      NUM("jit_regions_beyond", g->jit.beyond),
	      NUM("jit_maps_from_memory", g->jit.from_memory), NUM("jit_names", g->jit.names),
	      NUM("jit_names_in_doubt", g->jit.doubtful,
		  "{jit_names_in_doubt} of {jit_names} names of such code are marked [or older "
		  "code], because earlier functions of the program were at the same addresses "
		  "and samples may belong to them"));
}

static void write_python(const struct facts_out *o, const struct guest_python_stats *p)
{
	FACTS(o, VAR("most_frames", SAMPLE_MAX_PYTHON),
	      LINE(true, "Python: {python_programs} programs; {python_samples} samples with "
			 "{python_frames} frames of {python_functions} functions"),
	      LINE(p->before || p->changing || p->untied,
		   "Python: some samples of these programs have only C frames: "
		   "{python_samples_thread_not_known} of threads that were not known to run "
		   "Python, {python_samples_changing} taken while a call began or ended, "
		   "{python_samples_untied} that match no C frame"),
	      LINE(p->cut || p->names.unknown || p->names.beyond,
		   "Python: {python_samples_cut} samples have only their innermost {most_frames} "
		   "frames, {python_frames_unknown} frames are named py::?"),
	      NUM("python_programs", p->programs),
	      NUM("python_programs_not_known", p->foreign,
		  "note: Python: {python_programs_not_known} programs run a version that is not "
		  "supported (CPython 3.11 to 3.13 are), or had no thread in a Python function "
		  "when they were examined"),
	      NUM("python_threads", p->threads), NUM("python_samples", p->samples),
	      NUM("python_frames", p->frames), NUM("python_functions", p->names.functions),
	      NUM("python_samples_thread_not_known", p->before),
	      NUM("python_samples_changing", p->changing), NUM("python_samples_untied", p->untied),
	      NUM("python_samples_cut", p->cut), NUM("python_frames_unknown", p->names.unknown));
}

static void write_programs(const struct facts_out *o, const struct guest_stats *g)
{
	const struct guest_maps_stats *m = &g->maps;
	const struct facts_out named = { g->have_maps ? o->text : NULL, o->json };
	const struct facts_out python = { g->want_python ? named.text : NULL, o->json };

	FACTS(o, NUM("processes", m->processes), NUM("files", g->dsos.files),
	      NUM("files_named", g->dsos.named), NUM("user_frames", m->frames),
	      NUM("user_frames_unmapped", m->unmapped), STR("no_maps_because", g->no_maps),
	      LINE(g->have_maps, "programs: {processes} processes sampled, {files} files mapped, "
				 "{files_named} with names; {user_frames_unmapped} of "
				 "{user_frames} user frames in no known mapping"),
	      /* If the kernel was not found nothing needs an explanation. */
	      LINE(!g->have_maps && g->no_maps[0],
		   "note: programs and libraries have no names: {no_maps_because}"));
	write_files(&named, g);
	write_jit(&named, g);
	write_python(&python, &g->python);
	FACTS(&named, VARS("why", m->why),
	      STR("jit_unnamed_because", g->jit.why,
		  "note: code made at run time has no names: {jit_unnamed_because}"),
	      NUM("map_reads", m->reads),
	      NUM("map_reads_failed", m->failed,
		  "{map_reads_failed} of {map_reads} reads of a process's mappings failed, the "
		  "last one because {why}"));
}

void summary_guest(const struct facts_out *o, const struct guest_stats *g)
{
	const struct facts_out linux_text = { g->is_linux ? o->text : NULL, o->json };

	facts_object(o, "guest");
	FACTS(o, FLAG("linux", g->is_linux));
	write_slide(o, g);
	write_mem(o, &g->mem);
	write_kernel(&linux_text, g);
	write_programs(&linux_text, g);
	facts_object_end(o);
}
