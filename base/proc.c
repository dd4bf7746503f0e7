/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/proc.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *proc_stat(const char *task, char text[PROC_STAT_MAX])
{
	char path[96];
	cleanup_close int fd = -1;
	const char *after;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/stat", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, PROC_STAT_MAX - 1);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	after = strrchr(text, ')');
	return after && after[1] == ' ' ? after + 2 : NULL;
}

const char *proc_stat_field(const char *stat, unsigned int number)
{
	for (unsigned int i = 3; stat && i < number; i++) {
		stat = strchr(stat, ' ');
		stat = stat ? stat + 1 : NULL;
	}
	return stat;
}

bool proc_status(const char *task, const char *name, char *value, size_t cap)
{
	char path[96], line[512];
	size_t len = strlen(name);
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/status", task);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':' && line[len + 1] == '\t') {
			line[strcspn(line, "\n")] = '\0';
			snprintf(value, cap, "%s", line + len + 2);
			return true;
		}
	return false;
}
