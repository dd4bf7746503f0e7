/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/snapshot/snapshot_host.h"

#include "base/cleanup.h"
#include "vmm/kvm.h"
#include "vmm/quirks.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define CPUID_MAX 256
#define TSC_TOLERANCE_PPM 250u
#define LINE_LEN 100u
#define TSC_NAME "TSC kHz"

struct cpuid {
	struct kvm_cpuid2 head;
	struct kvm_cpuid_entry2 entry[CPUID_MAX];
};

static const struct kvm_cpuid_entry2 *leaf(const struct cpuid *c, uint32_t function, uint32_t index)
{
	static const struct kvm_cpuid_entry2 none;

	for (uint32_t i = 0; i < c->head.nent; i++)
		if (c->entry[i].function == function && c->entry[i].index == index)
			return &c->entry[i];
	return &none;
}

static void put_text(struct buf *out, const char *name, uint32_t a, uint32_t b, uint32_t c)
{
	char text[13] = "";
	const uint32_t word[3] = { a, b, c };

	memcpy(text, word, sizeof(word));
	for (unsigned int i = 0; i < sizeof(text) - 1 && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	buf_printf(out, "%s=%s\n", name, text);
}

/*
 * Appends the CPUID words that state what a guest may use, without those that differ from CPU to
 * CPU of one host.
 */
static void put_processor(struct buf *out, const struct cpuid *c)
{
	static const struct {
		const char *name;
		uint32_t function, index;
		char reg;
	} word[] = {
		{ "processor model", 1, 0, 'a' },
		{ "CPUID 1 ECX", 1, 0, 'c' },
		{ "CPUID 1 EDX", 1, 0, 'd' },
		{ "CPUID 7 EBX", 7, 0, 'b' },
		{ "CPUID 7 ECX", 7, 0, 'c' },
		{ "CPUID 7 EDX", 7, 0, 'd' },
		{ "CPUID 7.1 EAX", 7, 1, 'a' },
		{ "CPUID 0xd EAX", 0xd, 0, 'a' },
		{ "CPUID 0xd EDX", 0xd, 0, 'd' },
		{ "CPUID 0xd.1 EAX", 0xd, 1, 'a' },
		{ "CPUID 0x80000001 ECX", 0x80000001, 0, 'c' },
		{ "CPUID 0x80000001 EDX", 0x80000001, 0, 'd' },
		{ "CPUID 0x80000007 EDX", 0x80000007, 0, 'd' },
		{ "CPUID 0x80000008 EAX", 0x80000008, 0, 'a' },
		{ "CPUID 0x80000008 EBX", 0x80000008, 0, 'b' },
		{ "KVM's CPUID 0x40000001 EAX", 0x40000001, 0, 'a' },
	};
	const struct kvm_cpuid_entry2 *v = leaf(c, 0, 0);

	put_text(out, "processor", v->ebx, v->edx, v->ecx);
	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		const struct kvm_cpuid_entry2 *l = leaf(c, word[i].function, word[i].index);
		uint32_t value = word[i].reg == 'a'   ? l->eax
				 : word[i].reg == 'b' ? l->ebx
				 : word[i].reg == 'c' ? l->ecx
						      : l->edx;

		buf_printf(out, "%s=0x%08x\n", word[i].name, value);
	}
	v = leaf(c, 0x40000000, 0);
	put_text(out, "KVM's signature", v->ebx, v->ecx, v->edx);
}

static void put_kvm(struct buf *out, const struct kvm_host *h, const struct quirks *q)
{
	const struct {
		const char *name;
		bool value;
	} flag[] = {
		{ "KVM interprets ring 0", q->interpreted },
		{ "KVM's SYSCALL keeps the privilege level", q->syscall_keeps_cpl },
		{ "KVM refuses instructions", q->refuses_insns },
		{ "KVM's hypercalls hang", q->hypercalls_hang },
		{ "KVM's timer (PIT2)", h->pit2 },
		{ "KVM's TSC deadline", h->tsc_deadline },
		{ "KVM_SET_TSS_ADDR", h->tss_addr },
	};

	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
		buf_printf(out, "%s=%s\n", flag[i].name, flag[i].value ? "yes" : "no");
	buf_printf(out, TSC_NAME "=%u\n", q->tsc_khz);
}

int snapshot_host_save(const struct kvm_host *h, const struct quirks *q, struct buf *out,
		       struct err *e)
{
	cleanup_free struct cpuid *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(e);
	c->head.nent = CPUID_MAX;
	if (ioctl(h->fd, KVM_GET_SUPPORTED_CPUID, c) < 0)
		return err_set(e, errno, "KVM_GET_SUPPORTED_CPUID: %s", strerror(errno));
	put_processor(out, c);
	put_kvm(out, h, q);
	return out->failed ? err_nomem(e) : 0;
}

/* Copies the next line without its end. Returns false if there is none, or if it is too long. */
static bool next_line(struct cursor *c, char line[LINE_LEN])
{
	const uint8_t *at = c->base + c->pos;
	const uint8_t *end = cursor_left(c) ? memchr(at, '\n', cursor_left(c)) : NULL;
	size_t len = end ? (size_t)(end - at) : 0;

	if (!end || len >= LINE_LEN)
		return false;
	memcpy(line, at, len);
	line[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (line[i] < ' ' || line[i] > '~')
			line[i] = '?';
	cursor_skip(c, len + 1);
	return true;
}

static bool close_enough(const char *here, const char *there)
{
	const size_t skip = sizeof(TSC_NAME "=") - 1;
	unsigned long a, b, d;

	if (strncmp(here, TSC_NAME "=", skip) || strncmp(there, here, skip))
		return false;
	a = strtoul(here + skip, NULL, 10);
	b = strtoul(there + skip, NULL, 10);
	d = a > b ? a - b : b - a;
	return d <= a / (1000000 / TSC_TOLERANCE_PPM);
}

int snapshot_host_check(const struct snapshot *s, const struct kvm_host *h, const struct quirks *q,
			struct err *e)
{
	char a[LINE_LEN], b[LINE_LEN];
	struct cursor there, here;
	struct buf text;
	int ret;

	buf_init(&text);
	ret = snapshot_find(s, "host", SNAPSHOT_HOST_VERSION, &there, e);
	ret = ret ? ret : snapshot_host_save(h, q, &text, e);
	cursor_init(&here, text.data, text.len);
	while (!ret && next_line(&here, a)) {
		if (!next_line(&there, b))
			snprintf(b, sizeof(b), "nothing");
		if (strcmp(a, b) && !close_enough(a, b))
			ret = err_set(e, ENOTSUP,
				      "%s was saved on another host: it has %s, this host %s; save "
				      "it again here",
				      snapshot_path(s), b, a);
	}
	buf_deinit(&text);
	return ret;
}
