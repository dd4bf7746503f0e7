/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_hang: offsets of the members that explain why a task or a processor makes no progress: owners
 * and waiters of locks, run queues, grace periods of RCU, pools of work queues, interrupt counts.
 *
 * Each offset is known or not; nothing is guessed. A layout is made once per kernel from its types and
 * does not change. Any thread may call the functions.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_HANG_H
#define KVMPROF_SYMBOLIZER_LINUX_HANG_H

#include "symbolizer/core/memory.h"
#include "symbolizer/types/types.h"

#include <stdbool.h>
#include <stdint.h>

#define LINUX_HANG_NONE UINT32_MAX

/* Name, structure and member. A member that two kernels name differently has two rows. */
/* clang-format off */
#define LINUX_HANG_TABLE(X) \
	X(MUTEX_OWNER, "mutex", "owner") \
	X(MUTEX_WAIT_LIST, "mutex", "wait_list") \
	X(MUTEX_FIRST_WAITER, "mutex", "first_waiter") /* replaces it since 7.1 */ \
	X(MUTEX_WAITER_LIST, "mutex_waiter", "list") \
	X(MUTEX_WAITER_TASK, "mutex_waiter", "task") \
	X(RWSEM_COUNT, "rw_semaphore", "count") \
	X(RWSEM_OWNER, "rw_semaphore", "owner") \
	X(RWSEM_WAIT_LIST, "rw_semaphore", "wait_list") \
	X(RWSEM_FIRST_WAITER, "rw_semaphore", "first_waiter") /* replaces it since 7.1 */ \
	X(RWSEM_WAITER_LIST, "rwsem_waiter", "list") \
	X(RWSEM_WAITER_TASK, "rwsem_waiter", "task") \
	X(RT_WAITER_LOCK, "rt_mutex_waiter", "lock") \
	X(RT_OWNER, "rt_mutex_base", "owner") \
	X(RT_OWNER_OLD, "rt_mutex", "owner") /* before 5.15 */ \
	X(TASK_PI_BLOCKED_ON, "task_struct", "pi_blocked_on") \
	X(TASK_EXEC_START, "task_struct", "se.exec_start") \
	X(TASK_SUM_EXEC, "task_struct", "se.sum_exec_runtime") \
	X(TASK_PREV_SUM_EXEC, "task_struct", "se.prev_sum_exec_runtime") \
	X(TASK_LAST_ARRIVAL, "task_struct", "sched_info.last_arrival") \
	X(TASK_RCU_NESTING, "task_struct", "rcu_read_lock_nesting") \
	X(RQ_CLOCK, "rq", "clock") \
	X(RQ_CURR, "rq", "curr") \
	X(RQ_CURR_UNION, "rq", "__curr") \
	X(RQ_IDLE, "rq", "idle") \
	X(RQ_NR_RUNNING, "rq", "nr_running") \
	X(PCPU_HOT_PREEMPT, "pcpu_hot", "preempt_count") \
	X(RCU_GP_SEQ, "rcu_state", "gp_seq") \
	X(RCU_GP_START, "rcu_state", "gp_start") \
	X(RCU_NODE_FIRST, "rcu_state", "node[0]") \
	X(RCU_QSMASK, "rcu_node", "qsmask") \
	X(POOL_WATCHDOG, "worker_pool", "watchdog_ts") \
	X(POOL_WORKLIST, "worker_pool", "worklist") \
	X(POOL_WORKERS, "worker_pool", "workers") \
	X(WORKER_NODE, "worker", "node") \
	X(WORKER_TASK, "worker", "task") \
	X(WORKER_FUNC, "worker", "current_func") \
	X(KSTAT_IRQS, "kernel_stat", "irqs_sum") \
	X(KSTAT_SOFTIRQS, "kernel_stat", "softirqs[0]") \
	X(TICK_DEVICE, "tick_device", "evtdev") \
	X(EVENT_NEXT, "clock_event_device", "next_event") \
	X(EVENT_STATE, "clock_event_device", "state_use_accessors") \
	X(VM_EVENTS, "vm_event_state", "event[0]") \
	X(NTP_TICK_LENGTH, "ntp_data", "tick_length") \
	X(ZONE_WATERMARK_MIN, "zone", "_watermark[0]") \
	X(ZONE_VM_STAT, "zone", "vm_stat[0]") \
	X(ZONE_MANAGED, "zone", "managed_pages") \
	X(NODE_ZONES, "pglist_data", "node_zones[0]") \
	X(SB_INODES, "super_block", "s_inodes") \
	X(INODE_SB_LIST, "inode", "i_sb_list") \
	X(BDEV_INODE, "bdev_inode", "vfs_inode") \
	X(BDEV_BDEV, "bdev_inode", "bdev") \
	X(BDEV_DISK, "block_device", "bd_disk") \
	X(DISK_NAME, "gendisk", "disk_name") \
	X(DISK_QUEUE, "gendisk", "queue") \
	X(QUEUE_TAG_SET, "request_queue", "tag_set") \
	X(SET_TAGS, "blk_mq_tag_set", "tags") \
	X(SET_NR_QUEUES, "blk_mq_tag_set", "nr_hw_queues") \
	X(TAGS_NR, "blk_mq_tags", "nr_tags") \
	X(TAGS_STATIC, "blk_mq_tags", "static_rqs") \
	X(RQ_STATE, "request", "state") \
	X(RQ_QUEUE, "request", "q") \
	X(RQ_DEADLINE, "request", "deadline") \
	X(RQ_TIMEOUT, "request", "timeout") \
	X(RQ_START, "request", "start_time_ns") \
	X(RQ_SECTOR, "request", "__sector")
/* clang-format on */

#define LINUX_HANG_NAME(name, structure, path) LINUX_HANG_##name,
enum linux_hang_member { LINUX_HANG_TABLE(LINUX_HANG_NAME) LINUX_HANG_MEMBERS };
#undef LINUX_HANG_NAME

struct linux_hang_layout {
	uint32_t off[LINUX_HANG_MEMBERS]; /* LINUX_HANG_NONE: not known */
	uint32_t len[LINUX_HANG_MEMBERS]; /* bytes of the member */
	uint32_t pool_size, zone_size;	  /* bytes of the structures; 0: not known */
	int64_t running;		  /* SYSTEM_RUNNING; -1: not known */
	int64_t in_flight;		  /* MQ_RQ_IN_FLIGHT; -1: not known */
	int64_t free_pages;		  /* NR_FREE_PAGES; -1: not known */
	/* PGSCAN_DIRECT and _KSWAPD, PGSTEAL_DIRECT and _KSWAPD, OOM_KILL; -1: not known */
	int64_t scans[2], steals[2], oom_kill;
	int64_t oneshot; /* CLOCK_EVT_STATE_ONESHOT; -1: not known */
};

/* Fills in *out from the kernel's types. With types NULL nothing is known. */
void linux_hang_layout(struct linux_hang_layout *out, const struct types *types);

/* Returns whether the offset of a member is known. */
static inline bool linux_hang_has(const struct linux_hang_layout *l, enum linux_hang_member m)
{
	return l->off[m] != LINUX_HANG_NONE;
}

/*
 * Reads a member of 1, 2, 4 or 8 bytes of the structure at `at`. Returns false, with *out unchanged, if the
 * offset is not known or the member cannot be read.
 */
bool linux_hang_read(const struct linux_hang_layout *l, const struct memory *m, uint64_t at,
		     enum linux_hang_member member, uint64_t *out);

#endif
