/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A console with and without our init's message: no byte is made up, none but a message's lost. */
#include "tests/fuzz/fuzz.h"

#include "profile/record/rootfs/exec_console.h"

#include <stdlib.h>
#include <string.h>

#define NONCE "00112233445566778899aabbccddeeff"

static size_t shown;
static unsigned int messages;

static void put(void *ctx, uint8_t byte)
{
	(void)ctx;
	(void)byte;
	shown++;
}

static void found(void *ctx)
{
	(void)ctx;
	messages++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_console c;
	bool ours = memmem(data, size, NONCE, strlen(NONCE)) != NULL;

	shown = messages = 0;
	exec_console_init(&c, NONCE, put, NULL, found, NULL);
	for (size_t i = 0; i < size; i++)
		exec_console_put(&c, data[i]);
	exec_console_end(&c);
	if (shown > size || (!ours && (shown != size || messages)) || messages > 1 ||
	    messages != (unsigned int)(c.have_status || c.failed) || c.status > 255 ||
	    c.error < 0 || c.error > 4095)
		abort();
	return 0;
}
