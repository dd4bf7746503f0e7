// SPDX-License-Identifier: GPL-2.0-or-later
#ifndef KVMPROF_GUEST_DEVICES_H
#define KVMPROF_GUEST_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads the first line of a file into text. Returns 0, or -1 with an empty text if it cannot be
 * read.
 */
int read_text(const char *path, char *text, size_t size);

/*
 * Configures eth0 with the address from the kernel or a default, and reads a page over HTTP.
 */
void use_net(void);
/* Prints how many packets and bytes eth0 has received. */
void count_packets(void);

#endif
