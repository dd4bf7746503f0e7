/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/xstate.h"

#include "vmm/machine.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define XSTATE_X87 0x1ull
#define XSTATE_SSE 0x2ull
#define XSTATE_AVX 0x4ull
#define XCOMP_COMPACTED (1ull << 63)

#define LEGACY_SIZE 512u
#define LEGACY_MXCSR 24u /* MXCSR and its mask, 8 bytes */
#define LEGACY_MASK 28u	 /* the valid bits of MXCSR */
#define LEGACY_XMM 160u	 /* 16 registers */
#define LEGACY_XMM_END 416u
#define HEADER_SIZE 64u
#define HEADER_OFF LEGACY_SIZE
#define EXTENDED_OFF (LEGACY_SIZE + HEADER_SIZE)
#define MXCSR_INIT 0x1f80u
#define MXCSR_BITS 0xffbfu /* if a processor reports no mask (SDM vol. 1, 11.6.6) */
#define FCW_INIT 0x37fu

struct component {
	uint32_t size, standard_off;
	bool aligned; /* starts at a multiple of 64 in compacted form */
};

/* Returns a component's properties, which belong to the CPU; host and guest share it. */
static struct component xstate_component(unsigned int i)
{
	struct component c = { 0 };
	uint32_t eax, ebx, ecx, edx;

	if (__get_cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx)) {
		c.size = eax;
		c.standard_off = ebx;
		c.aligned = ecx & 2;
	}
	return c;
}

/* Returns the offset of component i in an area that was compacted with `bv`. */
static uint32_t compacted_off(uint64_t bv, unsigned int i)
{
	uint32_t off = EXTENDED_OFF;

	for (unsigned int k = 2; k <= i; k++) {
		struct component c;

		if (!(bv >> k & 1))
			continue;
		c = xstate_component(k);
		if (c.aligned)
			off = (off + 63) & ~63u;
		if (k == i)
			return off;
		off += c.size;
	}
	return off;
}

static int xstate_requested(const struct guest_insn *g, uint64_t *mask)
{
	struct kvm_xcrs x;

	if (ioctl(g->v->fd, KVM_GET_XCRS, &x) < 0)
		return -errno;
	*mask = (g->regs->rdx << 32 | (uint32_t)g->regs->rax) & (x.nr_xcrs ? x.xcrs[0].value : 3);
	return 0;
}

static bool xstate_fits(const struct component *c)
{
	return c->size && c->standard_off <= sizeof(struct kvm_xsave) &&
	       c->size <= sizeof(struct kvm_xsave) - c->standard_off;
}

static int save_legacy(struct guest_insn *g, uint64_t at, const uint8_t *area, uint64_t mask)
{
	int ret;

	if (mask & XSTATE_X87) {
		ret = guest_insn_write(g, at, area, LEGACY_MXCSR);
		if (ret)
			return ret;
		ret = guest_insn_write(g, at + 32, area + 32, LEGACY_XMM - 32);
		if (ret)
			return ret;
	}
	if (mask & (XSTATE_SSE | XSTATE_AVX)) {
		ret = guest_insn_write(g, at + LEGACY_MXCSR, area + LEGACY_MXCSR, 8);
		if (ret)
			return ret;
	}
	if (!(mask & XSTATE_SSE))
		return 0;
	return guest_insn_write(g, at + LEGACY_XMM, area + LEGACY_XMM, LEGACY_XMM_END - LEGACY_XMM);
}

int xstate_save(struct guest_insn *g, enum xstate_form form)
{
	bool compacted = form == XSTATE_COMPACTED;
	struct kvm_xsave xsave;
	const uint8_t *area = (const uint8_t *)xsave.region;
	uint64_t at, mask, in_use, header[8] = { 0 };
	int ret = guest_insn_address(g, 0, &at);

	if (ret)
		return ret;
	ret = xstate_requested(g, &mask);
	if (ret)
		return ret;
	if (at & 63)
		return -ENOTSUP;
	if (ioctl(g->v->fd, KVM_GET_XSAVE, &xsave) < 0)
		return -errno;
	memcpy(&in_use, area + HEADER_OFF, sizeof(in_use));
	ret = save_legacy(g, at, area, mask);
	for (unsigned int i = 2; !ret && i < 63; i++) {
		struct component c;

		if (!((mask & in_use) >> i & 1))
			continue;
		c = xstate_component(i);
		if (!xstate_fits(&c))
			return -ENOTSUP;
		ret = guest_insn_write(g,
				       at + (compacted ? compacted_off(mask, i) : c.standard_off),
				       area + c.standard_off, c.size);
	}
	if (ret)
		return ret;
	if (compacted) {
		header[0] = in_use & mask;
		header[1] = XCOMP_COMPACTED | mask;
		return guest_insn_write(g, at + HEADER_OFF, header, sizeof(header));
	}
	/* The standard form replaces only the requested bits. */
	ret = guest_insn_read(g, at + HEADER_OFF, header, sizeof(header[0]));
	header[0] = (header[0] & ~mask) | (in_use & mask);
	return ret ? ret : guest_insn_write(g, at + HEADER_OFF, header, sizeof(header[0]));
}

static int restore_legacy(struct guest_insn *g, uint64_t at, uint8_t *area, uint64_t mask,
			  uint64_t present, bool compacted)
{
	uint8_t legacy[LEGACY_SIZE];
	uint32_t mxcsr = MXCSR_INIT;
	uint16_t fcw = FCW_INIT;
	int ret = guest_insn_read(g, at, legacy, sizeof(legacy));

	if (ret)
		return ret;
	if (mask & XSTATE_X87) {
		memset(area, 0, LEGACY_MXCSR);
		memset(area + 32, 0, LEGACY_XMM - 32);
		if (present & XSTATE_X87) {
			memcpy(area, legacy, LEGACY_MXCSR);
			memcpy(area + 32, legacy + 32, LEGACY_XMM - 32);
		} else {
			memcpy(area, &fcw, sizeof(fcw));
		}
	}
	/*
	 * MXCSR belongs to SSE in the compacted form. In the standard form it is loaded for SSE and
	 * AVX, whatever the header says (SDM vol. 1, 13.8.1 and 13.8.2).
	 */
	if (mask & (compacted ? XSTATE_SSE : XSTATE_SSE | XSTATE_AVX)) {
		if (!compacted || present & XSTATE_SSE)
			memcpy(&mxcsr, legacy + LEGACY_MXCSR, sizeof(mxcsr));
		memcpy(area + LEGACY_MXCSR, &mxcsr, sizeof(mxcsr));
	}
	if (mask & XSTATE_SSE) {
		if (present & XSTATE_SSE)
			memcpy(area + LEGACY_XMM, legacy + LEGACY_XMM, LEGACY_XMM_END - LEGACY_XMM);
		else
			memset(area + LEGACY_XMM, 0, LEGACY_XMM_END - LEGACY_XMM);
	}
	return 0;
}

int xstate_restore(struct guest_insn *g)
{
	struct kvm_xsave xsave;
	uint8_t *area = (uint8_t *)xsave.region;
	uint64_t at, mask, header[2], bv;
	int ret = guest_insn_address(g, 0, &at);

	if (ret)
		return ret;
	ret = xstate_requested(g, &mask);
	if (ret)
		return ret;
	ret = guest_insn_read(g, at + HEADER_OFF, header, sizeof(header));
	if (ret)
		return ret;
	if (at & 63)
		return -ENOTSUP;
	if (ioctl(g->v->fd, KVM_GET_XSAVE, &xsave) < 0)
		return -errno;
	ret = restore_legacy(g, at, area, mask, header[0], header[1] & XCOMP_COMPACTED);
	for (unsigned int i = 2; !ret && i < 63; i++) {
		struct component c;

		if (!(mask >> i & 1))
			continue;
		c = xstate_component(i);
		if (!xstate_fits(&c)) {
			/*
			 * KVM does not provide this component: fine if it is in its initial state.
			 */
			if (header[0] >> i & 1)
				return -ENOTSUP;
			continue;
		}
		if (!(header[0] >> i & 1))
			memset(area + c.standard_off, 0, c.size);
		else
			ret = guest_insn_read(g,
					      at + (header[1] & XCOMP_COMPACTED
							    ? compacted_off(header[1], i)
							    : c.standard_off),
					      area + c.standard_off, c.size);
	}
	if (ret)
		return ret;
	memcpy(&bv, area + HEADER_OFF, sizeof(bv));
	bv = (bv & ~mask) | (header[0] & mask);
	memcpy(area + HEADER_OFF, &bv, sizeof(bv));
	return ioctl(g->v->fd, KVM_SET_XSAVE, &xsave) < 0 ? -errno : 0;
}

int xstate_load_mxcsr(struct guest_insn *g)
{
	struct kvm_xsave xsave;
	uint8_t *area = (uint8_t *)xsave.region;
	uint64_t value, in_use;
	uint32_t bits;
	int ret = guest_insn_get(g, 0, &value);

	if (ret)
		return ret;
	if (ioctl(g->v->fd, KVM_GET_XSAVE, &xsave) < 0)
		return -errno;
	/* AMD's processors have one bit more than Intel's: no fault at misaligned operands. */
	memcpy(&bits, area + LEGACY_MASK, sizeof(bits));
	if (value & ~(uint64_t)(bits ? bits : MXCSR_BITS))
		return -ENOTSUP;
	memcpy(area + LEGACY_MXCSR, &value, 4);
	/* KVM accepts MXCSR only if SSE's state is in use; the area then has its initial values. */
	memcpy(&in_use, area + HEADER_OFF, sizeof(in_use));
	in_use |= XSTATE_SSE;
	memcpy(area + HEADER_OFF, &in_use, sizeof(in_use));
	return ioctl(g->v->fd, KVM_SET_XSAVE, &xsave) < 0 ? -errno : 0;
}

int xstate_store_mxcsr(struct guest_insn *g)
{
	struct kvm_xsave xsave;
	uint32_t value;

	if (ioctl(g->v->fd, KVM_GET_XSAVE, &xsave) < 0)
		return -errno;
	memcpy(&value, (uint8_t *)xsave.region + LEGACY_MXCSR, sizeof(value));
	return guest_insn_set(g, 0, value);
}
