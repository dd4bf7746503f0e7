/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plugin: the plugin that runs inside QEMU. It counts instructions, and has the vCPU stand at each that is
 * to be sampled until the program has looked at it.
 *
 * QEMU translates the guest's code in blocks. A plain callback at each block's start counts the
 * block's instructions: with several vCPUs the interface's inline counters write to the wrong
 * place under round-robin icount, and the callback's vCPU index is that of the translating CPU, so
 * neither is used. A sample inside of a block has the registers of its start, and says how many bytes
 * further its instruction lies. In front of a place that the program has asked for registers are right,
 * but for RIP, which is then put together; a block with such a place is counted in parts.
 *
 *	-plugin kvmprof-exact.so,memory=FD,request=FD,answer=FD[,counts=FD]
 *		[,trace=FD,step=N | ,trace=FD,from0=N,to0=N,from1=N,to1=N]
 *	-plugin kvmprof-exact.so,versions=on
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_PLUGIN_H
#define KVMPROF_VMM_EXACT_PLUGIN_PLUGIN_H

#include "vmm/exact/plugin/qemu_api.h"

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/* QEMU looks for these two by name. It calls the second once, with the options of its command line. */
PLUGIN_EXPORT extern int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				      char **argv);

#endif
