// SPDX-License-Identifier: GPL-2.0-or-later
#ifndef KVMPROF_GUEST_DEVICES_H
#define KVMPROF_GUEST_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of a file; -1 when it can't be read, and then it is empty. */
int read_text(const char *path, char *text, size_t size);

/* net.c: eth0 with the address that the kernel or we gave it, and a page over HTTP. */
void use_net(void);
void count_packets(void);

#endif
