/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/capstone.h"

#include "base/cleanup.h"

#include <pthread.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static const char *const names[] = { CAPSTONE_FUNCTIONS(LIBRARY_NAME) };
static struct capstone functions;
static struct err failure;
static int result;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void capstone_load(void)
{
	/* Uses the major version of the header, because structures differ between versions. */
	const struct library lib = {
		.soname = "libcapstone.so." TEXT(CS_API_MAJOR),
		.what = "instructions can't be decoded",
		.hint = "install libcapstone" TEXT(CS_API_MAJOR),
		.names = names,
		.nnames = ARRAY_SIZE(names),
	};

	result = library_load(&lib, (void **)&functions, &failure);
}

const struct capstone *capstone_get(struct err *e)
{
	pthread_once(&once, capstone_load);
	if (!result)
		return &functions;
	if (e)
		*e = failure;
	return NULL;
}
