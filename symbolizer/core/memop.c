/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/memop.h"

#include "symbolizer/core/disasm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Cached instructions. A program's hot code has fewer that access memory; collisions replace each
 * other.
 */
#define CACHE_SLOTS 4096u

struct cached {
	uint8_t bytes[SAMPLE_MAX_INSN];
	uint8_t given; /* 0: free */
	struct memop_insn insn;
};

struct memop_decoder {
	struct disasm_decoder x86;
	struct cached cache[CACHE_SLOTS];
};

int memop_open(struct memop_decoder **out, struct err *e)
{
	struct memop_decoder *d = calloc(1, sizeof(*d));
	int ret = d ? disasm_decoder_open(&d->x86, e) : err_nomem(e);

	if (ret) {
		free(d);
		return ret;
	}
	*out = d;
	return 0;
}

void memop_close(struct memop_decoder *d)
{
	if (!d)
		return;
	disasm_decoder_close(&d->x86);
	free(d);
}

const char *memop_why_text(enum memop_why why)
{
	static const char *const text[MEMOP_WHY_COUNT] = {
		[MEMOP_OK] = "",
		[MEMOP_NO_BYTES] = "its bytes could not be read",
		[MEMOP_UNKNOWN_INSN] = "not an instruction that capstone knows",
		[MEMOP_VECTOR_INDEX] = "addresses in a vector register (gather, scatter)",
	};

	return why < MEMOP_WHY_COUNT ? text[why] : "?";
}

/* -- registers ------------------------------------------------------------------------- */

/* Returns the enum sample_gpr of a 64-bit or 32-bit general register; MEMOP_NO_REG for others. */
static uint8_t gpr_of(unsigned int reg, bool *is32)
{
	static const uint16_t wide[GPR_COUNT] = {
		X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
		X86_REG_RSI, X86_REG_RDI, X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
		X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15,
	};
	static const uint16_t half[GPR_COUNT] = {
		X86_REG_EAX,  X86_REG_ECX,  X86_REG_EDX,  X86_REG_EBX,	X86_REG_ESP,  X86_REG_EBP,
		X86_REG_ESI,  X86_REG_EDI,  X86_REG_R8D,  X86_REG_R9D,	X86_REG_R10D, X86_REG_R11D,
		X86_REG_R12D, X86_REG_R13D, X86_REG_R14D, X86_REG_R15D,
	};

	for (unsigned int i = 0; i < GPR_COUNT; i++) {
		if (wide[i] == reg)
			return (uint8_t)i;
		if (half[i] == reg) {
			*is32 = true;
			return (uint8_t)i;
		}
	}
	return MEMOP_NO_REG;
}

/* Does the same for the register of a bit offset, which can have 16 bits. */
static uint8_t bit_gpr_of(unsigned int reg)
{
	static const uint16_t low[GPR_COUNT] = {
		X86_REG_AX,   X86_REG_CX,   X86_REG_DX,	  X86_REG_BX,	X86_REG_SP,   X86_REG_BP,
		X86_REG_SI,   X86_REG_DI,   X86_REG_R8W,  X86_REG_R9W,	X86_REG_R10W, X86_REG_R11W,
		X86_REG_R12W, X86_REG_R13W, X86_REG_R14W, X86_REG_R15W,
	};
	bool ignored;

	for (unsigned int i = 0; i < GPR_COUNT; i++)
		if (low[i] == reg)
			return (uint8_t)i;
	return gpr_of(reg, &ignored);
}

/*
 * Returns whether the index is a vector register. capstone 4 reports a scatter's index as a
 * general register, so the name decides.
 */
static bool has_vector_index(const cs_insn *in, unsigned int reg)
{
	return strstr(in->mnemonic, "gather") || strstr(in->mnemonic, "scatter") ||
	       (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31) ||
	       (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31) ||
	       (reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31);
}

/* -- facts that capstone does not report --------------------------------------------------- */

/* Returns whether the instruction has a memory operand that it does not access. */
static bool takes_address_only(unsigned int id)
{
	switch (id) {
	case X86_INS_LEA:
	case X86_INS_NOP:
	case X86_INS_INVLPG:
		return true;
	default:
		return false;
	}
}

/*
 * Returns the size of areas for which capstone reports none. XSAVE's is not in the instruction: 0.
 */
static unsigned int size_of(unsigned int id, unsigned int size)
{
	switch (id) {
	case X86_INS_FXSAVE:
	case X86_INS_FXSAVE64:
	case X86_INS_FXRSTOR:
	case X86_INS_FXRSTOR64:
		return 512;
	case X86_INS_XSAVE:
	case X86_INS_XSAVE64:
	case X86_INS_XSAVEC:
	case X86_INS_XSAVEC64:
	case X86_INS_XSAVEOPT:
	case X86_INS_XSAVEOPT64:
	case X86_INS_XSAVES:
	case X86_INS_XSAVES64:
	case X86_INS_XRSTOR:
	case X86_INS_XRSTOR64:
	case X86_INS_XRSTORS:
	case X86_INS_XRSTORS64:
		return 0;
	default:
		return size;
	}
}

static bool is_bit_string(unsigned int id)
{
	return id == X86_INS_BT || id == X86_INS_BTC || id == X86_INS_BTR || id == X86_INS_BTS;
}

#define R MEMOP_READ
#define W MEMOP_WRITE
#define RW (MEMOP_READ | MEMOP_WRITE)
/*
 * Corrections of what capstone 4 reports for memory operands; 0: as reported. CLFLUSH and the like
 * are ordered and fault as loads.
 */
static const uint8_t access_table[X86_INS_ENDING] = {
	[X86_INS_CMP] = R,	   [X86_INS_TEST] = R,	     [X86_INS_BT] = R,
	[X86_INS_PREFETCHT0] = R,  [X86_INS_PREFETCHT1] = R, [X86_INS_PREFETCHT2] = R,
	[X86_INS_PREFETCHNTA] = R, [X86_INS_PREFETCHW] = R,  [X86_INS_PREFETCH] = R,
	[X86_INS_CLFLUSH] = R,	   [X86_INS_CLFLUSHOPT] = R, [X86_INS_CLWB] = R,
	[X86_INS_FLD] = R,	   [X86_INS_FILD] = R,	     [X86_INS_FLDCW] = R,
	[X86_INS_FLDENV] = R,	   [X86_INS_FRSTOR] = R,     [X86_INS_FXRSTOR] = R,
	[X86_INS_FXRSTOR64] = R,   [X86_INS_XRSTOR] = R,     [X86_INS_XRSTOR64] = R,
	[X86_INS_XRSTORS] = R,	   [X86_INS_XRSTORS64] = R,  [X86_INS_LDMXCSR] = R,
	[X86_INS_VLDMXCSR] = R,	   [X86_INS_LGDT] = R,	     [X86_INS_LIDT] = R,
	[X86_INS_LLDT] = R,	   [X86_INS_LTR] = R,	     [X86_INS_LMSW] = R,
	[X86_INS_VERR] = R,	   [X86_INS_VERW] = R,	     [X86_INS_INVPCID] = R,
	[X86_INS_INVEPT] = R,	   [X86_INS_INVVPID] = R,    [X86_INS_PUSH] = R,
	[X86_INS_CALL] = R,	   [X86_INS_LCALL] = R,	     [X86_INS_JMP] = R,
	[X86_INS_LJMP] = R,	   [X86_INS_IMUL] = R,	     [X86_INS_MUL] = R,
	[X86_INS_DIV] = R,	   [X86_INS_IDIV] = R,	     [X86_INS_FADD] = R,
	[X86_INS_FSUB] = R,	   [X86_INS_FSUBR] = R,	     [X86_INS_FMUL] = R,
	[X86_INS_FDIV] = R,	   [X86_INS_FDIVR] = R,	     [X86_INS_FCOM] = R,
	[X86_INS_FCOMP] = R,	   [X86_INS_FIADD] = R,	     [X86_INS_FISUB] = R,
	[X86_INS_FIMUL] = R,	   [X86_INS_FIDIV] = R,	     [X86_INS_FICOM] = R,
	[X86_INS_FICOMP] = R,	   [X86_INS_POP] = W,	     [X86_INS_FST] = W,
	[X86_INS_FSTP] = W,	   [X86_INS_FIST] = W,	     [X86_INS_FISTP] = W,
	[X86_INS_FISTTP] = W,	   [X86_INS_FNSTCW] = W,     [X86_INS_FNSTSW] = W,
	[X86_INS_FNSTENV] = W,	   [X86_INS_FNSAVE] = W,     [X86_INS_FXSAVE] = W,
	[X86_INS_FXSAVE64] = W,	   [X86_INS_XSAVE] = W,	     [X86_INS_XSAVE64] = W,
	[X86_INS_XSAVEC] = W,	   [X86_INS_XSAVEC64] = W,   [X86_INS_XSAVEOPT] = W,
	[X86_INS_XSAVEOPT64] = W,  [X86_INS_XSAVES] = W,     [X86_INS_XSAVES64] = W,
	[X86_INS_STMXCSR] = W,	   [X86_INS_VSTMXCSR] = W,   [X86_INS_SGDT] = W,
	[X86_INS_SIDT] = W,	   [X86_INS_SLDT] = W,	     [X86_INS_STR] = W,
	[X86_INS_SMSW] = W,	   [X86_INS_MOVNTI] = W,     [X86_INS_MOVNTQ] = W,
	[X86_INS_MOVNTDQ] = W,	   [X86_INS_MOVNTPS] = W,    [X86_INS_MOVNTPD] = W,
	[X86_INS_VMOVNTDQ] = W,	   [X86_INS_VMOVNTPS] = W,   [X86_INS_VMOVNTPD] = W,
	[X86_INS_SETA] = W,	   [X86_INS_SETAE] = W,	     [X86_INS_SETB] = W,
	[X86_INS_SETBE] = W,	   [X86_INS_SETE] = W,	     [X86_INS_SETNE] = W,
	[X86_INS_SETG] = W,	   [X86_INS_SETGE] = W,	     [X86_INS_SETL] = W,
	[X86_INS_SETLE] = W,	   [X86_INS_SETO] = W,	     [X86_INS_SETNO] = W,
	[X86_INS_SETP] = W,	   [X86_INS_SETNP] = W,	     [X86_INS_SETS] = W,
	[X86_INS_SETNS] = W,	   [X86_INS_INC] = RW,	     [X86_INS_DEC] = RW,
	[X86_INS_NEG] = RW,	   [X86_INS_NOT] = RW,	     [X86_INS_XCHG] = RW,
	[X86_INS_XADD] = RW,	   [X86_INS_CMPXCHG] = RW,   [X86_INS_CMPXCHG8B] = RW,
	[X86_INS_CMPXCHG16B] = RW, [X86_INS_BTC] = RW,	     [X86_INS_BTR] = RW,
	[X86_INS_BTS] = RW,	   [X86_INS_SHL] = RW,	     [X86_INS_SAL] = RW,
	[X86_INS_SHR] = RW,	   [X86_INS_SAR] = RW,	     [X86_INS_ROL] = RW,
	[X86_INS_ROR] = RW,	   [X86_INS_RCL] = RW,	     [X86_INS_RCR] = RW,
	[X86_INS_SHLD] = RW,	   [X86_INS_SHRD] = RW,
};
#undef R
#undef W
#undef RW

static uint8_t access_of(unsigned int id)
{
	return id < X86_INS_ENDING ? access_table[id] : 0;
}

/* Returns whether this instruction writes its first operand if that is memory. */
static bool stores_first(unsigned int id)
{
	switch (id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVBE:
	case X86_INS_MOVQ:
	case X86_INS_MOVD:
	case X86_INS_MOVSS:
	case X86_INS_MOVSD:
	case X86_INS_MOVAPS:
	case X86_INS_MOVAPD:
	case X86_INS_MOVUPS:
	case X86_INS_MOVUPD:
	case X86_INS_MOVDQA:
	case X86_INS_MOVDQU:
	case X86_INS_MOVLPS:
	case X86_INS_MOVHPS:
	case X86_INS_MOVLPD:
	case X86_INS_MOVHPD:
	case X86_INS_VMOVQ:
	case X86_INS_VMOVD:
	case X86_INS_VMOVSS:
	case X86_INS_VMOVSD:
	case X86_INS_VMOVAPS:
	case X86_INS_VMOVAPD:
	case X86_INS_VMOVUPS:
	case X86_INS_VMOVUPD:
	case X86_INS_VMOVDQA:
	case X86_INS_VMOVDQU:
	case X86_INS_VMOVLPS:
	case X86_INS_VMOVHPS:
	case X86_INS_VMOVLPD:
	case X86_INS_VMOVHPD:
	case X86_INS_VMOVDQA32:
	case X86_INS_VMOVDQA64:
	case X86_INS_VMOVDQU8:
	case X86_INS_VMOVDQU16:
	case X86_INS_VMOVDQU32:
	case X86_INS_VMOVDQU64:
	case X86_INS_VEXTRACTF128:
	case X86_INS_VEXTRACTI128:
	case X86_INS_PEXTRB:
	case X86_INS_PEXTRD:
	case X86_INS_PEXTRQ:
	case X86_INS_PEXTRW:
	case X86_INS_EXTRACTPS:
	case X86_INS_VMASKMOVPS:
	case X86_INS_VMASKMOVPD:
	case X86_INS_VPMASKMOVD:
	case X86_INS_VPMASKMOVQ:
	case X86_INS_VCOMPRESSPS:
	case X86_INS_VCOMPRESSPD:
	case X86_INS_VPCOMPRESSD:
	case X86_INS_VPCOMPRESSQ:
		return true;
	default:
		return false;
	}
}

static bool changes_first(unsigned int id)
{
	return id == X86_INS_ADD || id == X86_INS_ADC || id == X86_INS_SUB || id == X86_INS_SBB ||
	       id == X86_INS_AND || id == X86_INS_OR || id == X86_INS_XOR;
}

/* -- implicit operands ------------------------------------------------------------------- */

static void memop_add(struct memop_insn *i, struct memop op)
{
	if (i->n < MEMOP_MAX)
		i->op[i->n++] = op;
}

static void add_stack(struct memop_insn *i, uint8_t base, int64_t disp, unsigned int size,
		      uint8_t access)
{
	memop_add(i, (struct memop){ .base = base,
				     .index = MEMOP_NO_REG,
				     .bit_reg = MEMOP_NO_REG,
				     .scale = 1,
				     .disp = disp,
				     .size = (uint16_t)size,
				     .access = access,
				     .implicit = true });
}

/*
 * Returns the width of push and pop: 64 bits, or 16 with 66h; capstone shows it in an operand or
 * the prefix.
 */
static unsigned int stack_width(const cs_x86 *x)
{
	return x->prefix[2] == 0x66 && !(x->rex & 8) ? 2 : 8;
}

static void add_push(struct memop_insn *i, unsigned int size)
{
	add_stack(i, GPR_RSP, -(int64_t)size, size, MEMOP_WRITE);
}

static uint8_t segment_prefix(const cs_x86 *x)
{
	return x->prefix[1] == X86_PREFIX_FS   ? MEMOP_FS
	       : x->prefix[1] == X86_PREFIX_GS ? MEMOP_GS
					       : MEMOP_FLAT;
}

static void add_implicit(struct memop_insn *i, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	unsigned int width = stack_width(x);

	switch (in->id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHF:
	case X86_INS_PUSHFQ:
		add_push(i, width);
		break;
	case X86_INS_POP:
		/* An address relative to rsp uses the value after the pop (SDM vol. 2, POP). */
		for (unsigned int k = 0; k < i->n; k++)
			if (i->op[k].base == GPR_RSP)
				i->op[k].disp += width;
		add_stack(i, GPR_RSP, 0, width, MEMOP_READ);
		break;
	case X86_INS_POPF:
	case X86_INS_POPFQ:
		add_stack(i, GPR_RSP, 0, width, MEMOP_READ);
		break;
	case X86_INS_CALL: /* near calls push 64 bits, regardless of the prefixes */
		add_push(i, 8);
		break;
	case X86_INS_RET:
		add_stack(i, GPR_RSP, 0, 8, MEMOP_READ);
		break;
	case X86_INS_LCALL:
		add_push(i, x->rex & 8 ? 16 : 8);
		break;
	case X86_INS_RETF:
		add_stack(i, GPR_RSP, 0, 8, MEMOP_READ);
		break;
	case X86_INS_RETFQ:
		add_stack(i, GPR_RSP, 0, 16, MEMOP_READ);
		break;
	case X86_INS_IRETQ:
		add_stack(i, GPR_RSP, 0, 40, MEMOP_READ);
		break;
	case X86_INS_IRETD:
		add_stack(i, GPR_RSP, 0, 20, MEMOP_READ);
		break;
	case X86_INS_LEAVE:
		add_stack(i, GPR_RBP, 0, width, MEMOP_READ);
		break;
	case X86_INS_ENTER:
		add_push(i, width);
		break;
	case X86_INS_XLATB:
		i->n = 0;
		add_stack(i, GPR_RBX, 0, 1, MEMOP_READ);
		i->op[0].index = GPR_RAX;
		i->op[0].index_low8 = true;
		i->op[0].addr32 = x->addr_size == 4;
		i->op[0].segment = segment_prefix(x);
		break;
	case X86_INS_MASKMOVQ:
	case X86_INS_MASKMOVDQU:
	case X86_INS_VMASKMOVDQU:
		i->n = 0;
		add_stack(i, GPR_RDI, 0, in->id == X86_INS_MASKMOVQ ? 8 : 16, MEMOP_WRITE);
		i->op[0].addr32 = x->addr_size == 4;
		break;
	default:
		break;
	}
}

/* -- string instructions --------------------------------------------------------------- */

enum string_kind { STRING_NOT, STRING_MOVE, STRING_STORE, STRING_LOAD, STRING_BOTH };

/*
 * Returns whether it is a string instruction, by opcode, because some of their names are those of
 * SSE instructions too. *src and *dst receive the accesses through rsi and rdi.
 */
static bool is_string(const cs_insn *in, uint8_t *src, uint8_t *dst, unsigned int *size)
{
	const cs_x86 *x = &in->detail->x86;
	uint8_t op = x->opcode[0];
	unsigned int wide = x->rex & 8 ? 8 : x->prefix[2] == 0x66 ? 2 : 4;

	/* VEX and EVEX use opcodes of other maps. */
	if (x->encoding.modrm_offset || x->encoding.imm_offset ||
	    (op >= 0xf0 || op == 0x0f || in->bytes[0] == 0xc4 || in->bytes[0] == 0xc5 ||
	     in->bytes[0] == 0x62))
		return false;
	*src = *dst = 0;
	*size = op & 1 ? wide : 1;
	switch (op & 0xfe) {
	case 0xa4: /* movs */
		*src = MEMOP_READ;
		*dst = MEMOP_WRITE;
		return true;
	case 0xa6: /* cmps */
		*src = *dst = MEMOP_READ;
		return true;
	case 0xaa: /* stos */
		*dst = MEMOP_WRITE;
		return true;
	case 0xac: /* lods */
		*src = MEMOP_READ;
		return true;
	case 0xae: /* scas */
		*dst = MEMOP_READ;
		return true;
	case 0x6c: /* ins; no 64-bit form */
		*dst = MEMOP_WRITE;
		*size = *size == 8 ? 4 : *size;
		return true;
	case 0x6e: /* outs */
		*src = MEMOP_READ;
		*size = *size == 8 ? 4 : *size;
		return true;
	default:
		return false;
	}
}

static void add_string(struct memop_insn *i, const cs_insn *in, uint8_t src, uint8_t dst,
		       unsigned int size)
{
	const cs_x86 *x = &in->detail->x86;
	bool addr32 = x->addr_size == 4;

	i->n = 0;
	i->repeated = x->prefix[0] == X86_PREFIX_REP || x->prefix[0] == X86_PREFIX_REPNE;
	i->counter32 = addr32;
	if (src) {
		add_stack(i, GPR_RSI, 0, size, src);
		i->op[i->n - 1].segment = segment_prefix(x);
		i->op[i->n - 1].addr32 = addr32;
	}
	if (dst) {
		add_stack(i, GPR_RDI, 0, size, dst);
		i->op[i->n - 1].addr32 = addr32;
	}
}

/* -- explicit operands ----------------------------------------------------------------- */

static uint8_t explicit_access(const cs_insn *in, const cs_x86_op *op, unsigned int at)
{
	uint8_t access = access_of(in->id);

	/* The memory operand of imul and the like is never written. */
	if (access)
		return access;
	if (stores_first(in->id))
		return at == 0 ? MEMOP_WRITE : MEMOP_READ;
	if (changes_first(in->id))
		return at == 0 ? MEMOP_READ | MEMOP_WRITE : MEMOP_READ;
	access = (op->access & CS_AC_READ ? MEMOP_READ : 0) |
		 (op->access & CS_AC_WRITE ? MEMOP_WRITE : 0);
	/* Otherwise a memory operand that is not the first one is a source. */
	return at > 0 ? MEMOP_READ : access;
}

/* Returns false if its address is not in general registers. */
static bool add_explicit(struct memop_insn *i, const cs_insn *in, unsigned int at)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = &x->operands[at];
	struct memop m = {
		.disp = op->mem.disp,
		.size = (uint16_t)size_of(in->id, op->size),
		.base = MEMOP_NO_REG,
		.index = MEMOP_NO_REG,
		.scale = op->mem.scale ? (uint8_t)op->mem.scale : 1,
		.bit_reg = MEMOP_NO_REG,
		.access = explicit_access(in, op, at),
		.addr32 = x->addr_size == 4,
	};

	if (has_vector_index(in, op->mem.index))
		return false;
	if (op->mem.base == X86_REG_RIP || op->mem.base == X86_REG_EIP)
		m.base = MEMOP_RIP;
	else if (op->mem.base)
		m.base = gpr_of(op->mem.base, &m.addr32);
	if (op->mem.index)
		m.index = gpr_of(op->mem.index, &m.addr32);
	if (op->mem.segment == X86_REG_FS)
		m.segment = MEMOP_FS;
	else if (op->mem.segment == X86_REG_GS)
		m.segment = MEMOP_GS;
	if (is_bit_string(in->id) && at == 0 && x->op_count > 1 &&
	    x->operands[1].type == X86_OP_REG)
		m.bit_reg = bit_gpr_of(x->operands[1].reg);
	memop_add(i, m);
	return true;
}

static void memop_take(struct memop_insn *i, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	uint8_t src, dst;
	unsigned int size;

	i->len = (uint8_t)in->size;
	i->why = MEMOP_OK;
	if (is_string(in, &src, &dst, &size)) {
		add_string(i, in, src, dst, size);
		return;
	}
	if (takes_address_only(in->id))
		return;
	for (unsigned int k = 0; k < x->op_count; k++) {
		if (x->operands[k].type != X86_OP_MEM)
			continue;
		i->locked |= x->prefix[0] == X86_PREFIX_LOCK || in->id == X86_INS_XCHG;
		if (!add_explicit(i, in, k)) {
			i->why = MEMOP_VECTOR_INDEX;
			i->n = 0;
			return;
		}
	}
	add_implicit(i, in);
}

/* Returns whether the bytes can be the beginning of a longer instruction. */
static bool is_cut(struct memop_decoder *d, const uint8_t *bytes, size_t len)
{
	uint8_t whole[SAMPLE_MAX_INSN] = { 0 };
	const uint8_t *code = whole;
	size_t left = sizeof(whole) - 1;
	uint64_t at = 0;

	memcpy(whole, bytes, len);
	return len < left &&
	       d->x86.cs->cs_disasm_iter(d->x86.handle, &code, &left, &at, d->x86.insn) &&
	       d->x86.insn->size > len;
}

const struct memop_insn *memop_decode(struct memop_decoder *d, const uint8_t *bytes, size_t len)
{
	uint64_t word[2] = { 0 }, at = 0;
	const uint8_t *code = bytes;
	struct cached *c;
	size_t left;

	if (len > SAMPLE_MAX_INSN - 1)
		len = SAMPLE_MAX_INSN - 1;
	if (len)
		memcpy(word, bytes, len);
	c = &d->cache[((word[0] * 0x9e3779b97f4a7c15u) ^ (word[1] * 0xc2b2ae3d27d4eb4fu)) >> 52 &
		      (CACHE_SLOTS - 1)];
	if (len && c->given == len && !memcmp(c->bytes, word, sizeof(word)))
		return &c->insn;
	memset(c, 0, sizeof(*c));
	memcpy(c->bytes, word, sizeof(word));
	c->given = (uint8_t)len;
	c->insn.why = MEMOP_NO_BYTES;
	if (!len)
		return &c->insn;
	left = len;
	if (d->x86.cs->cs_disasm_iter(d->x86.handle, &code, &left, &at, d->x86.insn))
		memop_take(&c->insn, d->x86.insn);
	else if (!is_cut(d, bytes, len))
		c->insn.why = MEMOP_UNKNOWN_INSN;
	return &c->insn;
}

/* -- addresses --------------------------------------------------------------------------- */

bool memop_touches(const struct memop_insn *i, const struct sample_regs *r)
{
	uint64_t count = r->gpr[GPR_RCX];

	if (i->counter32)
		count = (uint32_t)count;
	return i->n && (!i->repeated || count);
}

/*
 * Returns the byte offset of the word of `size` bytes that contains a signed bit offset (SDM vol.
 * 2, BT and 3.1.1.9).
 */
static int64_t bit_word(const struct memop *op, const struct sample_regs *r)
{
	uint64_t v = r->gpr[op->bit_reg];
	int64_t bits = op->size == 8 ? (int64_t)v : op->size == 4 ? (int32_t)v : (int16_t)v;
	unsigned int shift = op->size == 8 ? 6 : op->size == 4 ? 5 : 4;

	return (bits >> shift) * op->size;
}

uint64_t memop_address(const struct memop_insn *i, const struct memop *op,
		       const struct sample_regs *r)
{
	uint64_t va = (uint64_t)op->disp;

	if (op->base == MEMOP_RIP)
		va += r->rip + i->len;
	else if (op->base < GPR_COUNT)
		va += r->gpr[op->base];
	if (op->index < GPR_COUNT) {
		uint64_t index = r->gpr[op->index];

		va += (op->index_low8 ? (uint8_t)index : index) * op->scale;
	}
	if (op->bit_reg < GPR_COUNT)
		va += (uint64_t)bit_word(op, r);
	if (op->addr32)
		va = (uint32_t)va;
	if (op->segment == MEMOP_FS)
		va += r->fs_base;
	else if (op->segment == MEMOP_GS)
		va += r->gs_base;
	return va;
}
