/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/event_name.h"

#include "vmm/vm.h"
#include "base/event.h"

#include <errno.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* -- perf's events: linux/perf_event.h; names as of perf list --------------------------- */

struct perf_word {
	const char *name, *alias;
	uint32_t type;
	uint64_t config;
	bool is_time, is_clock;
};

#define HW(n, a, c, time)                                              \
	{                                                              \
		.name = (n), .alias = (a), .type = PERF_TYPE_HARDWARE, \
		.config = PERF_COUNT_HW_##c, .is_time = (time)         \
	}
#define SW(n, a, c, time)                                                          \
	{                                                                          \
		.name = (n), .alias = (a), .type = PERF_TYPE_SOFTWARE,             \
		.config = PERF_COUNT_SW_##c, .is_time = (time), .is_clock = (time) \
	}

static const struct perf_word words[] = {
	HW("cycles", "cpu-cycles", CPU_CYCLES, true),
	HW("instructions", NULL, INSTRUCTIONS, false),
	HW("cache-references", NULL, CACHE_REFERENCES, false),
	HW("cache-misses", NULL, CACHE_MISSES, false),
	HW("branches", "branch-instructions", BRANCH_INSTRUCTIONS, false),
	HW("branch-misses", NULL, BRANCH_MISSES, false),
	HW("bus-cycles", NULL, BUS_CYCLES, true),
	HW("ref-cycles", NULL, REF_CPU_CYCLES, true),
	HW("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, false),
	HW("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, false),
	SW("cpu-clock", NULL, CPU_CLOCK, true),
	SW("task-clock", NULL, TASK_CLOCK, true),
	SW("page-faults", "faults", PAGE_FAULTS, false),
	SW("minor-faults", NULL, PAGE_FAULTS_MIN, false),
	SW("major-faults", NULL, PAGE_FAULTS_MAJ, false),
	SW("context-switches", "cs", CONTEXT_SWITCHES, false),
	SW("cpu-migrations", "migrations", CPU_MIGRATIONS, false),
	SW("alignment-faults", NULL, ALIGNMENT_FAULTS, false),
	SW("emulation-faults", NULL, EMULATION_FAULTS, false),
};
#define WORDS (sizeof(words) / sizeof(words[0]))

/* Caches, in the order of enum perf_hw_cache_id, and what is done to them. */
static const char *const cache_name[] = { "L1-dcache", "L1-icache", "LLC", "dTLB",
					  "iTLB",      "branch",    "node" };
#define CACHES (sizeof(cache_name) / sizeof(cache_name[0]))
static const struct {
	const char *name;
	unsigned int op, result;
} cache_op[] = {
	{ "-loads", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-load-misses", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "-stores", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-store-misses", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS },
	{ "-prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
	{ "-prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS },
};
#define CACHE_OPS (sizeof(cache_op) / sizeof(cache_op[0]))

/* -- exits ------------------------------------------------------------------------------- */

#define BIT(k) VM_EXIT_BIT(KVM_EXIT_##k)

static const struct {
	const char *name, *text;
	uint64_t exits;
} exits[] = {
	{ "io", "port I/O", BIT(IO) },
	{ "mmio", "memory-mapped I/O", BIT(MMIO) },
	{ "msr", "MSRs that KVM hands on", BIT(X86_RDMSR) | BIT(X86_WRMSR) },
	{ "rdmsr", "reads of these", BIT(X86_RDMSR) },
	{ "wrmsr", "writes of these", BIT(X86_WRMSR) },
	{ "hypercall", "hypercalls that KVM hands on", BIT(HYPERCALL) },
	{ "debug", "breakpoints and single steps of the VMM", BIT(DEBUG) },
	{ "emulation", "instructions that KVM could not emulate", BIT(INTERNAL_ERROR) },
	{ "shutdown", "triple faults", BIT(SHUTDOWN) },
	{ "system-event", "reset and shutdown by KVM", BIT(SYSTEM_EVENT) },
};
#define EXITS (sizeof(exits) / sizeof(exits[0]))

/*
 * Exit reasons inside of KVM, which the tracepoint kvm:kvm_exit has with isa 1 (VMX: SDM vol. 3D,
 * appendix C) or isa 2 (SVM: APM vol. 2, appendix C).
 */
#define VMX_SVM(vmx, svm) \
	"(isa == 1 && exit_reason == " #vmx ") || (isa == 2 && exit_reason == " #svm ")"

static const struct {
	const char *name, *text, *filter;
} kernel_exits[] = {
	{ "kernel", "each exit to KVM", NULL },
	{ "hlt", "HLT", VMX_SVM(12, 0x78) },
	{ "interrupt", "interrupts of the host", VMX_SVM(1, 0x60) },
	{ "interrupt-window", "waiting to inject an interrupt", VMX_SVM(7, 0x64) },
	{ "cpuid", "CPUID", VMX_SVM(10, 0x72) },
	{ "pause", "PAUSE in a loop", VMX_SVM(40, 0x77) },
	{ "page-fault", "EPT violations, nested page faults", VMX_SVM(48, 0x400) },
	{ "cr", "control registers",
	  "(isa == 1 && exit_reason == 28) || (isa == 2 && exit_reason < 0x20)" },
	{ "kernel-io", "port I/O, before it is known who handles it", VMX_SVM(30, 0x7b) },
	{ "kernel-msr", "MSRs, before it is known who handles them",
	  "(isa == 1 && (exit_reason == 31 || exit_reason == 32)) || "
	  "(isa == 2 && exit_reason == 0x7c)" },
	{ "apic-write", "writes to the virtual APIC", VMX_SVM(56, 0x402) },
	{ "preemption-timer", "VMX preemption timer", "isa == 1 && exit_reason == 52" },
};
#define KERNEL_EXITS (sizeof(kernel_exits) / sizeof(kernel_exits[0]))

/* -- parsing ------------------------------------------------------------------------------ */

static bool is(const char *text, size_t len, const char *word)
{
	return word && strlen(word) == len && !strncasecmp(text, word, len);
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static bool is_word(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_word_char(text[i]))
			return false;
	return len != 0;
}

static bool parse_raw(struct event_name *out, const char *text, size_t len)
{
	uint64_t v = 0;

	if (len < 2 || len > 17 || text[0] != 'r')
		return false;
	for (size_t i = 1; i < len; i++) {
		char c = text[i];
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (unsigned int)((c | 0x20) - 'a' + 10);
		else
			return false;
		v = v << 4 | digit;
	}
	out->class = EVENT_HARDWARE;
	out->type = PERF_TYPE_RAW;
	out->config = v;
	return true;
}

static bool parse_cache(struct event_name *out, const char *text, size_t len)
{
	for (unsigned int c = 0; c < CACHES; c++) {
		size_t n = strlen(cache_name[c]);

		if (len <= n || strncasecmp(text, cache_name[c], n))
			continue;
		for (unsigned int o = 0; o < CACHE_OPS; o++) {
			if (!is(text + n, len - n, cache_op[o].name))
				continue;
			out->class = EVENT_HARDWARE;
			out->type = PERF_TYPE_HW_CACHE;
			out->config = c | cache_op[o].op << 8 | cache_op[o].result << 16;
			return true;
		}
	}
	return false;
}

static bool parse_perf(struct event_name *out, const char *text, size_t len)
{
	for (unsigned int i = 0; i < WORDS; i++) {
		const struct perf_word *w = &words[i];

		if (!is(text, len, w->name) && !is(text, len, w->alias))
			continue;
		out->class = w->type == PERF_TYPE_HARDWARE ? EVENT_HARDWARE : EVENT_SOFTWARE;
		out->type = w->type;
		out->config = w->config;
		out->is_time = w->is_time;
		out->is_clock = w->is_clock;
		return true;
	}
	return parse_cache(out, text, len) || parse_raw(out, text, len);
}

static int parse_exit_number(const char *text, size_t len)
{
	int v = 0;

	if (!len || len > 2)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (text[i] - '0');
	}
	return v < 63 ? v : -1;
}

static int parse_exit(struct event_name *out, const char *kind, size_t len, struct err *e)
{
	int number = parse_exit_number(kind, len);

	out->class = EVENT_EXIT;
	if (number >= 0) {
		out->exits = VM_EXIT_BIT(number);
		return 0;
	}
	for (unsigned int i = 0; i < EXITS; i++)
		if (is(kind, len, exits[i].name)) {
			out->exits = exits[i].exits;
			return 0;
		}
	out->class = EVENT_KERNEL_EXIT;
	for (unsigned int i = 0; i < KERNEL_EXITS; i++)
		if (is(kind, len, kernel_exits[i].name)) {
			out->filter = kernel_exits[i].filter;
			return 0;
		}
	return err_set(e, EINVAL, "%s: no such kind of VM exit; `kvmprof list` has them",
		       out->text);
}

static int parse_modifiers(struct event_name *out, const char *m, size_t len, struct err *e)
{
	for (size_t i = 0; i < len; i++) {
		switch (m[i]) {
		case 'u':
			out->user = true;
			break;
		case 'k':
			out->kernel = true;
			break;
		case 'h':
			out->hv = true;
			break;
		case 'G':
			out->guest = true;
			break;
		case 'H':
			out->host = true;
			break;
		case 'p':
			if (out->precise < 3) {
				out->precise++;
				break;
			}
			return err_set(e, EINVAL, "%s: three p at most", out->text);
		default:
			return err_set(e, EINVAL,
				       "%s: no such modifier: expected some of u k h G H p behind "
				       "the colon",
				       out->text);
		}
	}
	return len ? 0 : err_set(e, EINVAL, "%s: no modifier behind the colon", out->text);
}

static int parse_with_colon(struct event_name *out, size_t at, size_t len, struct err *e)
{
	const char *text = out->text, *rest = text + at + 1;
	size_t rest_len = len - at - 1;

	if (is(text, at, "exit"))
		return parse_exit(out, rest, rest_len, e);
	if (is(text, at, "io")) {
		out->class = EVENT_IO;
		out->latency = is(rest, rest_len, "latency");
		if (out->latency || is(rest, rest_len, "bytes"))
			return 0;
		return err_set(e, EINVAL, "%s: expected io:bytes or io:latency", text);
	}
	if (is(text, at, "wall") || is(text, at, "cpu") || is(text, at, "host") ||
	    is(text, at, "net"))
		return err_set(e, EINVAL, "%s: %.*s takes no modifiers", text, (int)at, text);
	if (parse_perf(out, text, at)) {
		out->base_len = (uint8_t)at;
		return parse_modifiers(out, rest, rest_len, e);
	}
	if (!is_word(text, at) || !is_word(rest, rest_len))
		return err_set(e, EINVAL, "%s: no such event; `kvmprof list` has them", text);
	out->class = EVENT_TRACEPOINT;
	return 0;
}

int event_name_parse(struct event_name *out, const char *text, size_t len, struct err *e)
{
	const char *colon;

	memset(out, 0, sizeof(*out));
	if (!len)
		return err_set(e, EINVAL, "an event without a name");
	for (size_t i = 0; i < len && i < EVENT_NAME_MAX; i++)
		if (!is_word_char(text[i]) && text[i] != ':')
			return err_set(e, EINVAL,
				       "an event's name has letters, digits, `-', `_' and `:' "
				       "only; `kvmprof list` has them");
	if (len >= EVENT_NAME_MAX)
		return err_set(e, EINVAL, "%.20s...: an event's name has at most %u characters",
			       text, EVENT_NAME_MAX - 1);
	memcpy(out->text, text, len);
	out->base_len = (uint8_t)len;
	colon = memchr(out->text, ':', len);
	if (colon)
		return parse_with_colon(out, (size_t)(colon - out->text), len, e);
	if (is(text, len, "wall")) {
		out->class = EVENT_WALL;
		out->is_time = out->is_clock = true;
	} else if (is(text, len, "cpu")) {
		out->class = EVENT_CPU;
		out->is_time = out->is_clock = true;
	} else if (is(text, len, "host")) {
		out->class = EVENT_HOST;
		out->is_clock = true;
	} else if (is(text, len, "exit")) {
		out->class = EVENT_EXIT;
		out->exits = VM_EXIT_ANY;
	} else if (is(text, len, "io")) {
		out->class = EVENT_IO;
	} else if (is(text, len, "net")) {
		out->class = EVENT_NET;
	} else if (!parse_perf(out, text, len)) {
		return err_set(e, EINVAL, "%s: no such event; `kvmprof list` has them", out->text);
	}
	return 0;
}

/* -- lists --------------------------------------------------------------------------------- */

const struct event_word *event_word(unsigned int i)
{
	static _Thread_local char name[EVENT_NAME_MAX];
	static _Thread_local struct event_word word;
	static const struct event_word first[] = {
		{ "wall", "time, also while a vCPU is halted; the default", EVENT_WALL },
		{ "cpu", "CPU time of a vCPU's thread: none while it is halted", EVENT_CPU },
		{ "host", "time, with where it went: guest, KVM, VMM, off the processor",
		  EVENT_HOST },
		{ "exit", "each VM exit that comes to the VMM", EVENT_EXIT },
		{ "io", "requests of the guest to its disks, by bytes", EVENT_IO },
		{ "io:latency", "the same by the time that they took, in ns", EVENT_IO },
		{ "net", "packets that the guest sends, by bytes", EVENT_NET },
	};
#define FIRST ((unsigned int)(sizeof(first) / sizeof(first[0])))

	if (i < FIRST)
		return &first[i];
	i -= FIRST;
	word = (struct event_word){ .name = name };
	if (i < EXITS) {
		word.class = EVENT_EXIT;
		word.text = exits[i].text;
		snprintf(name, sizeof(name), "exit:%s", exits[i].name);
		return &word;
	}
	i -= (unsigned int)EXITS;
	if (i < KERNEL_EXITS) {
		word.class = EVENT_KERNEL_EXIT;
		word.text = kernel_exits[i].text;
		snprintf(name, sizeof(name), "exit:%s", kernel_exits[i].name);
		return &word;
	}
	i -= (unsigned int)KERNEL_EXITS;
	if (i < WORDS) {
		word.class = words[i].type == PERF_TYPE_HARDWARE ? EVENT_HARDWARE : EVENT_SOFTWARE;
		snprintf(name, sizeof(name), "%s", words[i].name);
		return &word;
	}
	i -= (unsigned int)WORDS;
	if (i >= CACHES * CACHE_OPS)
		return NULL;
	word.class = EVENT_HARDWARE;
	snprintf(name, sizeof(name), "%s%s", cache_name[i / CACHE_OPS],
		 cache_op[i % CACHE_OPS].name);
	return &word;
}
