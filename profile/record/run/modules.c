/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_MAX (1ull << 30)

int run_modules_open(struct run_modules *m, const struct run_options *o, struct err *e)
{
	for (unsigned int i = 0; i < o->nmodules; i++) {
		const char *args = strchr(o->module[i], '=');
		char *path = args ? strndup(o->module[i], (size_t)(args - o->module[i]))
				  : strdup(o->module[i]);
		int ret;

		m->name[m->n++] = path;
		if (!path)
			return err_set(e, ENOMEM, "out of memory");
		ret = file_map_open(&m->file[i], path, MODULE_MAX, e);
		if (ret)
			return ret;
		m->at[i] = (struct boot_module){
			.data = m->file[i].data,
			.len = m->file[i].len,
			.name = basename(path),
			.args = args ? args + 1 : "",
		};
	}
	return 0;
}

void run_modules_close(struct run_modules *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		file_map_close(&m->file[i]);
		free(m->name[i]);
	}
	memset(m, 0, sizeof(*m));
}
