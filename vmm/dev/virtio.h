/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio: the queues of a device model. The transports are virtio_pci and virtio_mmio.
 *
 * Virtual I/O Device (VIRTIO) 1.2, split virtqueues (2.7), VIRTIO_F_VERSION_1 only. The queues are
 * in guest RAM and not trusted: each field is read once, checked, and used from the copy. After
 * invalid input a device is marked as failed (DEVICE_NEEDS_RESET, 2.1.1) and takes nothing from its
 * queues until it is reset; the guest continues.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_H
#define KVMPROF_VMM_DEV_VIRTIO_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/gmem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define VIRTIO_MAX_QUEUES 64u
#define VIRTIO_QUEUE_SIZE 256u
/*
 * The maximum number of buffers of one chain, direct or indirect (2.7.5.3: no longer than the
 * queue).
 */
#define VIRTIO_MAX_IOV 256u
#define VIRTIO_CONFIG_SIZE 256u
#define VIRTIO_NO_VECTOR 0xffffu

/* Device types (5). */
#define VIRTIO_ID_NET 1u
#define VIRTIO_ID_BLOCK 2u
#define VIRTIO_ID_CONSOLE 3u
#define VIRTIO_ID_RNG 4u
#define VIRTIO_ID_9P 9u

/* Device status (2.1). */
#define VIRTIO_DRIVER_OK 4u
#define VIRTIO_FEATURES_OK 8u
#define VIRTIO_NEEDS_RESET 64u

#define VIRTIO_F_INDIRECT_DESC (UINT64_C(1) << 28)
#define VIRTIO_F_EVENT_IDX (UINT64_C(1) << 29)
#define VIRTIO_F_VERSION_1 (UINT64_C(1) << 32)

/* One request: iov[0, nout) is for the device to read, iov[nout, nout + nin) for it to write. */
struct virtio_chain {
	uint16_t head; /* identifies the chain for virtio_push() */
	unsigned int nout, nin;
	size_t out_len, in_len;		  /* bytes; each at most 1 GiB */
	struct iovec iov[VIRTIO_MAX_IOV]; /* in guest RAM; every byte is checked */
};

struct virtio;

/* The functions of a device model. NULL members are allowed where stated. */
struct virtio_ops {
	/*
	 * Starts the device's threads: called once, by vm_start(), before any vCPU runs. create()
	 * starts none, so that rights can be given up in between. Returns 0, or -errno with *e
	 * recorded. NULL: no threads.
	 */
	int (*start)(struct virtio *d, struct err *e);
	/*
	 * Handles a notification of queue q, on the thread of the vCPU that notified, within its VM
	 * exit. Work that may take long belongs on another thread.
	 */
	void (*kick)(struct virtio *d, unsigned int q);
	/* Called at DRIVER_OK, when `features` were agreed on. NULL: nothing to do. */
	void (*activate)(struct virtio *d, uint64_t features);
	/*
	 * Waits for requests in flight; afterwards nothing of the device may access a queue or
	 * guest RAM. Called on a vCPU's thread. NULL: requests are only handled within kick().
	 */
	void (*reset)(struct virtio *d);
	/*
	 * Called after the driver has written the config space (d->config is updated already).
	 * NULL: it is read-only.
	 */
	void (*config_written)(struct virtio *d, unsigned int off, unsigned int len);
	/*
	 * Called on the vCPU's thread when the driver has acknowledged a queue interrupt; an MSI is
	 * not acknowledged. NULL: not called.
	 */
	void (*acknowledged)(struct virtio *d);
	/*
	 * State beyond queues, features and config, for a snapshot. save() is called after drain(),
	 * with the vCPUs stopped; it returns -ENOTSUP with *e recorded for a state that cannot be
	 * saved. restore() returns -EINVAL for damaged bytes; activate() follows if the driver was
	 * running. NULL: no such state.
	 */
	void (*drain)(struct virtio *d); /* waits until no request is in flight */
	int (*save)(struct virtio *d, struct buf *out, struct err *e);
	int (*restore)(struct virtio *d, struct cursor *in, struct err *e);
	void (*destroy)(struct virtio *d); /* ends the threads and frees the device, including d */
};

/* A split virtqueue. The transport sets it up while the device is not active. */
struct virtio_queue {
	pthread_mutex_t lock; /* pop and push are called by different threads */
	uint16_t size;	      /* agreed size; a power of 2 up to VIRTIO_QUEUE_SIZE */
	bool enabled;
	uint64_t desc, avail, used; /* guest-physical */
	uint16_t next_avail, next_used;
	uint16_t inflight;  /* chains popped and not yet pushed, at most size; not in snapshots */
	uint16_t signalled; /* used index at the last interrupt (EVENT_IDX) */
	uint16_t vector;    /* virtio_pci: its MSI-X entry; 0xffff: none */
	bool quiet;	    /* virtio_quiet() is on; not in snapshots */
};

struct virtio {
	/* Set by the device model before the device is registered. */
	uint32_t id;	   /* VIRTIO_ID_* */
	const char *name;  /* "vda", "rng", "net0": for messages, [vmm] frames and statistics */
	uint64_t features; /* features offered besides VERSION_1, INDIRECT_DESC and EVENT_IDX */
	unsigned int nqueues;
	uint8_t config[VIRTIO_CONFIG_SIZE];
	unsigned int config_len;
	const struct virtio_ops *ops;

	/* Used by virtio.c and the transport only. */
	const struct gmem *mem;
	struct virtio_queue queue[VIRTIO_MAX_QUEUES];
	pthread_rwlock_t running; /* read lock: kick(); write lock: status changes */
	atomic_uint status;	  /* device status (2.1) */
	atomic_bool failed;
	atomic_bool held; /* virtio_hold() is on */
	uint64_t agreed;  /* features that the driver accepted */
	pthread_mutex_t config_lock;
	/*
	 * Raises the interrupt of queue q, or of a changed config if q is UINT32_MAX. Any thread.
	 */
	void (*interrupt)(void *transport, unsigned int q);
	void *transport;
	atomic_uint_fast64_t kicks, chains, interrupts, bad; /* statistics */
};

/*
 * Sets up the locks; the model's members are kept, the rest must be zero. ops->destroy() calls
 * virtio_deinit(). `mem` is borrowed.
 */
void virtio_init(struct virtio *d, const struct gmem *mem);
void virtio_deinit(struct virtio *d);

/*
 * Takes the next chain of queue q. Returns 1, or 0 if there is none (also if the device has failed
 * or is not running). An invalid chain (descriptors out of range, loops, buffers outside of RAM,
 * overflowing lengths), or more chains in flight than the queue has descriptors, makes the device
 * fail and returns 0. Any thread.
 */
int virtio_pop(struct virtio *d, unsigned int q, struct virtio_chain *c);

/*
 * Returns a chain to the driver after `written` bytes of its writable part were filled, and raises
 * an interrupt if the driver wants one. Returns whether it was raised. Does nothing if the device
 * was reset meanwhile. Any thread.
 */
bool virtio_push(struct virtio *d, unsigned int q, uint16_t head, uint32_t written);

/*
 * Informs the driver that queue q needs no notifications because it is polled, or that it needs
 * them again. These are hints: notifications may still come, and chains may have been added without
 * one before the driver sees the change, so the caller checks the queue once more after `false`.
 * Any thread; a reset turns it off.
 */
void virtio_quiet(struct virtio *d, unsigned int q, bool on);

/*
 * Marks the device as failed after invalid input: sets NEEDS_RESET, raises a config interrupt,
 * counts it in `bad`. Any thread.
 */
void virtio_fail(struct virtio *d);

/*
 * Holds or releases the device. While it is held, virtio_pop() returns nothing: a frame from
 * outside must not get into RAM between saving or restoring the queues and doing the same with RAM.
 * When it is released, the model checks all queues. Called while the vCPUs are stopped; drain()
 * follows.
 */
void virtio_hold(struct virtio *d, bool on);

/*
 * Saves queues, status, features and config, then the model's state. Called after drain(). Returns
 * 0, or -errno with *e recorded (-ENOTSUP, -ENOMEM).
 */
int virtio_save(const struct virtio *d, struct buf *out, struct err *e);
/*
 * Restores what virtio_save() has saved. Returns 0, or -errno with *e recorded: -EINVAL for damaged
 * bytes, -ENOTSUP, -ENOMEM.
 */
int virtio_restore(struct virtio *d, struct cursor *in, struct err *e);

/*
 * The functions below are for transports, on a vCPU's thread, and may be called at any time with
 * any arguments. The transport serialises all of them except virtio_notify(). Meanwhile it holds no
 * lock that its interrupt() takes, because reset() waits for threads that call interrupt().
 */
/* Returns 32 of the 64 offered features; word is 0 or 1, and others return 0. */
uint32_t virtio_features_read(const struct virtio *d, uint32_t word);
/* Accepts 32 of the 64 features. FEATURES_OK makes them final. */
void virtio_features_write(struct virtio *d, uint32_t word, uint32_t bits);
/*
 * Writes the status register: 0 resets the device; FEATURES_OK stays clear if features were
 * accepted that are not offered.
 */
void virtio_set_status(struct virtio *d, uint8_t status);
/*
 * Returns queue q to be set up; NULL: it does not exist, or it is enabled and must not be changed.
 */
struct virtio_queue *virtio_queue_setup(struct virtio *d, unsigned int q);
/* Checks size and addresses of queue q and enables it; invalid ones make the device fail. */
void virtio_queue_enable(struct virtio *d, unsigned int q);
/* Handles a notification of queue q: counts it and calls ops->kick(). */
void virtio_notify(struct virtio *d, unsigned int q);
/* Returns len bytes (1 to 8) of the config space. Bytes outside of it read as 0. */
uint64_t virtio_config_read(struct virtio *d, uint64_t off, unsigned int len);
/* Writes len bytes (1 to 8) of the config space. Bytes outside of it are not written. */
void virtio_config_write(struct virtio *d, uint64_t off, unsigned int len, uint64_t val);

/*
 * Copies from byte off of a chain's readable part to a buffer. Returns the number of bytes copied.
 * Any thread may call it.
 */
size_t virtio_chain_read(const struct virtio_chain *c, size_t off, void *dst, size_t len);
/*
 * Copies from a buffer to byte off of a chain's writable part. Returns the number of bytes copied.
 * Any thread may call it.
 */
size_t virtio_chain_write(const struct virtio_chain *c, size_t off, const void *src, size_t len);

#endif
