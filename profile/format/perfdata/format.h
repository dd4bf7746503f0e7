/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_format: the numbers of the perf.data format, as far as we use them.
 *
 *   file    := header ids attr-entry... record... feature-index feature-blob...
 *   header  := "PERFILE2" u64 size(104) u64 attr_entry_size section(attrs)
 *              section(data) section(event_types) u64 feature_bits[4]
 *   section := u64 offset, u64 size
 *   attr-entry := attr (attr.size bytes) section(ids)
 *   record  := u32 type, u16 misc, u16 size, payload, [sample-id]
 *
 * The feature index (one section per set feature bit, ascending) begins where
 * the records end. All integers are little endian. Between the index and the
 * first blob of our files are our totals, which no section of the file covers:
 *
 *   totals  := "KVMPROFT" u64 len, JSON (len bytes), zeros up to 8
 *
 * Through a pipe, where nothing can be seeked:
 *
 *   pipe    := "PERFILE2" u64 size(16) record...
 *
 * The attributes, build ids and features are records of their own there
 * (HEADER_ATTR: attr, u64 ids; HEADER_BUILD_ID: as in the feature;
 * HEADER_FEATURE: u64 feature, blob). Two kinds of records have bytes behind
 * them that their size does not count: AUXTRACE (u64) and, through a pipe,
 * HEADER_TRACING_DATA (u32, rounded up to 8). The contents of all COMPRESSED
 * records of a file are one zstd stream of records, which may be cut anywhere.
 * COMPRESSED2 (perf 6.16 and later) says how long its contents are, since zeros
 * follow them: u64 len, contents, zeros up to a multiple of 8.
 *
 * Sources: tools/perf/Documentation/perf.data-file-format.txt,
 * tools/perf/util/header.h (features), include/uapi/linux/perf_event.h
 * (attr, records, misc bits), Linux 6.1.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_FORMAT_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_FORMAT_H

#define PERFDATA_MAGIC "PERFILE2"
#define PERFDATA_MAGIC_SWAPPED "2ELIFREP"
#define PERFDATA_HEADER_SIZE 104u
#define PERFDATA_PIPE_HEADER_SIZE 16u
#define PERFDATA_FEATURE_BITS 256u

/* Offsets inside the header. */
#define PERFDATA_HDR_ATTRS 24u
#define PERFDATA_HDR_DATA 40u
#define PERFDATA_HDR_FEATURES 72u

/* struct perf_event_attr, PERF_ATTR_SIZE_VER7. */
#define PERFDATA_ATTR_SIZE 128u
#define PERFDATA_ATTR_ENTRY (PERFDATA_ATTR_SIZE + 16u)
/* The smallest attr that has all that we read (PERF_ATTR_SIZE_VER0). */
#define PERFDATA_ATTR_MIN 64u

#define PERFDATA_TYPE_SOFTWARE 1u
#define PERFDATA_COUNT_SW_CPU_CLOCK 0u
#define PERFDATA_COUNT_SW_BPF_OUTPUT 10u

/* kvmprof's own: the event whose samples are markers. */
#define PERFDATA_MARKER_EVENT "marker"

/* perf_event_attr flag word. */
#define PERFDATA_ATTR_MMAP (1ull << 8)
#define PERFDATA_ATTR_INHERIT (1ull << 1)
#define PERFDATA_ATTR_COMM (1ull << 9)
#define PERFDATA_ATTR_FREQ (1ull << 10)
#define PERFDATA_ATTR_TASK (1ull << 13)
#define PERFDATA_ATTR_SAMPLE_ID_ALL (1ull << 18)
#define PERFDATA_ATTR_MMAP2 (1ull << 23)
#define PERFDATA_ATTR_COMM_EXEC (1ull << 24)
#define PERFDATA_ATTR_USE_CLOCKID (1ull << 25)

/* enum perf_event_sample_format. */
#define PERFDATA_SAMPLE_IP (1ull << 0)
#define PERFDATA_SAMPLE_TID (1ull << 1)
#define PERFDATA_SAMPLE_TIME (1ull << 2)
#define PERFDATA_SAMPLE_ADDR (1ull << 3)
#define PERFDATA_SAMPLE_READ (1ull << 4)
#define PERFDATA_SAMPLE_CALLCHAIN (1ull << 5)
#define PERFDATA_SAMPLE_ID (1ull << 6)
#define PERFDATA_SAMPLE_CPU (1ull << 7)
#define PERFDATA_SAMPLE_PERIOD (1ull << 8)
#define PERFDATA_SAMPLE_STREAM_ID (1ull << 9)
#define PERFDATA_SAMPLE_RAW (1ull << 10)
#define PERFDATA_SAMPLE_BRANCH_STACK (1ull << 11)
#define PERFDATA_SAMPLE_REGS_USER (1ull << 12)
#define PERFDATA_SAMPLE_STACK_USER (1ull << 13)
#define PERFDATA_SAMPLE_WEIGHT (1ull << 14)
#define PERFDATA_SAMPLE_DATA_SRC (1ull << 15)
#define PERFDATA_SAMPLE_IDENTIFIER (1ull << 16)
#define PERFDATA_SAMPLE_TRANSACTION (1ull << 17)
#define PERFDATA_SAMPLE_REGS_INTR (1ull << 18)
#define PERFDATA_SAMPLE_PHYS_ADDR (1ull << 19)
#define PERFDATA_SAMPLE_CGROUP (1ull << 21)
#define PERFDATA_SAMPLE_DATA_PAGE_SIZE (1ull << 22)
#define PERFDATA_SAMPLE_CODE_PAGE_SIZE (1ull << 23)
#define PERFDATA_SAMPLE_WEIGHT_STRUCT (1ull << 24)

/*
 * perf_event_attr.branch_sample_type: bits that lengthen a branch stack, or make it a call chain.
 */
#define PERFDATA_BRANCH_CALL_STACK (1ull << 11)
#define PERFDATA_BRANCH_HW_INDEX (1ull << 17)
#define PERFDATA_BRANCH_COUNTERS (1ull << 19)

/* Offsets inside the attr, beyond PERFDATA_ATTR_MIN. */
#define PERFDATA_ATTR_BRANCH_TYPE 72u
#define PERFDATA_ATTR_REGS_USER 80u
#define PERFDATA_ATTR_REGS_INTR 96u

/* The fields of kvmprof's samples. */
#define PERFDATA_OUR_SAMPLE_TYPE                                           \
	(PERFDATA_SAMPLE_IP | PERFDATA_SAMPLE_TID | PERFDATA_SAMPLE_TIME | \
	 PERFDATA_SAMPLE_CALLCHAIN | PERFDATA_SAMPLE_CPU | PERFDATA_SAMPLE_PERIOD)

/*
 * Further fields with the memory that samples use (run --mem); RAW is defined in
 * profile/format/sink/memref.h.
 */
#define PERFDATA_MEM_SAMPLE_TYPE                                                 \
	(PERFDATA_SAMPLE_ADDR | PERFDATA_SAMPLE_RAW | PERFDATA_SAMPLE_DATA_SRC | \
	 PERFDATA_SAMPLE_PHYS_ADDR | PERFDATA_SAMPLE_DATA_PAGE_SIZE |            \
	 PERFDATA_SAMPLE_CODE_PAGE_SIZE)

/* enum perf_event_read_format. */
#define PERFDATA_FORMAT_TOTAL_TIME_ENABLED (1ull << 0)
#define PERFDATA_FORMAT_TOTAL_TIME_RUNNING (1ull << 1)
#define PERFDATA_FORMAT_ID (1ull << 2)
#define PERFDATA_FORMAT_GROUP (1ull << 3)
#define PERFDATA_FORMAT_LOST (1ull << 4)

/* enum perf_event_type; from 64 on perf's own (tools/lib/perf/include/perf/event.h). */
enum {
	PERFDATA_RECORD_MMAP = 1,
	PERFDATA_RECORD_LOST = 2,
	PERFDATA_RECORD_COMM = 3,
	PERFDATA_RECORD_EXIT = 4,
	PERFDATA_RECORD_FORK = 7,
	PERFDATA_RECORD_SAMPLE = 9,
	PERFDATA_RECORD_MMAP2 = 10,
	PERFDATA_RECORD_LOST_SAMPLES = 13,
	PERFDATA_RECORD_BPF_EVENT = 18,
	PERFDATA_RECORD_CALLCHAIN_DEFERRED = 22,
	PERFDATA_RECORD_USER_TYPE_START = 64,
	PERFDATA_RECORD_HEADER_ATTR = 64,
	PERFDATA_RECORD_HEADER_TRACING_DATA = 66,
	PERFDATA_RECORD_HEADER_BUILD_ID = 67,
	PERFDATA_RECORD_FINISHED_ROUND = 68,
	PERFDATA_RECORD_AUXTRACE = 71,
	PERFDATA_RECORD_HEADER_FEATURE = 80,
	PERFDATA_RECORD_COMPRESSED = 81,
	PERFDATA_RECORD_COMPRESSED2 = 83,
	/* Record types from here on are unknown to this program (Linux 7.1). */
	PERFDATA_RECORD_UNKNOWN = 23, /* the kernel's first unknown type */
	PERFDATA_RECORD_USER_UNKNOWN = 87,
};

/* enum perf_sample_regs_abi: bits of the word before a sample's registers. */
#define PERFDATA_REGS_ABI_64 2u
#define PERFDATA_REGS_ABI_SIMD 4u /* vector registers follow; four u16 contain their numbers */

/* enum perf_event_x86_regs, bits of perf_event_attr.sample_regs_user. */
enum {
	PERFDATA_REG_AX,
	PERFDATA_REG_BX,
	PERFDATA_REG_CX,
	PERFDATA_REG_DX,
	PERFDATA_REG_SI,
	PERFDATA_REG_DI,
	PERFDATA_REG_BP,
	PERFDATA_REG_SP,
	PERFDATA_REG_IP,
	PERFDATA_REG_R8 = 16,
	PERFDATA_REG_R15 = 23,
};

#define PERFDATA_RECORD_HEADER 8u
#define PERFDATA_RECORD_MAX 65528u /* the size field has 16 bits, records are 8-byte aligned */

/* perf_event_header.misc. */
#define PERFDATA_MISC_CPUMODE_MASK 7u
#define PERFDATA_MISC_KERNEL 1u
#define PERFDATA_MISC_USER 2u
#define PERFDATA_MISC_HYPERVISOR 3u
#define PERFDATA_MISC_GUEST_KERNEL 4u
#define PERFDATA_MISC_GUEST_USER 5u
#define PERFDATA_MISC_COMM_EXEC (1u << 13)
#define PERFDATA_MISC_MMAP_BUILD_ID (1u << 14)
/* in a sample; in kvmprof's own files: the vCPU was running */
#define PERFDATA_MISC_EXACT_IP (1u << 14)
#define PERFDATA_MISC_BUILD_ID_SIZE (1u << 15) /* in the BUILD_ID feature */

/* Markers inside a call chain (enum perf_callchain_context). */
#define PERFDATA_CONTEXT_HV ((uint64_t)-32)
#define PERFDATA_CONTEXT_KERNEL ((uint64_t)-128)
#define PERFDATA_CONTEXT_USER ((uint64_t)-512)
#define PERFDATA_CONTEXT_USER_DEFERRED ((uint64_t)-640) /* the next word is a cookie */
#define PERFDATA_CONTEXT_GUEST_KERNEL ((uint64_t)-2176)
#define PERFDATA_CONTEXT_GUEST_USER ((uint64_t)-2560)
#define PERFDATA_CONTEXT_MAX ((uint64_t)-4095) /* at or above: a marker, not an address */

#define PERFDATA_KERNEL_MAP_NAME "[kernel.kallsyms]_text"
#define PERFDATA_KERNEL_DSO "[kernel.kallsyms]"

/*
 * Suffix of a module function's name in kallsyms: other code had its addresses before, and perf
 * gives this name to that code, too.
 */
#define PERFDATA_OLDER_CODE " [or older code]"

/*
 * kvmprof's own: the profile of the guest's second kernel is DIR/epoch-2, and so on
 * (sink_epochs.h).
 */
#define PERFDATA_EPOCH_DIR "epoch-"
#define PERFDATA_MAX_EPOCHS 32u

/* Feature bits (tools/perf/util/header.h). */
enum {
	PERFDATA_FEAT_BUILD_ID = 2,
	PERFDATA_FEAT_HOSTNAME = 3,
	PERFDATA_FEAT_OSRELEASE = 4,
	PERFDATA_FEAT_VERSION = 5,
	PERFDATA_FEAT_ARCH = 6,
	PERFDATA_FEAT_NRCPUS = 7,
	PERFDATA_FEAT_CPUDESC = 8,
	PERFDATA_FEAT_CPUID = 9,
	PERFDATA_FEAT_CMDLINE = 11,
	PERFDATA_FEAT_EVENT_DESC = 12,
	PERFDATA_FEAT_SAMPLE_TIME = 21,
	PERFDATA_FEAT_CLOCKID = 23,
	PERFDATA_FEAT_DIR_FORMAT = 24, /* perf record --threads: see read_parts.c */
	PERFDATA_FEAT_BPF_PROG_INFO = 25,
	PERFDATA_FEAT_CLOCK_DATA = 29,
	/*
	 * The totals of profiles up to version 0.2, which are still read. perf inject writes each
	 * feature whose bit is set through a table that ends long before this one, and crashes.
	 */
	PERFDATA_FEAT_OLD_TOTALS = 255,
};

#define PERFDATA_TOTALS_MAGIC "KVMPROFT"
#define PERFDATA_TOTALS_HEADER 16u

/* NAME_ALIGN: alignment of strings in features and of build-id names */
#define PERFDATA_STRING_ALIGN 64u
#define PERFDATA_BUILD_ID_SIZE 20u

#endif
