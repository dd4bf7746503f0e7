/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parsers of a snapshot: its table, and the bytes of each part. The first byte chooses which. A
 * table gets the checksum and the file length that it should have, which the input would hit only
 * by luck.
 */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "profile/record/run/snapshot_facts.h"
#include "vmm/dev/p9.h"
#include "vmm/dev/p9_state.h"
#include "vmm/dev/pit.h"
#include "vmm/dev/platform.h"
#include "vmm/dev/serial.h"
#include "vmm/snapshot/snapshot_devices.h"
#include "vmm/snapshot/snapshot_vm.h"
#include "vmm/snapshot/vcpu_state.h"
#include "vmm/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define CRC_AT 32u
#define ENTRY 48u
#define HEADER 40u

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void fuzz_table(uint8_t *data, size_t len)
{
	struct snapshot_table *t = calloc(1, sizeof(*t));
	uint64_t off = 0, ram = 0, end;
	uint32_t n = 0;

	if (!t)
		abort();
	if (len >= HEADER) {
		memcpy(&n, data + 12, sizeof(n));
		memcpy(&off, data + 16, sizeof(off));
		memcpy(&ram, data + 24, sizeof(ram));
		end = HEADER + (uint64_t)n * ENTRY;
		put32(data + CRC_AT, 0);
		if (end <= len)
			put32(data + CRC_AT, (uint32_t)crc32_z(0, data, (size_t)end));
	}
	if (snapshot_parse(t, "fuzz", data, len, off + ram, NULL) == 0)
		for (unsigned int i = 0; i < t->n; i++)
			if (t->at[i].off > t->ram_off || t->at[i].len > t->ram_off - t->at[i].off ||
			    !t->at[i].name[0] || t->at[i].name[SNAPSHOT_NAME - 1])
				abort();
	free(t);
}

static void no_irq(void *ctx, unsigned int irq, int level)
{
	(void)ctx;
	(void)irq;
	(void)level;
}

static void no_byte(void *ctx, uint8_t byte)
{
	(void)ctx;
	(void)byte;
}

static const char *dir_made;

static void remove_dir(void)
{
	(void)file_remove_tree(dir_made, NULL);
}

static void fuzz_devices(struct cursor *in, unsigned int which)
{
	struct bus bus = { .n = 0 };
	struct serial serial;
	struct platform platform;
	struct pit pit;
	uint32_t val = 0;

	if (which == 2 &&
	    !serial_init(&serial, &bus, (struct dev_irq){ no_irq, NULL }, no_byte, NULL)) {
		if (!serial_restore(&serial, in, NULL))
			for (unsigned int i = 0; i < 80; i++)
				bus.device[0].io(&serial, 0, false, 1, &val);
		serial_deinit(&serial);
	} else if (which == 3 && !platform_init(&platform, &bus, (struct dev_power){ 0 })) {
		platform_restore(&platform, in, NULL);
	} else if (which == 4 && !pit_init(&pit, &bus, (struct dev_irq){ no_irq, NULL },
					   (struct pit_load){ 0 }, 50000000, NULL)) {
		if (!pit_restore(&pit, in, NULL))
			for (uint16_t i = 0; i < 6; i++)
				bus.device[0].io(&pit, i % 3, false, 1, &val);
		pit_deinit(&pit);
	}
}

/* Parses the parts about images, directories and ports of the host. */
static void fuzz_host_parts(struct cursor *in)
{
	struct snapshot_devices *d = calloc(1, sizeof(*d));
	struct vm_config cfg = { 0 };

	if (!d)
		abort();
	if (!snapshot_devices_parse(d, in, NULL)) {
		snapshot_devices_configure(d, &cfg);
		for (unsigned int i = 0; i < d->ndisks; i++)
			if (d->disk[i].path[0] != '/' ||
			    strlen(d->disk[i].serial) > SNAPSHOT_SERIAL_MAX)
				abort();
		for (unsigned int i = 0; i < cfg.nshares; i++)
			if (cfg.share[i].dir[0] != '/' || !*cfg.share[i].tag)
				abort();
		if (cfg.net.kind == NET_TAP && !*cfg.net.tap)
			abort();
	}
	free(d);
}

/* Fids within a directory that is empty but for one file. */
static void fuzz_share(struct cursor *in)
{
	static char dir[64];
	struct err e = { 0 };
	struct p9 *p9;
	int ret;

	if (!*dir) {
		char file[80];

		strcpy(dir, "/tmp/fuzz-snapshot.XXXXXX");
		if (!mkdtemp(dir))
			abort();
		snprintf(file, sizeof(file), "%s/d", dir);
		if (mkdir(file, 0700) < 0)
			abort();
		atexit(remove_dir);
		dir_made = dir;
	}
	if (p9_create(
		    &p9,
		    &(struct p9_share){ .dir = dir, .read_only = false, .max_files = P9_MAX_FILES },
		    &e) < 0)
		abort();
	ret = p9_restore(p9, in, &e);
	if ((ret != 0) != (e.code != 0) || strchr(e.text, '\n'))
		abort();
	if (!ret) {
		struct buf b;

		buf_init(&b);
		if (p9_save(p9, &b, &e) < 0)
			abort();
		buf_deinit(&b);
	}
	p9_destroy(p9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct vcpu_state *v = malloc(sizeof(*v));
	struct snapshot_machine m;
	struct snapshot_facts f = { 0 };
	struct cursor in;

	if (!copy || !v)
		abort();
	if (size > 1) {
		memcpy(copy, data + 1, size - 1);
		cursor_init(&in, copy, size - 1);
		switch (data[0] % 9) {
		case 0:
			fuzz_table(copy, size - 1);
			break;
		case 1:
			if (!vcpu_state_parse(v, &in, NULL) &&
			    (v->nmsrs > VCPU_STATE_MAX_MSRS || v->ncpuid > VCPU_STATE_MAX_CPUID))
				abort();
			break;
		case 5:
			snapshot_machine_parse(&m, &in, NULL);
			break;
		case 6:
			if (!snapshot_facts_parse(&f, &in, NULL) && !f.cmdline)
				abort();
			snapshot_facts_deinit(&f);
			break;
		case 7:
			fuzz_host_parts(&in);
			break;
		case 8:
			fuzz_share(&in);
			break;
		default:
			fuzz_devices(&in, data[0] % 9);
		}
	}
	free(v);
	free(copy);
	return 0;
}
