/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kvmstats: reads the counters that KVM keeps of a machine or a vCPU, by name.
 *
 * A statistics descriptor (KVM_GET_STATS_FD) is a small file:
 *
 * 	header   u32 flags, name_size, num_desc, id_offset, desc_offset, data_offset
 * 	id       name_size bytes, a string
 * 	desc[]   u32 flags (type, unit, base: 4 bits each), s16 exponent, u16 size,
 * 	         u32 offset into data, u32 bucket_size, char name[name_size]
 * 	data     u64 each
 *
 * Source: Documentation/virt/kvm/api.rst, 4.133 KVM_GET_STATS_FD (Linux 5.14 and later). The layout
 * is parsed once. Afterwards any thread may read the values repeatedly, also while the vCPU runs.
 */
#ifndef KVMPROF_VMM_KVMSTATS_H
#define KVMPROF_VMM_KVMSTATS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVMSTATS_MAX_DESC 512u
#define KVMSTATS_MAX_NAME 64u	       /* bytes; longer names are cut */
#define KVMSTATS_MAX_FILE (256u << 10) /* bytes of the whole file */

enum kvmstats_type { /* as KVM_STATS_TYPE_* */
		     KVMSTATS_CUMULATIVE,
		     KVMSTATS_INSTANT,
		     KVMSTATS_PEAK,
		     KVMSTATS_LINEAR_HIST,
		     KVMSTATS_LOG_HIST,
};
enum kvmstats_unit { /* as KVM_STATS_UNIT_* */
		     KVMSTATS_NONE,
		     KVMSTATS_BYTES,
		     KVMSTATS_SECONDS,
		     KVMSTATS_CYCLES,
		     KVMSTATS_BOOLEAN,
};

struct kvmstats_desc {
	char name[KVMSTATS_MAX_NAME];
	uint8_t type, unit; /* kvmstats_type and kvmstats_unit, or values of a later kernel */
	uint8_t base;	    /* 0: ten, 1: two. The values are in units of base^exponent */
	int16_t exponent;
	uint16_t size;	 /* number of values: 1, or the buckets of a histogram */
	uint32_t offset; /* offset of the first value in the data */
};

struct kvmstats {
	int fd; /* owned; -1: none */
	uint32_t data_offset, data_len;
	unsigned int n;
	struct kvmstats_desc *desc; /* owned */
};

/*
 * Parses the layout from the first len bytes of such a file; s->fd is not changed. Returns 0,
 * -ENOMEM, or -EINVAL for an offset outside of the bytes or a size over a limit. Descriptors of
 * unknown types are kept, and callers ignore them. kvmstats_close() frees the result.
 */
int kvmstats_parse(struct kvmstats *s, const uint8_t *bytes, size_t len, struct err *e);

/*
 * Parses the layout of the file fd and owns fd from then on, also after an error. Returns 0, -EIO,
 * -EINVAL or -ENOMEM. kvmstats_close() frees the result.
 */
int kvmstats_open(struct kvmstats *s, int fd, struct err *e);
/* Frees the layout and closes the file. */
void kvmstats_close(struct kvmstats *s);

/*
 * Reads all values: data_len bytes to `data`, in which kvmstats_value() finds them. Returns 0 or
 * -EIO.
 */
int kvmstats_read(const struct kvmstats *s, uint8_t *data);
/* Returns the first value of the counter. */
uint64_t kvmstats_value(const struct kvmstats_desc *desc, const uint8_t *data);

/*
 * Returns the descriptor with this name, or NULL if this KVM does not have the counter. It belongs
 * to *s.
 */
const struct kvmstats_desc *kvmstats_find(const struct kvmstats *s, const char *name);

#endif
