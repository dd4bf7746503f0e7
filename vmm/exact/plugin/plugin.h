/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plugin: the plugin that runs inside QEMU. It counts instructions, and stops the vCPU at each one
 * that is sampled until the program has processed the sample.
 *
 * QEMU translates the guest's code in blocks. A callback at each block's start counts the block's
 * instructions. The interface's inline counters are not used, because with several vCPUs they
 * write to the wrong place under round-robin icount; nor is the callback's vCPU index, which is
 * that of the translating CPU. A sample within a block has the registers of the block's start, and
 * reports how many bytes further its instruction is. Before a place that the program has
 * requested, the registers are exact, except that RIP is computed; a block with such a place is
 * counted in parts.
 *
 *	-plugin kvmprof-exact.so,memory=FD,request=FD,answer=FD[,counts=FD]
 *		[,trace=FD,step=N | ,trace=FD,from0=N,to0=N,from1=N,to1=N]
 *	-plugin kvmprof-exact.so,versions=on
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_PLUGIN_H
#define KVMPROF_VMM_EXACT_PLUGIN_PLUGIN_H

#include "vmm/exact/plugin/qemu_api.h"

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/*
 * The version of the interface that the plugin uses. QEMU finds it by name when it loads the
 * plugin.
 */
PLUGIN_EXPORT extern int qemu_plugin_version;
/*
 * Starts the plugin with the options of its command line. QEMU finds it by name and calls it once.
 * Returns 0, or -1 so that QEMU refuses to start.
 */
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				      char **argv);

#endif
