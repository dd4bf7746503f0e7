/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/plugin/qemu_api.h"

#include <string.h>

static struct qemu_callbacks callbacks;

/* -- with an id: up to version 6 --------------------------------------------------------- */

static void id_vcpu_begins(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	(void)vcpu;
	callbacks.vcpu_begins();
}

static void id_block_is_made(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	callbacks.block_is_made(tb);
}

static void id_ends(qemu_plugin_id_t id, void *ctx)
{
	(void)id;
	(void)ctx;
	callbacks.ends();
}

/* -- with a pointer: from version 7 on --------------------------------------------------- */

static void pointer_vcpu_begins(unsigned int vcpu, void *ctx)
{
	(void)vcpu;
	(void)ctx;
	callbacks.vcpu_begins();
}

static void pointer_block_is_made(struct qemu_plugin_tb *tb, void *ctx)
{
	(void)ctx;
	callbacks.block_is_made(tb);
}

static void pointer_ends(void *ctx)
{
	(void)ctx;
	callbacks.ends();
}

void qemu_api_register(qemu_plugin_id_t id, const struct qemu_info *info,
		       const struct qemu_callbacks *own)
{
	static const struct {
		qemu_any_fn vcpu_begins, block_is_made, ends;
	} forms[] = {
		{ (qemu_any_fn)id_vcpu_begins, (qemu_any_fn)id_block_is_made,
		  (qemu_any_fn)id_ends },
		{ (qemu_any_fn)pointer_vcpu_begins, (qemu_any_fn)pointer_block_is_made,
		  (qemu_any_fn)pointer_ends },
	};
	/*
	 * QEMU calls in the form of the newest version that it supports, whichever one a plugin
	 * declares.
	 */
	unsigned int form = info->version.cur >= QEMU_API_POINTERS;

	callbacks = *own;
	if (own->ends)
		qemu_plugin_register_atexit_cb(id, forms[form].ends, NULL);
	qemu_plugin_register_vcpu_init_cb(id, forms[form].vcpu_begins, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, forms[form].block_is_made, NULL);
}

uint64_t qemu_api_read(const struct qemu_handle *handle, struct glib_array *bytes)
{
	uint64_t value = 0;

	if (!handle->known)
		return 0;
	g_byte_array_set_size(bytes, 0);
	qemu_plugin_read_register(handle->handle, bytes);
	if (bytes->len)
		memcpy(&value, bytes->data,
		       bytes->len < sizeof(value) ? bytes->len : sizeof(value));
	return value;
}
