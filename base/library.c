/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>

int library_load(const struct library *lib, void **functions, struct err *e)
{
	void *h = dlopen(lib->soname, RTLD_NOW | RTLD_LOCAL);

	if (!h)
		return err_set(e, ENOENT, "%s: %s%s%s", lib->what, dlerror(), lib->hint ? "; " : "",
			       lib->hint ? lib->hint : "");
	for (size_t i = 0; i < lib->nnames; i++) {
		functions[i] = dlsym(h, lib->names[i]);
		if (!functions[i])
			return err_set(e, ENOENT, "%s: %s%s%s", lib->what, dlerror(),
				       lib->hint ? "; " : "", lib->hint ? lib->hint : "");
	}
	return 0;
}
