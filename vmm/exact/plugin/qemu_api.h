/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qemu_api: the part of QEMU's plugin interface that our plugin uses, and of the GLib that QEMU is
 * linked with.
 *
 * No header of it is packaged; the names and their meaning are those of QEMU's
 * include/plugins/qemu-plugin.h. One binary of the plugin supports all these versions of the
 * interface:
 *
 *	version	QEMU		differences in what is declared here
 *	3	9.1		qemu_plugin_read_memory_vaddr() and qemu_plugin_mem_get_value()
 *				are missing
 *	4	9.2, 10.0	none
 *	5	10.1, 10.2	none
 *	6	11.0		qemu_plugin_read_register() returns bool instead of a length
 *	7	11.1		callbacks have no id and take the caller's pointer, which their
 *				registration takes as a third argument; a register's description
 *				is longer; a handle may be NULL
 *
 * qemu_api_register() hides the differences of callbacks. A description is located with the
 * array's own element size, and a register was read if the array contains bytes afterwards. All
 * functions are called on the threads on which QEMU calls the plugin.
 */
#ifndef KVMPROF_VMM_EXACT_PLUGIN_QEMU_API_H
#define KVMPROF_VMM_EXACT_PLUGIN_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_API_LEAST 3
#define QEMU_API_MOST 7
/* Callbacks take a pointer from this version on. */
#define QEMU_API_POINTERS 7

typedef uint64_t qemu_plugin_id_t;

struct qemu_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_register;

/* The beginning of a register's description, which all versions share. */
struct qemu_register {
	struct qemu_plugin_register *handle; /* opaque: NULL is a handle, too */
	const char *name, *feature;
};

/* enum qemu_plugin_cb_flags: what a callback does with registers. */
enum qemu_registers { QEMU_NO_REGISTERS = 0, QEMU_READS_REGISTERS = 1 };

/* enum qemu_plugin_mem_rw. */
enum qemu_accesses { QEMU_READS = 1, QEMU_WRITES = 2, QEMU_READS_AND_WRITES = 3 };

/* qemu_plugin_mem_value: low holds 1, 2, 4 or 8 bytes; together with high, 16. */
struct qemu_value {
	int type;
	uint64_t low, high;
};

/* GArray and GByteArray: the public members. */
struct glib_array {
	char *data;
	unsigned int len;
};

/* A callback of either form; QEMU stores it and calls it according to its version. */
typedef void (*qemu_any_fn)(void);
typedef void (*qemu_exec_fn)(unsigned int vcpu, void *ctx);
typedef void (*qemu_access_fn)(unsigned int vcpu, uint32_t info, uint64_t va, void *ctx);

/*
 * Registers a callback for the start of each vCPU. Before QEMU_API_POINTERS this function and the
 * next one take no third argument, and ignore it if it is passed (System V ABI).
 */
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_any_fn fn, void *ctx);
/* Registers a callback for each translation of a block. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_any_fn fn, void *ctx);
/* Registers a callback for each execution of the block. */
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_exec_fn fn,
					  enum qemu_registers flags, void *ctx);
/*
 * Registers a callback for each memory access of the instruction; its `info` is for the functions
 * below.
 */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_access_fn fn,
				      enum qemu_registers flags, enum qemu_accesses which,
				      void *ctx);
/* Returns whether the access is a write. */
bool qemu_plugin_mem_is_store(uint32_t info);
/* Returns the binary logarithm of the access's size in bytes. */
unsigned int qemu_plugin_mem_size_shift(uint32_t info);
/* Returns the value that was read or written. Exists in QEMU 9.2 and later; NULL before. */
__attribute__((weak)) struct qemu_value qemu_plugin_mem_get_value(uint32_t info);
/* Registers a callback that runs before QEMU ends by itself. */
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_any_fn fn, void *ctx);
/* Returns the guest-virtual address of the block. */
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
/* Returns the number of instructions in the block. */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
/* Returns instruction i of the block, valid during the callback for its translation. */
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
/* Registers a callback for each execution of the instruction. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_exec_fn fn,
					    enum qemu_registers flags, void *ctx);
/* Returns the instruction's length in bytes. */
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
/* Copies as many of the instruction's bytes as fit, and returns their number. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dst, size_t len);
/*
 * Replaces the array's content by len bytes at a virtual address of the current vCPU. Returns
 * false unless all could be read.
 */
bool qemu_plugin_read_memory_vaddr(uint64_t va, struct glib_array *bytes, size_t len);
/* Returns an array of struct qemu_register, which the caller owns. Call it on a vCPU's thread. */
struct glib_array *qemu_plugin_get_registers(void);
/*
 * Appends the register's bytes, in the guest's byte order, to a GByteArray; nothing if it cannot
 * be read.
 */
void qemu_plugin_read_register(struct qemu_plugin_register *handle, struct glib_array *bytes);

/* The plugin's own functions; qemu_api.c calls them for all versions of the interface. */
struct qemu_callbacks {
	void (*vcpu_begins)(void); /* on the vCPU's thread, once for each vCPU */
	void (*block_is_made)(struct qemu_plugin_tb *tb);
	void (*ends)(void); /* called before QEMU ends by itself; may be NULL */
};

/*
 * Registers the callbacks in the form of the interface that info describes. Call it once, from
 * qemu_plugin_install().
 */
void qemu_api_register(qemu_plugin_id_t id, const struct qemu_info *info,
		       const struct qemu_callbacks *callbacks);

/* A register of the vCPU; known: handle is valid, even if it is NULL. */
struct qemu_handle {
	struct qemu_plugin_register *handle;
	bool known;
};

/*
 * Returns the register's low 8 bytes, or 0 if the handle is not known or QEMU cannot read it. Call
 * it on a vCPU's thread, in a callback that may read registers. bytes: a GByteArray, whose content
 * is replaced.
 */
uint64_t qemu_api_read(const struct qemu_handle *handle, struct glib_array *bytes);

/* Returns the size of an element in bytes (GLib). */
unsigned int g_array_get_element_size(struct glib_array *array);
/* Returns a new, empty array (GLib). */
struct glib_array *g_byte_array_new(void);
/* Sets the array's length and returns the array (GLib). */
struct glib_array *g_byte_array_set_size(struct glib_array *bytes, unsigned int len);

#endif
