/* SPDX-License-Identifier: GPL-2.0-or-later */
/* started COMMAND...: prints CLOCK_MONOTONIC in ns, then becomes the command. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec ts;

	if (argc < 2 || clock_gettime(CLOCK_MONOTONIC, &ts) < 0)
		return 125;
	printf("started %lld\n", ts.tv_sec * 1000000000LL + ts.tv_nsec);
	fflush(stdout);
	execvp(argv[1], argv + 1);
	return 127;
}
