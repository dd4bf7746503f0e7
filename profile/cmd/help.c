/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/help.h"

#include <string.h>

/*
 * tests/e2e/help_pages.py runs every line here that begins with six blanks and `kvmprof'
 * or `perf', in this order, in one directory.
 */
static const char examples[] =
	"\n"
	"Examples\n"
	"  Profile the demo guest, whose true profile is known, and see where its time went:\n"
	"      kvmprof run --append seconds=10 -o demo.data\n"
	"      kvmprof report -i demo.data --top 20\n"
	"  Why did it leave the guest, and how much time went into KVM and into devices?\n"
	"      kvmprof stat -q --append seconds=2\n"
	"  A Linux kernel with a RAM disk, on two CPUs, for a minute:\n"
	"      kvmprof run vmlinux --initrd initramfs.cpio --vcpus 2 --duration 60 -o boot.data\n"
	"  Where the time went by task and program; in perf, with call chains:\n"
	"      kvmprof report -i boot.data --sort comm,dso --order self\n"
	"      perf report -i boot.data\n"
	"  A picture for the browser, and what happened when in a boot:\n"
	"      kvmprof flamegraph -i demo.data -o demo.svg\n"
	"      kvmprof flamegraph -i boot.data --chart -o boot.html\n"
	"  Which memory is used, in pages of which size:\n"
	"      kvmprof run --mem --append mode=pages -o mem.data\n"
	"      kvmprof mem -i mem.data\n"
	"  The hot instructions of a function, as they were in the guest's memory:\n"
	"      kvmprof annotate -i demo.data left_leaf\n"
	"  Is the change faster? Three runs of each say how sure that is:\n"
	"      kvmprof diff old1.data,old2.data,old3.data new1.data,new2.data,new3.data\n"
	"  The same in a pipeline, by rules, with an exit status and a report for the pull "
	"request:\n"
	"      kvmprof gate --base old*.data --head new*.data --markdown gate.md\n"
	"  In another tool, and on another machine:\n"
	"      kvmprof export --format speedscope -i demo.data -o demo.json\n"
	"      kvmprof archive -i demo.data -o demo.tar.zst\n"
	"  What is in this image, and how would it boot?\n"
	"      kvmprof inspect vmlinux\n"
	"  Which function is at this address, and on which line?\n"
	"      kvmprof symbols vmlinux ffffffff8100032b\n";

static const struct topic {
	const char *name, *title, *text;
} topics[] = {
	{ "names", "where the names of functions come from",
	  "Of the kernel, the first of these that there is:\n"
	  "  1. run --symbols FILE: a vmlinux, System.map, kallsyms or nm output, which must "
	  "prove\n"
	  "     that it belongs to the kernel\n"
	  "  2. the image's symbol table (vmlinux)\n"
	  "  3. the tables that the kernel carries for its own use (kallsyms): a bzImage is "
	  "enough\n"
	  "`run --symbols live` takes names from the running kernel's memory, and needs no "
	  "image's.\n"
	  "Modules: from the guest's memory.\n"
	  "Programs and libraries: from the guest's page cache; then from --guest-root, by path;\n"
	  "then from debug files, by build id. JIT compilers: /tmp/perf-PID.map below "
	  "--guest-root.\n"
	  "The profile carries the names: it can be copied (see `kvmprof help archive`).\n" },
	{ "lines", "source lines, and where debug files are looked for",
	  "`report --sort srcline`, `script --srcline`, `annotate` and `symbols IMAGE ADDRESS` "
	  "show\n"
	  "lines when there is a debug file with the kernel's build id, in this order:\n"
	  "  1. --debuginfo PATH: the file, or a directory with .build-id/xx/yyyy.debug, with\n"
	  "     usr/lib/debug in it, or with the file itself\n"
	  "  2. --build-id-map FILE, as `kvmprof scan DIR -o FILE` writes it\n"
	  "  3. for symbols, the image itself, when neither of these is given\n"
	  "  4. perf's build-id cache (~/.debug), and /usr/lib/debug\n"
	  "  5. debuginfod, when DEBUGINFOD_URLS is set\n"
	  "One line on standard error says where it was looked for in vain.\n" },
	{ "time", "what a sample weighs, and what the percentages are of",
	  "A sample stands for the time since the one before, and that is its weight: percentages\n"
	  "are of time, also when the host kept kvmprof waiting. Idle is a vCPU that is halted.\n"
	  "Children: the function was in the stack. Self: it was innermost. Options that choose\n"
	  "samples (--comm, --pid, --cpu, --time) change what 100 % is; report --dso hides rows "
	  "only.\n"
	  "A host that interprets the guest's kernel inflates kernel time against user time; the\n"
	  "summary of the run and `kvmprof check` say so. Compare kernel with kernel only "
	  "there.\n" },
	{ "files", "what a profile is made of, and what else is read and written",
	  "perf.data/            the profile, a directory (-o); an older one becomes "
	  "perf.data.old\n"
	  "  data                perf.data proper, which perf opens through the directory\n"
	  "  kcore_dir/          symbols of the kernel and its modules, text for perf annotate\n"
	  "  text                code of the sampled functions, for kvmprof annotate\n"
	  "  dso/                programs and libraries of the guest\n"
	  "  kvmprof.json        the counters of the run\n"
	  "~/.debug              perf's build-id cache; run fills it (--buildid-dir,\n"
	  "                      --no-buildid-cache)\n"
	  "~/.cache/kvmprof/     host-quirks: what the probe guest found about this host's KVM;\n"
	  "                      `kvmprof check` probes it again\n"
	  "run --single-file writes one file instead, and names to the build-id cache only.\n" },
	{ "events", "what ends a period, and what a host may refuse of it",
	  "run -e LIST, for example -e cpu,exit:io,wall. `kvmprof list` tries all of them here.\n"
	  "  wall             time, also while a vCPU is halted (default)\n"
	  "  cpu              CPU time of the vCPU: none while it is halted\n"
	  "  cycles, ...      the processor's counters, while the guest runs; perf's names and\n"
	  "                   modifiers. A virtual machine mostly has none: cpu stands in\n"
	  "  task-clock, ...  counters of the host's kernel\n"
	  "  exit:io, ...     VM exits that come to kvmprof, exactly, with the stack that caused "
	  "them\n"
	  "  exit:hlt, ...    VM exits inside of KVM, where the host has its tracepoint\n"
	  "  io, io:latency   requests to the guest's disks, by bytes or by time, with the stack "
	  "that\n"
	  "                   brought them\n"
	  "  net              packets that the guest sends, by bytes, with their stack\n"
	  "run --off-cpu adds the time of tasks that do not run, with where they wait.\n"
	  "Time goes by -F HZ; counters, too, or by -c N; exits one by one, or by -c N.\n"
	  "A refused event is named with its cause; --strict-event makes that an error.\n" },
	{ "kernels", "what IMAGE may be, and how it is entered",
	  "Bytes decide, not names; `kvmprof inspect IMAGE` says what was found.\n"
	  "  bzImage, vmlinux   Linux, directly in 64-bit mode (--boot vmlinux), or by a\n"
	  "                     bzImage's own decompressor (--boot bzimage: KASLR)\n"
	  "  unified kernel     an EFI program: the bzImage in it, with its initrd and command\n"
	  "  image (.efi)       line\n"
	  "  multiboot 1 and 2  ELF or flat, in 32-bit mode, with --module FILE[=ARGS]\n"
	  "  PVH                ELF with Xen's note, in 32-bit mode\n"
	  "  other ELF          where it says, or at --entry 0xADDRESS\n"
	  "  a disk image       raw, with GPT, MBR or a bare file system: kernel, initrd and "
	  "command\n"
	  "                     line by its boot entries, grub.cfg, /vmlinuz or /boot; it stays as "
	  "it is\n"
	  "  --snapshot FILE    a machine that was saved (--snapshot-save)\n"
	  "Without IMAGE the demo guest runs. A program that needs a BIOS is refused.\n" },
	{ "status", "exit status",
	  "0  fine. A run may end by itself, by --duration, --samples, a stop marker\n"
	  "   (--stop-on, --stop-at), or by Ctrl-C\n"
	  "1  failed: one line on standard error says what, where, and what to do; or the guest\n"
	  "   crashed, and its samples are kept; or a start marker never came. check: kvmprof run "
	  "does not work here\n"
	  "2  wrong usage\n"
	  "run --exec: what the command in the guest ended with; 126 and 127 as in a shell, 128 + "
	  "N\n"
	  "   for signal N. kvmprof's own failures stay 1 and 2, with their line\n"
	  "gate: 0 pass, 1 it got slower, 2 wrong usage or input, 3 inconclusive\n" },
	{ "gates", "what a verdict on several runs means, and what it takes",
	  "The run is what is counted: how much runs of the same code differ is only known from\n"
	  "several. One run a side is inconclusive; six a side are the fewest that can fail by "
	  "the\n"
	  "default rules, eight to find one function among forty. Let the sides take turns.\n"
	  "  fail          it is worse by the threshold or more, and chance does not explain "
	  "that;\n"
	  "                of identical code at most 1 % of all gates fail\n"
	  "  pass          a change as large as the threshold is excluded, with 90 %\n"
	  "  inconclusive  neither: the report says which change these runs could have seen\n"
	  "Rules are in TOML (gate -c FILE): times, phases, markers, functions, exits, bytes.\n"
	  "configs/gate-*.toml are to start from, docs/gate.md explains every key.\n" },
};

void help_examples(FILE *out)
{
	fputs(examples, out);
}

void help_topics_near(struct nearest *n)
{
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
		nearest_add(n, topics[i].name);
}

bool help_topic(FILE *out, const char *name)
{
	bool all = !strcmp(name, "topics");

	if (all)
		fputs("Topics, for `kvmprof help TOPIC`:\n\n", out);
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		if (all)
			fprintf(out, "  %-10s %s\n", topics[i].name, topics[i].title);
		else if (!strcmp(name, topics[i].name)) {
			fprintf(out, "%s: %s\n\n%s", name, topics[i].title, topics[i].text);
			return true;
		}
	}
	return all;
}
