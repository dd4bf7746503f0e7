/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/complete_bmi.h"

#include <errno.h>

#define RFLAGS_LOGIC (RFLAGS_CF | RFLAGS_ZF | RFLAGS_SF | RFLAGS_OF)

/*
 * Sets ZF and SF from a result, CF as given, and clears OF; the manual leaves AF and PF undefined.
 */
static int logic_result(struct guest_insn *g, uint64_t result, bool carry)
{
	unsigned int bits = guest_insn_size(g, 0) * 8;

	guest_insn_set_flags(g, RFLAGS_LOGIC,
			     (result ? 0 : RFLAGS_ZF) | (result >> (bits - 1) & 1 ? RFLAGS_SF : 0) |
				     (carry ? RFLAGS_CF : 0));
	return guest_insn_set(g, 0, result);
}

/* Returns the mask of the operands' width. */
static uint64_t width_mask(const struct guest_insn *g)
{
	return guest_insn_size(g, 0) == 8 ? UINT64_MAX : UINT32_MAX;
}

/* Returns a mask of the low n bits; n may be 64 and more. */
static uint64_t low_bits(unsigned int n)
{
	return n < 64 ? (1ull << n) - 1 : UINT64_MAX;
}

/* Moves bits from src's low end to where the mask has ones. */
static uint64_t deposit(uint64_t src, uint64_t mask)
{
	uint64_t out = 0;

	for (; mask; mask &= mask - 1, src >>= 1)
		if (src & 1)
			out |= mask & -mask;
	return out;
}

/* Moves bits from where the mask has ones to the low end. */
static uint64_t extract(uint64_t src, uint64_t mask)
{
	uint64_t out = 0;

	for (unsigned int to = 0; mask; mask &= mask - 1, to++)
		if (src & mask & -mask)
			out |= 1ull << to;
	return out;
}

/* Shifts operand 1 by operand 2 without changing flags. */
static int shift(struct guest_insn *g, unsigned int id, uint64_t src, uint64_t count)
{
	bool wide = guest_insn_size(g, 0) == 8;

	count &= wide ? 63 : 31;
	if (id == X86_INS_SHLX)
		src <<= count;
	else if (id == X86_INS_SHRX)
		src >>= count;
	else
		src = (uint64_t)((wide ? (int64_t)src : (int32_t)src) >> count);
	return guest_insn_set(g, 0, src);
}

static int rotate(struct guest_insn *g)
{
	unsigned int bits = guest_insn_size(g, 0) * 8, n;
	uint64_t src;
	int ret = guest_insn_get(g, 1, &src);

	if (ret)
		return ret;
	n = (unsigned int)g->insn->detail->x86.operands[2].imm & (bits - 1);
	return guest_insn_set(g, 0, n ? src >> n | src << (bits - n) : src);
}

/*
 * Executes MULX. Operand 0 gets the high half, operand 1 the low one; if both are one register, it
 * keeps the high half.
 */
static int multiply(struct guest_insn *g)
{
	bool wide = guest_insn_size(g, 0) == 8;
	unsigned __int128 product;
	uint64_t src;
	int ret = guest_insn_get(g, 2, &src);

	if (ret)
		return ret;
	product = (unsigned __int128)(wide ? g->regs->rdx : (uint32_t)g->regs->rdx) * src;
	ret = guest_insn_set(g, 1, (uint64_t)product);
	return ret ? ret : guest_insn_set(g, 0, (uint64_t)(product >> (wide ? 64 : 32)));
}

/* Executes ADCX or ADOX: an addition whose carry is CF or OF only. */
static int add_carry(struct guest_insn *g, uint32_t flag)
{
	bool wide = guest_insn_size(g, 0) == 8;
	unsigned __int128 sum;
	uint64_t a, b;
	int ret = guest_insn_get(g, 0, &a);

	ret = ret ? ret : guest_insn_get(g, 1, &b);
	if (ret)
		return ret;
	sum = (unsigned __int128)a + b + (g->regs->rflags & flag ? 1 : 0);
	guest_insn_set_flags(g, flag, sum >> (wide ? 64 : 32) ? flag : 0);
	return guest_insn_set(g, 0, (uint64_t)sum);
}

/* Executes BLSI, BLSMSK or BLSR on the lowest set bit. */
static int lowest_bit(struct guest_insn *g, unsigned int id)
{
	uint64_t mask = width_mask(g), src;
	int ret = guest_insn_get(g, 1, &src);

	if (ret)
		return ret;
	if (id == X86_INS_BLSI)
		return logic_result(g, src & -src & mask, src != 0);
	if (id == X86_INS_BLSR)
		return logic_result(g, src & (src - 1), src == 0);
	return logic_result(g, (src ^ (src - 1)) & mask, src == 0);
}

/*
 * Executes BEXTR: extracts a field of operand 1 that operand 2 describes, start in bits 7:0 and
 * length in 15:8.
 */
static int bit_field(struct guest_insn *g, uint64_t src, uint64_t control)
{
	unsigned int start = control & 0xff, length = control >> 8 & 0xff;

	src = start < 64 ? src >> start & low_bits(length) : 0;
	/* SF is undefined here. */
	guest_insn_set_flags(g, RFLAGS_CF | RFLAGS_OF | RFLAGS_ZF, src ? 0 : RFLAGS_ZF);
	return guest_insn_set(g, 0, src);
}

int complete_bmi(struct guest_insn *g)
{
	unsigned int id = g->insn->id, bits = guest_insn_size(g, 0) * 8;
	uint64_t a, b;
	int ret;

	switch (id) {
	case X86_INS_RORX:
		return rotate(g);
	case X86_INS_MULX:
		return multiply(g);
	case X86_INS_ADCX:
		return add_carry(g, RFLAGS_CF);
	case X86_INS_ADOX:
		return add_carry(g, RFLAGS_OF);
	case X86_INS_BLSI:
	case X86_INS_BLSMSK:
	case X86_INS_BLSR:
		return lowest_bit(g, id);
	case X86_INS_ANDN:
	case X86_INS_BEXTR:
	case X86_INS_BZHI:
	case X86_INS_PDEP:
	case X86_INS_PEXT:
	case X86_INS_SARX:
	case X86_INS_SHLX:
	case X86_INS_SHRX:
		break;
	default:
		return -ENOTSUP;
	}
	ret = guest_insn_get(g, 1, &a);
	ret = ret ? ret : guest_insn_get(g, 2, &b);
	if (ret)
		return ret;
	switch (id) {
	case X86_INS_ANDN:
		return logic_result(g, ~a & b, false);
	case X86_INS_BEXTR:
		return bit_field(g, a, b);
	case X86_INS_BZHI:
		return logic_result(g, a & low_bits(b & 0xff), (b & 0xff) >= bits);
	case X86_INS_PDEP:
		return guest_insn_set(g, 0, deposit(a, b));
	case X86_INS_PEXT:
		return guest_insn_set(g, 0, extract(a, b));
	default:
		return shift(g, id, a, b);
	}
}
