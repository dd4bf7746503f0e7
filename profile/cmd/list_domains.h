/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_list_domains: `kvmprof list --domains`: libvirt's domains, and whether they can be
 * attached to. Prints; returns the exit status.
 */
#ifndef KVMPROF_PROFILE_CMD_LIST_DOMAINS_H
#define KVMPROF_PROFILE_CMD_LIST_DOMAINS_H

#include <stdbool.h>

/* uri NULL: as virsh has it. */
int list_domains(const char *uri, bool json);

#endif
