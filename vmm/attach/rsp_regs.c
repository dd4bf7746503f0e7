/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/rsp_regs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The rest of a text that is parsed. */
struct text {
	const char *at, *end;
};

/*
 * Skips a comment at the position. Returns false if there is none. One without an end extends to
 * the end of the text.
 */
static bool skip_comment(struct text *t)
{
	static const char begin[] = "<!--", end[] = "-->";
	const char *close;

	if ((size_t)(t->end - t->at) < strlen(begin) || memcmp(t->at, begin, strlen(begin)))
		return false;
	close = memmem(t->at + strlen(begin), (size_t)(t->end - t->at) - strlen(begin), end,
		       strlen(end));
	t->at = close ? close + strlen(end) : t->end;
	return true;
}

/* Finds the next tag of this name and moves behind it. Returns false if there is none. */
static bool next_tag(struct text *t, const char *name, struct text *tag)
{
	size_t n = strlen(name);

	for (; t->at < t->end; t->at++) {
		const char *close;

		/* QEMU's description has comments with registers that it does not send. */
		while (skip_comment(t))
			;
		if (t->at == t->end)
			break;
		if (*t->at != '<' || (size_t)(t->end - t->at) < n + 2 ||
		    memcmp(t->at + 1, name, n) || !strchr(" \t\r\n/>", t->at[1 + n]))
			continue;
		close = memchr(t->at, '>', (size_t)(t->end - t->at));
		if (!close)
			return false;
		*tag = (struct text){ t->at + 1 + n, close };
		t->at = close + 1;
		return true;
	}
	return false;
}

static bool attribute(const struct text *tag, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	for (const char *c = tag->at; c + n + 2 < tag->end; c++) {
		const char *close;
		char quote = c[n + 1];

		if (memcmp(c, name, n) || c[n] != '=' || (quote != '"' && quote != '\'') ||
		    !strchr(" \t\r\n", c[-1]))
			continue;
		close = memchr(c + n + 2, quote, (size_t)(tag->end - (c + n + 2)));
		if (!close || (size_t)(close - (c + n + 2)) >= size)
			return false;
		memcpy(out, c + n + 2, (size_t)(close - (c + n + 2)));
		out[close - (c + n + 2)] = '\0';
		return true;
	}
	return false;
}

unsigned int rsp_includes(const char *xml, size_t len, char name[RSP_MAX_INCLUDES][64])
{
	struct text t = { xml, xml + len }, tag;
	unsigned int n = 0;

	while (n < RSP_MAX_INCLUDES && next_tag(&t, "xi:include", &tag))
		if (attribute(&tag, "href", name[n], 64))
			n++;
	return n;
}

#define OFFSET(member) offsetof(struct rsp_layout, member)

static const struct known {
	const char *name;
	size_t where; /* in struct rsp_layout */
} known[] = {
	{ "rax", OFFSET(gpr[GPR_RAX]) },
	{ "rcx", OFFSET(gpr[GPR_RCX]) },
	{ "rdx", OFFSET(gpr[GPR_RDX]) },
	{ "rbx", OFFSET(gpr[GPR_RBX]) },
	{ "rsp", OFFSET(gpr[GPR_RSP]) },
	{ "rbp", OFFSET(gpr[GPR_RBP]) },
	{ "rsi", OFFSET(gpr[GPR_RSI]) },
	{ "rdi", OFFSET(gpr[GPR_RDI]) },
	{ "r8", OFFSET(gpr[GPR_R8]) },
	{ "r9", OFFSET(gpr[GPR_R9]) },
	{ "r10", OFFSET(gpr[GPR_R10]) },
	{ "r11", OFFSET(gpr[GPR_R11]) },
	{ "r12", OFFSET(gpr[GPR_R12]) },
	{ "r13", OFFSET(gpr[GPR_R13]) },
	{ "r14", OFFSET(gpr[GPR_R14]) },
	{ "r15", OFFSET(gpr[GPR_R15]) },
	{ "rip", OFFSET(rip) },
	{ "eflags", OFFSET(rflags) },
	{ "cs", OFFSET(cs) },
	{ "ss", OFFSET(ss) },
	{ "fs_base", OFFSET(fs_base) },
	{ "gs_base", OFFSET(gs_base) },
	{ "k_gs_base", OFFSET(kernel_gs) },
	{ "cr0", OFFSET(cr0) },
	{ "cr2", OFFSET(cr2) },
	{ "cr3", OFFSET(cr3) },
	{ "cr4", OFFSET(cr4) },
	{ "cr8", OFFSET(cr8) },
	{ "efer", OFFSET(efer) },
};

static struct rsp_place *place_of(struct rsp_layout *l, size_t where)
{
	return (struct rsp_place *)(void *)((char *)l + where);
}

int rsp_layout_parse(struct rsp_layout *out, const char *xml, size_t len, struct err *e)
{
	struct text t = { xml, xml + len }, tag;
	struct rsp_layout l = { 0 };
	char name[32], bits[16];
	unsigned int n = 0;

	while (next_tag(&t, "reg", &tag)) {
		unsigned long size;

		if (++n > RSP_MAX_REGS)
			return err_set(e, E2BIG, "the gdbstub describes more than %u registers",
				       RSP_MAX_REGS);
		if (!attribute(&tag, "name", name, sizeof(name)) ||
		    !attribute(&tag, "bitsize", bits, sizeof(bits)))
			return err_set(e, EPROTO, "the gdbstub's register %u has no name or size",
				       n);
		size = strtoul(bits, NULL, 10);
		if (!size || size % 8 || size > 4096)
			return err_set(e, EPROTO, "the gdbstub's register %s has %s bits", name,
				       bits);
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strcmp(known[i].name, name))
				*place_of(&l, known[i].where) =
					(struct rsp_place){ l.size, (uint32_t)size / 8 };
		l.size += (uint32_t)size / 8;
	}
	if (!l.rip.len || !l.gpr[GPR_R15].len)
		return err_set(e, ENOTSUP, "the gdbstub's machine is no x86-64");
	if (!l.cr0.len || !l.cr3.len || !l.cr4.len || !l.efer.len)
		return err_set(e, ENOTSUP,
			       "the gdbstub tells no control registers: page tables can't be read");
	*out = l;
	return 0;
}

static int nibble(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/*
 * Reads a register, little endian. Returns false if it is absent, or unknown ('x' in place of
 * digits).
 */
static bool rsp_place_get(struct rsp_place p, const char *hex, size_t len, uint64_t *out)
{
	uint64_t v = 0;

	for (uint32_t i = p.len < 8 ? p.len : 8; i-- > 0;) {
		size_t at = 2 * ((size_t)p.off + i);
		int high, low;

		if (at + 2 > len)
			return false;
		high = nibble(hex[at]);
		low = nibble(hex[at + 1]);
		if (high < 0 || low < 0)
			return false;
		v = v << 8 | (uint64_t)(high << 4 | low);
	}
	*out = v;
	return p.len != 0;
}

int rsp_regs_parse(const struct rsp_layout *l, const char *hex, size_t len, struct sample_regs *out,
		   uint64_t *kernel_gs)
{
	struct rsp_layout where = *l;
	struct sample_regs r = { 0 };
	uint64_t cs = 0, ss = 0;
	bool good = true;

	for (unsigned int i = 0; i < GPR_COUNT; i++)
		good &= rsp_place_get(*place_of(&where, OFFSET(gpr) + i * sizeof(struct rsp_place)),
				      hex, len, &r.gpr[i]);
#define GET(member, to) rsp_place_get(*place_of(&where, OFFSET(member)), hex, len, to)
	good = good && GET(rip, &r.rip) && GET(rflags, &r.rflags) && GET(cs, &cs) &&
	       GET(cr0, &r.cr0) && GET(cr3, &r.cr3) && GET(cr4, &r.cr4) && GET(efer, &r.efer);
	if (!good)
		return -EPROTO;
	GET(ss, &ss);
	GET(cr2, &r.cr2);
	GET(cr8, &r.cr8);
	GET(fs_base, &r.fs_base);
	GET(gs_base, &r.gs_base);
	*kernel_gs = 0;
	GET(kernel_gs, kernel_gs);
#undef GET
	r.cs = (uint16_t)cs;
	r.ss = (uint16_t)ss;
	*out = r;
	return 0;
}
