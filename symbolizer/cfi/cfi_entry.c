/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/cfi/cfi_entry.h"

#include <string.h>

#define EXTENDED 0xffffffffu
#define DEBUG_CIE32 0xffffffffu
#define MAX_AUGMENTATION 16u
#define RETURN_ADDRESS 16u /* number of the return address in all tables for x86-64 */

/* Reads the number itself; the lower four bits of the encoding are its form. */
static uint64_t pointer_number(struct cursor *c, uint8_t encoding, bool *known)
{
	switch (encoding & 0x0f) {
	case 0x00: /* size of an address */
	case 0x04:
	case 0x0c:
		return cursor_u64(c);
	case 0x01:
		return cfi_uleb(c);
	case 0x02:
		return cursor_u16(c);
	case 0x03:
		return cursor_u32(c);
	case 0x09:
		return (uint64_t)cfi_sleb(c);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
	default:
		*known = false;
		return 0;
	}
}

bool cfi_pointer(struct cursor *c, uint8_t encoding, const struct cfi_base *base, uint64_t *out)
{
	uint64_t at = base->base_va + c->pos, v;
	bool known = encoding != CFI_PE_OMIT && !(encoding & CFI_PE_INDIRECT);

	v = pointer_number(c, encoding, &known);
	switch (encoding & CFI_PE_APPLICATION) {
	case 0:
		break;
	case CFI_PE_PCREL:
		v += at;
		break;
	case CFI_PE_DATAREL:
		known = known && base->data_va;
		v += base->data_va;
		break;
	default:
		known = false;
	}
	if (!known || c->bad)
		return false;
	*out = v;
	return true;
}

/* The head of an entry, and its body. */
struct body {
	struct cursor c; /* after the length */
	uint64_t va;	 /* address of the cursor's first byte */
	uint64_t next;	 /* address after the entry */
	uint64_t id, id_va;
	bool wide;
};

static enum cfi_found entry_body(struct body *b, const struct cfi_place *p, uint64_t va,
				 uint8_t *buf, size_t max)
{
	const struct cfi_source *src = p->src;
	uint32_t len32 = 0;
	uint64_t len;

	if (src->read(src->ctx, va, &len32, sizeof(len32)) != sizeof(len32))
		return CFI_HOLE;
	b->va = va + 4;
	len = len32;
	b->wide = len32 == EXTENDED;
	if (b->wide) {
		if (src->read(src->ctx, b->va, &len, sizeof(len)) != sizeof(len))
			return CFI_HOLE;
		b->va += 8;
	}
	if (len == 0)
		return CFI_NONE;
	if (len > max || len < 5)
		return CFI_BAD;
	if (src->read(src->ctx, b->va, buf, (size_t)len) != len)
		return CFI_HOLE;
	b->next = b->va + len;
	b->id_va = b->va;
	cursor_init(&b->c, buf, (size_t)len);
	/* In .eh_frame it has four bytes, regardless of the length's form. */
	b->id = b->wide && p->kind == CFI_DEBUG_FRAME ? cursor_u64(&b->c) : cursor_u32(&b->c);
	return b->c.bad ? CFI_BAD : CFI_FOUND;
}

static bool body_is_cie(const struct body *b, enum cfi_kind kind)
{
	if (kind == CFI_EH_FRAME)
		return b->id == 0;
	return b->id == (b->wide ? UINT64_MAX : DEBUG_CIE32);
}

/*
 * Parses the data that the letters after 'z' describe. An unknown letter ends it: the length says
 * where to continue.
 */
static bool cie_letters(struct cfi_cie *cie, struct body *b, const char *letter)
{
	uint64_t len = cfi_uleb(&b->c), skipped;
	struct cfi_base base = { 0 };
	struct cursor data;
	uint8_t encoding;

	data = cursor_window(&b->c, b->c.pos, len);
	cursor_skip(&b->c, len);
	for (; *letter && !data.bad; letter++) {
		switch (*letter) {
		case 'R':
			cie->pointer = cursor_u8(&data);
			break;
		case 'L':
			cursor_u8(&data);
			break;
		case 'P':
			/* The address of the personality routine is skipped, in any encoding. */
			encoding = cursor_u8(&data);
			if (encoding != CFI_PE_OMIT &&
			    !cfi_pointer(&data, encoding & 0x0f, &base, &skipped))
				return false;
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			return true;
		}
	}
	return !data.bad;
}

static bool cie_parse(struct cfi_cie *cie, struct body *b)
{
	char letters[MAX_AUGMENTATION + 1];
	uint8_t version = cursor_u8(&b->c);
	uint64_t ra;
	unsigned int n = 0;

	*cie = (struct cfi_cie){ 0 };
	while (n < MAX_AUGMENTATION && (letters[n] = (char)cursor_u8(&b->c)))
		n++;
	letters[n < MAX_AUGMENTATION ? n : 0] = '\0';
	if ((version != 1 && version != 3 && version != 4) || n == MAX_AUGMENTATION)
		return false;
	/* Sizes of an address and of a segment selector. */
	if (version == 4 && (cursor_u8(&b->c) != 8 || cursor_u8(&b->c) != 0))
		return false;
	cie->code_align = cfi_uleb(&b->c);
	cie->data_align = cfi_sleb(&b->c);
	ra = version == 1 ? cursor_u8(&b->c) : cfi_uleb(&b->c);
	cie->has_data = letters[0] == 'z';
	if (ra != RETURN_ADDRESS || (n && !cie->has_data) ||
	    (cie->has_data && !cie_letters(cie, b, letters + 1)))
		return false;
	cie->insns = cursor_window(&b->c, b->c.pos, cursor_left(&b->c));
	return !b->c.bad;
}

/* Returns the address of an FDE's CIE. */
static uint64_t cie_of(const struct body *b, enum cfi_kind kind)
{
	return kind == CFI_EH_FRAME ? b->id_va - b->id : b->id;
}

enum cfi_found cfi_entry_read(struct cfi_entry *x, const struct cfi_place *p, uint64_t va)
{
	struct cfi_base base = { 0 };
	struct body b, c;
	enum cfi_found why = entry_body(&b, p, va, x->bytes, sizeof(x->bytes));
	uint64_t len;

	if (why != CFI_FOUND)
		return why;
	x->next = b.next;
	x->is_cie = body_is_cie(&b, p->kind);
	if (x->is_cie)
		return CFI_FOUND;
	why = entry_body(&c, p, cie_of(&b, p->kind), x->cie_bytes, sizeof(x->cie_bytes));
	if (why != CFI_FOUND)
		return why == CFI_NONE ? CFI_BAD : why;
	if (!body_is_cie(&c, p->kind) || !cie_parse(&x->cie, &c))
		return CFI_BAD;
	base.base_va = b.va;
	if (!cfi_pointer(&b.c, x->cie.pointer, &base, &x->start) ||
	    !cfi_pointer(&b.c, x->cie.pointer & 0x0f, &base, &len) || len > UINT64_MAX - x->start)
		return CFI_BAD;
	x->end = x->start + len;
	if (x->cie.has_data)
		cursor_skip(&b.c, cfi_uleb(&b.c));
	x->insns_va = b.va + b.c.pos;
	x->insns = cursor_window(&b.c, b.c.pos, cursor_left(&b.c));
	return b.c.bad ? CFI_BAD : CFI_FOUND;
}
