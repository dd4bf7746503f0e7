/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a symbol file belongs to a kernel: wrong names are worse than none. */
#include "symbolizer/kernel/symfile.h"

#include "symbolizer/kernel/symident.h"
#include "symbolizer/kernel/symverify_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BANNER_PREFIX "Linux version "
/* Of the direct calls, this many per cent must lead to symbols. */
#define MIN_HITS 95u
/* With fewer calls than this the share says nothing. */
#define MIN_CALLS 8u

struct hex_id {
	char text[2 * KIMAGE_BUILD_ID_MAX + 1];
};

static struct hex_id hex_id(const uint8_t *id, unsigned int len)
{
	struct hex_id h = { { 0 } };

	for (unsigned int i = 0; i < len && i < KIMAGE_BUILD_ID_MAX; i++)
		snprintf(h.text + 2 * i, 3, "%02x", id[i]);
	return h;
}

/* Some words on what each side is, for messages: the version out of a banner. */
static void version_of(const char *banner, char *buf, size_t size)
{
	const char *v = banner;
	size_t n;

	if (!strncmp(v, BANNER_PREFIX, strlen(BANNER_PREFIX)))
		v += strlen(BANNER_PREFIX);
	n = strcspn(v, " ");
	snprintf(buf, size, "%.*s", (int)(n < 64 ? n : 64), *v ? v : "?");
}

static int verify_elf(const struct symfile *f, const char *name, const struct kimage *k,
		      const char *kname, struct err *e)
{
	char fv[72], kv[72];
	uint64_t hash;

	version_of(f->banner, fv, sizeof(fv));
	version_of(k->banner, kv, sizeof(kv));
	if (f->build_id_len && k->build_id_len) {
		if (f->build_id_len == k->build_id_len &&
		    !memcmp(f->build_id, k->build_id, k->build_id_len))
			return 0;
		return err_set(e, ESTALE,
			       "%s (%s, build id %s) is not the symbol file of %s (%s, "
			       "build id %s)",
			       name, fv, hex_id(f->build_id, f->build_id_len).text, kname, kv,
			       hex_id(k->build_id, k->build_id_len).text);
	}
	if (f->text_va != k->text || f->text_len == 0 ||
	    symident_text_hash(k, f->text_len, &hash) != f->text_len || hash != f->text_hash)
		return err_set(e, ESTALE,
			       "%s (%s, text at 0x%llx) is not the symbol file of %s (%s, text "
			       "at 0x%llx): there is no build id on both sides, and their text "
			       "bytes differ",
			       name, fv, (unsigned long long)f->text_va, kname, kv,
			       (unsigned long long)k->text);
	return 0;
}

/* _text, _etext and _end, where the file names them. */
static int verify_extent(const struct symtab *t, const char *name, const struct kimage *k,
			 const char *kname, struct err *e)
{
	const struct symbol *text = symtab_find(t, "_text"), *etext = symtab_find(t, "_etext"),
			    *end = symtab_find(t, "_end");
	uint64_t moved;

	if (text && text->addr != k->text) {
		moved = text->addr - k->text;
		/* KASLR moves by multiples of 2 MiB (CONFIG_PHYSICAL_ALIGN's default). */
		if (moved % (2u << 20) == 0 && end && end->addr - moved == k->end)
			return err_set(
				e, ESTALE,
				"%s: its addresses are moved by 0x%llx against %s: it "
				"was read from a running kernel with KASLR; give the System.map of "
				"the build",
				name, (unsigned long long)moved, kname);
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _text is 0x%llx there, 0x%llx "
			       "in the image",
			       name, kname, (unsigned long long)text->addr,
			       (unsigned long long)k->text);
	}
	if (etext && (etext->addr <= k->text || etext->addr > k->etext))
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _etext is 0x%llx there, but the "
			       "image has code from 0x%llx to 0x%llx",
			       name, kname, (unsigned long long)etext->addr,
			       (unsigned long long)k->text, (unsigned long long)k->etext);
	/* The image's end is known to the page. */
	if (end && ((end->addr + 4095) & ~4095ull) != k->end)
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s: _end is 0x%llx there, 0x%llx "
			       "in the image",
			       name, kname, (unsigned long long)end->addr,
			       (unsigned long long)k->end);
	return 0;
}

static int verify_text(const struct symtab *t, const char *name, const struct kimage *k,
		       const char *kname, struct err *e)
{
	const struct symbol *banner = symtab_find(t, "linux_banner");
	char version[72], there[sizeof(BANNER_PREFIX) - 1];
	struct symident_calls n;
	int ret = verify_extent(t, name, k, kname, e);

	if (ret < 0)
		return ret;
	version_of(k->banner, version, sizeof(version));
	if (banner && (kimage_read(k, banner->addr, there, sizeof(there)) < 0 ||
		       memcmp(there, BANNER_PREFIX, sizeof(there)) != 0))
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s (%s): it has linux_banner at "
			       "0x%llx, where the image has something else",
			       name, kname, version, (unsigned long long)banner->addr);
	n = symident_count_calls(k, t);
	if (n.calls >= MIN_CALLS && n.hits * 100ull < n.calls * (unsigned long long)MIN_HITS)
		return err_set(e, ESTALE,
			       "%s is not the symbol file of %s (%s): of %u calls in the image "
			       "only %u lead to its symbols",
			       name, kname, version, n.calls, n.hits);
	if (n.calls < MIN_CALLS && !banner && !symtab_find(t, "_text"))
		return err_set(e, ESTALE,
			       "%s: nothing shows that it belongs to %s: no linux_banner, no "
			       "_text, and only %u direct calls in the image",
			       name, kname, n.calls);
	return 0;
}

int symfile_verify(const struct symfile *f, const char *name, const struct kimage *k,
		   const char *kname, struct err *e)
{
	if (f->kind == SYMFILE_ELF)
		return verify_elf(f, name, k, kname, e);
	if (!k->banner[0])
		return symverify_map(f, name, k, kname, e);
	return verify_text(f->symbols, name, k, kname, e);
}
