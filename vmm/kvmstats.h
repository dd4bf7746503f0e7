/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kvmstats: the counters that KVM itself keeps of a machine or a vCPU, by name.
 *
 * A statistics descriptor (KVM_GET_STATS_FD) is a small file:
 *
 *	header   u32 flags, name_size, num_desc, id_offset, desc_offset, data_offset
 *	id       name_size bytes, a string
 *	desc[]   u32 flags (type, unit, base: 4 bits each), s16 exponent, u16 size,
 *	         u32 offset into data, u32 bucket_size, char name[name_size]
 *	data     u64 each
 *
 * Source: Documentation/virt/kvm/api.rst, 4.133 KVM_GET_STATS_FD (Linux 5.14 and later).
 * The layout is parsed once; values are read again and again, by any thread, also while
 * the vCPU runs.
 */
#ifndef KVMPROF_VMM_KVMSTATS_H
#define KVMPROF_VMM_KVMSTATS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVMSTATS_MAX_DESC 512u
#define KVMSTATS_MAX_NAME 64u	       /* longer names are cut */
#define KVMSTATS_MAX_FILE (256u << 10) /* bytes of the whole file */

enum kvmstats_type { /* KVM_STATS_TYPE_* */
		     KVMSTATS_CUMULATIVE,
		     KVMSTATS_INSTANT,
		     KVMSTATS_PEAK,
		     KVMSTATS_LINEAR_HIST,
		     KVMSTATS_LOG_HIST,
};
enum kvmstats_unit { /* KVM_STATS_UNIT_* */
		     KVMSTATS_NONE,
		     KVMSTATS_BYTES,
		     KVMSTATS_SECONDS,
		     KVMSTATS_CYCLES,
		     KVMSTATS_BOOLEAN,
};

struct kvmstats_desc {
	char name[KVMSTATS_MAX_NAME];
	uint8_t type, unit; /* those above, or a later kernel's */
	uint8_t base;	    /* 0: ten, 1: two; the unit is that to the power of exponent */
	int16_t exponent;
	uint16_t size;	 /* values: 1, or the buckets of a histogram */
	uint32_t offset; /* of the first, in the data */
};

struct kvmstats {
	int fd; /* owned; -1: none */
	uint32_t data_offset, data_len;
	unsigned int n;
	struct kvmstats_desc *desc; /* owned */
};

/*
 * The layout out of the first len bytes of such a file; s->fd is left alone. What lies
 * outside of len or is over a cap: -EINVAL. -ENOMEM. Descriptors of a kind that this
 * header does not know stay, for callers to pass over.
 */
int kvmstats_parse(struct kvmstats *s, const uint8_t *bytes, size_t len, struct err *e);

/* Takes fd over, also when it fails: -EIO, -EINVAL, -ENOMEM. */
int kvmstats_open(struct kvmstats *s, int fd, struct err *e);
void kvmstats_close(struct kvmstats *s);

/* Read all values: data_len bytes to data, where kvmstats_value() finds them. 0 or -EIO. */
int kvmstats_read(const struct kvmstats *s, uint8_t *data);
/* The first value of desc. */
uint64_t kvmstats_value(const struct kvmstats_desc *desc, const uint8_t *data);

/* NULL: this KVM does not count that. */
const struct kvmstats_desc *kvmstats_find(const struct kvmstats *s, const char *name);

#endif
