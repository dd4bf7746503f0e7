/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/write_feature.h"

#include "profile/format/perfdata/format.h"

#include <assert.h>
#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void put_string(struct buf *b, const char *s)
{
	size_t len = strlen(s) + 1;
	size_t padded = (len + PERFDATA_STRING_ALIGN - 1) & ~(size_t)(PERFDATA_STRING_ALIGN - 1);

	buf_u32(b, (uint32_t)padded);
	buf_add(b, s, len);
	buf_add(b, NULL, padded - len);
}

void perfdata_put_attr(struct buf *b, const struct profile_info *info, unsigned int event)
{
	/* perf prints this event's samples as text: they are those of a program's own output. */
	static const struct profile_event marker = { .name = PERFDATA_MARKER_EVENT,
						     .type = PERFDATA_TYPE_SOFTWARE,
						     .config = PERFDATA_COUNT_SW_BPF_OUTPUT,
						     .period = 1 };
	const struct profile_event *ev = event < info->nevents ? &info->event[event] : &marker;
	size_t start = b->len;
	double hz = ev->freq_hz;
	uint64_t freq = hz >= 1 && hz < 1e9 ? (uint64_t)(hz + 0.5) : 1;

	buf_u32(b, ev->type);
	buf_u32(b, PERFDATA_ATTR_SIZE);
	buf_u64(b, ev->config);
	buf_u64(b, hz > 0 ? freq : ev->period); /* sample_freq or sample_period */
	buf_u64(b, PERFDATA_OUR_SAMPLE_TYPE |
			   (ev == &marker || ev->exits ? PERFDATA_SAMPLE_RAW : 0) |
			   (ev != &marker && info->mem ? PERFDATA_MEM_SAMPLE_TYPE : 0) |
			   (info->nevents + info->markers > 1 ? PERFDATA_SAMPLE_IDENTIFIER : 0));
	buf_u64(b, PERFDATA_FORMAT_ID);
	buf_u64(b, PERFDATA_ATTR_MMAP | PERFDATA_ATTR_COMM | (hz > 0 ? PERFDATA_ATTR_FREQ : 0) |
			   PERFDATA_ATTR_TASK | PERFDATA_ATTR_SAMPLE_ID_ALL | PERFDATA_ATTR_MMAP2 |
			   PERFDATA_ATTR_COMM_EXEC | PERFDATA_ATTR_USE_CLOCKID);
	buf_add(b, NULL, 44);	     /* up to sample_stack_user */
	buf_u32(b, CLOCK_MONOTONIC); /* clockid */
	buf_add(b, NULL, 32);
	assert(b->failed || b->len - start == PERFDATA_ATTR_SIZE);
}

static void put_build_ids(struct buf *b, const struct perfdata_writer *w)
{
	for (size_t i = 0; i < w->ids.n; i++) {
		const struct perfdata_build_id *id =
			(const struct perfdata_build_id *)w->ids.item + i;
		size_t name = strlen(id->name) + 1;
		size_t padded =
			(name + PERFDATA_STRING_ALIGN - 1) & ~(size_t)(PERFDATA_STRING_ALIGN - 1);

		buf_u32(b, 0);
		buf_u16(b, (uint16_t)(PERFDATA_MISC_BUILD_ID_SIZE |
				      (id->kernel ? PERFDATA_MISC_KERNEL : PERFDATA_MISC_USER)));
		buf_u16(b, (uint16_t)(PERFDATA_RECORD_HEADER + 4 + 24 + padded));
		buf_u32(b, UINT32_MAX);
		buf_add(b, id->id, id->len);
		buf_add(b, NULL, PERFDATA_BUILD_ID_SIZE - id->len);
		buf_u8(b, (uint8_t)id->len);
		buf_add(b, NULL, 3);
		buf_add(b, id->name, name);
		buf_add(b, NULL, padded - name);
	}
}

/* With this blob perf can print the time of day of a sample (script -F tod). */
static void put_clock_data(struct buf *b)
{
	struct timespec wall, mono;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	buf_u32(b, 1); /* version */
	buf_u32(b, CLOCK_MONOTONIC);
	buf_u64(b, (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec);
	buf_u64(b, (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec);
}

/*
 * Appends one program of n parts. struct bpf_prog_info is that of include/uapi/linux/bpf.h (6.1) up
 * to prog_tags; which arrays follow, as offsets from its end, is in tools/perf/util/bpf-utils.h.
 */
void perfdata_put_kept(struct buf *b, const struct profile_module *const *m, size_t n)
{
	enum { INFO = 192, KSYMS = 1 << 3, FUNC_LENS = 1 << 4, TAGS = 1 << 8 };
	uint32_t count = (uint32_t)n;
	size_t info;

	buf_u32(b, 1); /* programs */
	buf_u32(b, INFO);
	buf_u32(b, (8 + 4 + 8) * count);
	buf_u64(b, KSYMS | FUNC_LENS | TAGS);
	info = b->len;
	buf_add(b, NULL, INFO);
	for (size_t i = 0; i < n; i++)
		buf_u64(b, m[i]->addr);
	for (size_t i = 0; i < n; i++)
		buf_u64(b, 0); /* tag */
	for (size_t i = 0; i < n; i++)
		buf_u32(b, (uint32_t)m[i]->len);
	if (b->failed)
		return;
	buf_put32(b, info + 4, PERFDATA_KEPT_ID);
	memcpy(b->data + info + 64, "guest-modules", 13); /* name */
	buf_put32(b, info + 104, count);		  /* nr_jited_ksyms */
	buf_put32(b, info + 108, count);		  /* nr_jited_func_lens */
	buf_put64(b, info + 112, 0);			  /* jited_ksyms */
	buf_put64(b, info + 120, 16 * (uint64_t)count);	  /* jited_func_lens */
	buf_put32(b, info + 180, count);		  /* nr_prog_tags */
	buf_put64(b, info + 184, 8 * (uint64_t)count);	  /* prog_tags */
}

/* Appends the blob of one feature; nothing if it has no contents. */
/*
 * The processor as the guest sees it, which is the host's but for masked features.
 * perf data convert needs this and CPUDESC, and annotate takes the vendor from it.
 * Form as of perf's get_cpuid() (arch/x86/util/header.c); SDM vol. 2, CPUID.
 */
static void put_cpuid(struct buf *b)
{
	unsigned int eax, vendor[4] = { 0 }, ignored, family, model;
	char text[64];

	__cpuid(0, eax, vendor[0], vendor[2], vendor[1]);
	__cpuid(1, eax, ignored, ignored, ignored);
	family = eax >> 8 & 15;
	model = eax >> 4 & 15;
	if (family >= 6)
		model += (eax >> 16 & 15) << 4;
	if (family == 15)
		family += eax >> 20 & 255;
	snprintf(text, sizeof(text), "%.12s,%u,%u,%u", (const char *)vendor, family, model,
		 eax & 15);
	put_string(b, text);
}

static void put_feature(struct buf *b, unsigned int feature, const struct perfdata_writer *w,
			const struct perfdata_about *about)
{
	const struct profile_info *info = about->info;

	switch (feature) {
	case PERFDATA_FEAT_BUILD_ID:
		put_build_ids(b, w);
		break;
	case PERFDATA_FEAT_HOSTNAME:
		put_string(b, info->hostname ? info->hostname : "");
		break;
	case PERFDATA_FEAT_OSRELEASE:
		put_string(b, about->osrelease ? about->osrelease : "");
		break;
	case PERFDATA_FEAT_VERSION:
		put_string(b, "kvmprof-" KVMPROF_VERSION);
		break;
	case PERFDATA_FEAT_ARCH:
		put_string(b, "x86_64");
		break;
	case PERFDATA_FEAT_NRCPUS:
		buf_u32(b, info->vcpus);
		buf_u32(b, info->vcpus);
		break;
	case PERFDATA_FEAT_CPUDESC:
		put_string(b, info->cpu ? info->cpu : "virtual CPU under KVM");
		break;
	case PERFDATA_FEAT_CPUID:
		if (info->cpu_id)
			put_string(b, info->cpu_id);
		else
			put_cpuid(b);
		break;
	case PERFDATA_FEAT_CMDLINE:
		buf_u32(b, (uint32_t)info->argc);
		for (int i = 0; i < info->argc; i++)
			put_string(b, info->argv[i]);
		break;
	case PERFDATA_FEAT_EVENT_DESC:
		buf_u32(b, w->nevents);
		buf_u32(b, PERFDATA_ATTR_SIZE);
		for (unsigned int i = 0; i < w->nevents; i++) {
			perfdata_put_attr(b, info, i);
			buf_u32(b, 1);
			put_string(b,
				   i < info->nevents ? info->event[i].name : PERFDATA_MARKER_EVENT);
			buf_u64(b, PERFDATA_EVENT_ID + i);
		}
		break;
	case PERFDATA_FEAT_SAMPLE_TIME:
		buf_u64(b, w->first_ns);
		buf_u64(b, w->last_ns);
		break;
	case PERFDATA_FEAT_CLOCKID:
		buf_u64(b, 1); /* resolution, ns */
		break;
	case PERFDATA_FEAT_BPF_PROG_INFO:
		buf_add(b, w->kept.data, w->kept.len);
		break;
	case PERFDATA_FEAT_CLOCK_DATA:
		if (!info->virtual_clock)
			put_clock_data(b);
		break;
	}
}

static const unsigned int our_features[] = {
	PERFDATA_FEAT_BUILD_ID,	     PERFDATA_FEAT_HOSTNAME,	PERFDATA_FEAT_OSRELEASE,
	PERFDATA_FEAT_VERSION,	     PERFDATA_FEAT_ARCH,	PERFDATA_FEAT_NRCPUS,
	PERFDATA_FEAT_CPUDESC,	     PERFDATA_FEAT_CPUID,	PERFDATA_FEAT_CMDLINE,
	PERFDATA_FEAT_EVENT_DESC,    PERFDATA_FEAT_SAMPLE_TIME, PERFDATA_FEAT_CLOCKID,
	PERFDATA_FEAT_BPF_PROG_INFO, PERFDATA_FEAT_CLOCK_DATA,
};
#define OUR_FEATURES (sizeof(our_features) / sizeof(our_features[0]))

void perfdata_put_features(struct buf *blobs, struct buf *index, uint64_t bits[4],
			   const struct perfdata_writer *w, const struct perfdata_about *about)
{
	for (unsigned int i = 0; i < OUR_FEATURES; i++) {
		unsigned int f = our_features[i];
		size_t start = blobs->len;

		put_feature(blobs, f, w, about);
		if (blobs->len == start)
			continue;
		bits[f / 64] |= 1ull << (f % 64);
		buf_u64(index, start);
		buf_u64(index, blobs->len - start);
	}
}
