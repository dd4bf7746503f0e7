/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/gdb_link.h"

#include "base/clock.h"
#include "base/gmem_remote.h"
#include "vmm/attach/rsp_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Offset of the host addresses of regions in the lower half, because a host address of 0 means
 * "absent". Addresses have 57 bits at most (SDM vol. 3, 4.5).
 */
#define BIAS (UINT64_C(1) << 62)
#define HALF (UINT64_C(1) << 56)
/* Packet size without "PacketSize": the manual guarantees no more. */
#define LEAST_PACKET 400u
#define MAX_CHUNK 16384u
#define OPEN_NS UINT64_C(60000000000) /* limit of all queries with which a connection begins */
/* RAM of a PC outside of devices, if QEMU does not report its RAM. */
static const struct rsp_range usual_ram[] = {
	{ 0, 0xa0000 },
	{ 0x100000, 0xc0000000 - 0x100000 },
	{ UINT64_C(1) << 32, (UINT64_C(1) << 40) - (UINT64_C(1) << 32) },
};

static int failed(struct gdb_link *l, int ret)
{
	if (ret && ret != -EFAULT)
		l->dead = true;
	return ret;
}

/* -- stop and go --------------------------------------------------------------------------- */

static int gdb_link_refuse(const struct gdb_link *l, struct err *e)
{
	return l->dead	      ? err_set(e, EPIPE, "the gdbstub has gone")
	       : l->let_alone ? err_set(e, EBUSY, "the machine was stopped by somebody else")
			      : err_set(e, EBUSY, "the machine runs");
}

int gdb_link_stop(struct gdb_link *l, struct err *e)
{
	int ret;

	if (l->dead || l->let_alone)
		return gdb_link_refuse(l, e);
	if (!l->running)
		return 0;
	ret = rsp_break(&l->rsp, e);
	l->stopped_at = clock_mono_ns();
	l->running = false;
	l->stops++;
	return failed(l, ret);
}

int gdb_link_resume(struct gdb_link *l, struct err *e)
{
	uint64_t stood;
	int ret;

	if (l->dead || l->let_alone)
		return gdb_link_refuse(l, e);
	if (l->running)
		return 0;
	ret = rsp_send(&l->rsp, l->can_vcont ? "vCont;c" : "c", e);
	stood = clock_mono_ns() - l->stopped_at;
	l->stood_ns += stood;
	if (stood > l->longest_ns)
		l->longest_ns = stood;
	l->running = true;
	return failed(l, ret);
}

int gdb_link_poll(struct gdb_link *l, struct err *e)
{
	int ret;

	if (!l->running || l->dead || l->let_alone)
		return 0;
	ret = rsp_poll(&l->rsp, e);
	if (ret > 0) {
		l->let_alone = true;
		return 0;
	}
	return failed(l, ret);
}

uint64_t gdb_link_time(const struct gdb_link *l, uint64_t now_ns)
{
	return (l->running ? now_ns : l->stopped_at) - l->stood_ns;
}

/* -- registers ------------------------------------------------------------------------------ */

static void fill_run(const struct gdb_link *l, const struct sample_regs *r, struct kvm_run *run)
{
	struct kvm_sregs *s = &run->s.regs.sregs;

	run->s.regs.regs = (struct kvm_regs){
		.rax = r->gpr[GPR_RAX],
		.rbx = r->gpr[GPR_RBX],
		.rcx = r->gpr[GPR_RCX],
		.rdx = r->gpr[GPR_RDX],
		.rsi = r->gpr[GPR_RSI],
		.rdi = r->gpr[GPR_RDI],
		.rsp = r->gpr[GPR_RSP],
		.rbp = r->gpr[GPR_RBP],
		.r8 = r->gpr[GPR_R8],
		.r9 = r->gpr[GPR_R9],
		.r10 = r->gpr[GPR_R10],
		.r11 = r->gpr[GPR_R11],
		.r12 = r->gpr[GPR_R12],
		.r13 = r->gpr[GPR_R13],
		.r14 = r->gpr[GPR_R14],
		.r15 = r->gpr[GPR_R15],
		.rip = r->rip,
		.rflags = r->rflags,
	};
	s->cs.selector = r->cs;
	s->cs.dpl = r->cs & 3;
	s->ss.selector = r->ss;
	s->fs.base = r->fs_base;
	s->gs.base = r->gs_base;
	s->cr0 = r->cr0;
	s->cr2 = r->cr2;
	s->cr3 = r->cr3;
	s->cr4 = r->cr4;
	s->cr8 = r->cr8;
	s->efer = r->efer;
	s->idt.base = l->idt;
	s->gdt.base = l->gdt;
}

/*
 * Requests the registers of a vCPU. If the stub reads on, both packets are sent at once, because
 * half of the time is spent on the way.
 */
static int ask_regs(struct gdb_link *l, const char *select, struct err *e)
{
	int ret = rsp_send(&l->rsp, select, e);

	if (ret)
		return ret;
	ret = l->is_physical ? rsp_send(&l->rsp, "g", e) : 0;
	if (ret)
		return ret;
	ret = rsp_reply(&l->rsp, e);
	if (ret)
		return ret;
	if (rsp_is_refusal(&l->rsp))
		return err_set(e, ENODEV, "the gdbstub does not know its vCPU any more: %s",
			       select + 2);
	return l->is_physical ? rsp_reply(&l->rsp, e) : rsp_request(&l->rsp, "g", e);
}

int gdb_link_regs(struct gdb_link *l, unsigned int i, struct kvm_run *out, uint64_t *kernel_gs,
		  struct err *e)
{
	char select[RSP_THREAD_ID + 2];
	struct sample_regs r;
	int ret;

	snprintf(select, sizeof(select), "Hg%s", l->thread[i]);
	ret = ask_regs(l, select, e);
	if (!ret && rsp_regs_parse(&l->layout, (const char *)l->rsp.data.data, l->rsp.data.len, &r,
				   kernel_gs))
		ret = err_set(e, EPROTO, "the gdbstub's registers are not what it described");
	if (!ret)
		fill_run(l, &r, out);
	return failed(l, ret);
}

int gdb_link_tables(struct gdb_link *l, struct err *e)
{
	struct err ignored = { 0 };
	struct buf text;
	uint64_t idt, gdt;
	int ret;

	if (!l->is_physical)
		return 0;
	buf_init(&text);
	ret = rsp_monitor(&l->rsp, "info registers", &text, &ignored);
	if (!ret && rsp_text_tables((const char *)text.data, text.len, &idt, &gdt)) {
		l->idt = idt;
		l->gdt = gdt;
	}
	buf_deinit(&text);
	return !ret || ret == -ENOTSUP ? 0 : failed(l, err_set(e, -ret, "%s", ignored.text));
}

/* -- memory --------------------------------------------------------------------------------- */

int gdb_link_read(struct gdb_link *l, uint64_t addr, void *dst, size_t len, struct err *e)
{
	if (l->dead || l->let_alone || l->running)
		return gdb_link_refuse(l, e);
	return failed(l,
		      rsp_read_memory(&l->rsp, addr >> 62 == 1 ? addr - BIAS : addr, dst, len, e));
}

static void add_region(struct gmem *m, uint64_t start, uint64_t len)
{
	/* An address of the stub, which this process never dereferences. */
	uint64_t host = start >> 63 ? start : start + BIAS;

	m->region[m->n++] = (struct gmem_region){ .gpa = start,
						  .size = len,
						  .host = (uint8_t *)(uintptr_t)host };
}

/*
 * Adds the machine's RAM only: reads of other addresses would reach devices and have side effects.
 */
static int physical_regions(struct gdb_link *l, struct gmem *m, struct err *e)
{
	struct rsp_range ram[GMEM_MAX_REGIONS];
	struct err why = { 0 };
	unsigned int n = 0;
	struct buf text;
	int ret;

	buf_init(&text);
	ret = rsp_monitor(&l->rsp, "info mtree -f", &text, &why);
	if (!ret)
		n = rsp_text_ram((const char *)text.data, text.len, ram, GMEM_MAX_REGIONS);
	buf_deinit(&text);
	if (ret && ret != -ENOTSUP)
		return err_set(e, -ret, "%s", why.text);
	for (unsigned int i = 0; i < n; i++)
		add_region(m, ram[i].start, ram[i].len);
	for (unsigned int i = 0; !n && i < sizeof(usual_ram) / sizeof(usual_ram[0]); i++)
		add_region(m, usual_ram[i].start, usual_ram[i].len);
	return 0;
}

int gdb_link_regions(struct gdb_link *l, struct gmem *m, struct err *e)
{
	if (l->is_physical)
		return failed(l, physical_regions(l, m, e));
	m->is_virtual = true;
	add_region(m, 0, HALF);
	/* Without the last page, whose end is no address. */
	add_region(m, -HALF, HALF - GMEM_REMOTE_PAGE);
	return 0;
}

/* -- the connection ------------------------------------------------------------------------- */

static bool says(const struct gdb_link *l, const char *what)
{
	return strstr((const char *)l->rsp.data.data, what) != NULL;
}

static int greet(struct gdb_link *l, struct err *e)
{
	int ret = rsp_request(&l->rsp, "qSupported:xmlRegisters=i386;qXfer:features:read+", e);
	unsigned long packet = LEAST_PACKET;
	const char *size;

	if (ret)
		return ret;
	size = strstr((const char *)l->rsp.data.data, "PacketSize=");
	if (size)
		packet = strtoul(size + strlen("PacketSize="), NULL, 16);
	if (packet < 64)
		return err_set(e, EPROTO, "the gdbstub's packets are too short");
	ret = rsp_request(&l->rsp, "vCont?", e);
	if (ret)
		return ret;
	l->can_vcont = says(l, ";c");
	ret = rsp_request(&l->rsp, "Qqemu.PhyMemMode:1", e);
	if (ret)
		return ret;
	l->is_physical = says(l, "OK");
	/*
	 * In QEMU, two digits for each byte must fit; in other stubs the frame of the packet, too.
	 */
	l->rsp.chunk = (l->is_physical ? packet : packet - 8) / 2;
	if (l->rsp.chunk > MAX_CHUNK)
		l->rsp.chunk = MAX_CHUNK;
	l->rsp.window = l->is_physical ? RSP_WINDOW : 1;
	return 0;
}

static int gdb_link_describe(struct gdb_link *l, struct err *e)
{
	struct buf xml;
	int ret;

	buf_init(&xml);
	ret = rsp_description(&l->rsp, &xml, e);
	ret = ret ? ret : rsp_layout_parse(&l->layout, (const char *)xml.data, xml.len, e);
	buf_deinit(&xml);
	return ret;
}

/* Makes all queries with which a connection begins. */
static int gdb_link_begin(struct gdb_link *l, struct err *e)
{
	int ret = gdb_guard_start(&l->guard, l->rsp.fd, e);

	if (ret)
		return ret;
	ret = greet(l, e);
	if (ret)
		return ret;
	ret = gdb_link_describe(l, e);
	return ret ? ret : rsp_threads(&l->rsp, l->thread, &l->nthreads, e);
}

int gdb_link_open(struct gdb_link *l, const char *where, struct err *e)
{
	int ret;

	memset(l, 0, sizeof(*l));
	rsp_init(&l->rsp);
	ret = rsp_connect(&l->rsp, where, e);
	l->stopped_at = clock_mono_ns();
	l->rsp.all_limit_ns = OPEN_NS;
	l->rsp.all = (struct patience){ 0 };
	if (!ret)
		ret = gdb_link_begin(l, e);
	l->rsp.all_limit_ns = 0;
	if (ret)
		gdb_link_close(l);
	return ret;
}

void gdb_link_limit_wait(struct gdb_link *l, unsigned int ms)
{
	unsigned int now = atomic_load(&l->rsp.hurry_ms);

	if (!now || ms < now)
		atomic_store(&l->rsp.hurry_ms, ms);
}

void gdb_link_close(struct gdb_link *l)
{
	struct err ignored = { 0 };
	bool well = false;

	gdb_link_limit_wait(l, RSP_HURRY_MS);
	l->rsp.hurried_ns = 0;
	(void)gdb_link_poll(l, &ignored);
	if (l->let_alone)
		well = true;
	else if (l->rsp.fd >= 0 && !l->dead && !gdb_link_stop(l, &ignored)) {
		/* QEMU keeps the mode for the next debugger, which expects virtual addresses. */
		if (l->is_physical)
			(void)rsp_request(&l->rsp, "Qqemu.PhyMemMode:0", &ignored);
		well = !rsp_request(&l->rsp, "D", &ignored) && !rsp_is_refusal(&l->rsp);
	}
	gdb_guard_stop(&l->guard, well ? GDB_GUARD_DOES_NOTHING : GDB_GUARD_DETACHES);
	rsp_deinit(&l->rsp);
}
