/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A unified kernel image as a whole file, and as the beginning of a longer one: what is said to
 * be in it lies inside; then its texts, and the menu's entry that they make.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/bootdisk/bls.h"
#include "vmm/bootdisk/image_kind.h"
#include "vmm/bootdisk/osrel.h"
#include "vmm/image/uki.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void require(int ok)
{
	if (!ok)
		abort();
}

static int parse(struct uki *u, const uint8_t *data, size_t size, uint64_t len)
{
	struct err e = { 0 };
	int ret;

	memset(u, 0xee, sizeof(*u));
	ret = uki_parse(u, "input", data, size, len, &e);
	if (ret) {
		require(e.code == (ret == -ENOENT ? 0 : -ret) && !strchr(e.text, '\n'));
		return ret;
	}
	require(u->at[UKI_LINUX].len > 0);
	for (unsigned int i = 0; i < UKI_SECTIONS; i++) {
		require(u->at[i].off <= len && u->at[i].len <= len - u->at[i].off);
		require(i < UKI_CMDLINE || u->at[i].len <= UKI_MAX_TEXT);
	}
	return 0;
}

static void use_texts(const struct uki *u, const uint8_t *data)
{
	const char *osrel = (const char *)data + u->at[UKI_OSREL].off;
	char value[OSREL_MAX_VALUE];
	struct bls_entry entry;
	struct buf cmdline;

	buf_init(&cmdline);
	uki_text(data + u->at[UKI_CMDLINE].off, (size_t)u->at[UKI_CMDLINE].len, &cmdline);
	require(cmdline.len && strlen((const char *)cmdline.data) == cmdline.len - 1);
	for (size_t i = 0; i + 1 < cmdline.len; i++)
		require(cmdline.data[i] >= ' ');
	osrel_value(osrel, (size_t)u->at[UKI_OSREL].len, "PRETTY_NAME", value);
	require(memchr(value, 0, sizeof(value)) != NULL);
	if (bls_from_uki(&entry, "input+1.efi", "/input",
			 (struct bytes){ osrel, (size_t)u->at[UKI_OSREL].len },
			 (const char *)cmdline.data, NULL))
		abort();
	require(bls_compare(&entry, &entry) == 0 && bls_matches(&entry, "input.EFI"));
	bls_deinit(&entry);
	buf_deinit(&cmdline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = size < UKI_HEAD ? size : UKI_HEAD;
	struct uki u, longer;
	int ret;

	(void)image_kind(data, size);
	ret = parse(&u, data, head, size);
	if (!ret)
		use_texts(&u, data);
	/* A valid image stays valid if more bytes follow. */
	if (parse(&longer, data, head, UINT64_MAX))
		require(ret != 0);
	return 0;
}
