/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio: what a device model sees of its queues; transports are virtio_pci and virtio_mmio.
 *
 * Virtual I/O Device (VIRTIO) 1.2, split virtqueues (2.7), VIRTIO_F_VERSION_1 only.
 * The queues lie in guest RAM and are hostile: each field is read once, checked, and
 * used from the copy. A device that was given nonsense is marked as failed
 * (DEVICE_NEEDS_RESET, 2.1.1) and takes nothing from its queues until it is reset;
 * the guest goes on.
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
/* Buffers of one chain, direct or indirect (2.7.5.3: no longer than the queue). */
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

/* One request: iov[0, nout) is for the device to read, iov[nout, nout+nin) to write. */
struct virtio_chain {
	uint16_t head; /* names it for virtio_push() */
	unsigned int nout, nin;
	size_t out_len, in_len;		  /* bytes; each at most 1 GiB */
	struct iovec iov[VIRTIO_MAX_IOV]; /* in guest RAM, every byte of it checked */
};

struct virtio;

struct virtio_ops {
	/*
	 * Start the device's threads: once, before any vCPU runs, from vm_start(). create()
	 * starts none, so that rights can be given up in between. NULL: it has none. What the
	 * host refuses is the error.
	 */
	int (*start)(struct virtio *d, struct err *e);
	/*
	 * The guest has put chains into queue q: on the vCPU's thread that did, within its
	 * VM exit. Work that may wait belongs on another thread.
	 */
	void (*kick)(struct virtio *d, unsigned int q);
	/* DRIVER_OK: `features` were agreed on. NULL: nothing to do. */
	void (*activate)(struct virtio *d, uint64_t features);
	/*
	 * Nothing of the device may touch a queue or guest RAM once it returns: it waits for
	 * requests in flight. On a vCPU's thread. NULL: there are none outside of kick().
	 */
	void (*reset)(struct virtio *d);
	/* The device wrote to its own config space (already in d->config); NULL: it is read-only. */
	void (*config_written)(struct virtio *d, unsigned int off, unsigned int len);
	/*
	 * The driver has acknowledged an interrupt of a queue, on the vCPU's thread; an MSI needs none.
	 * NULL: nobody asks.
	 */
	void (*acknowledged)(struct virtio *d);
	/*
	 * State beyond queues, features and config, for a snapshot; save() is called with
	 * vCPUs stopped after drain(). NULL: none. save() -ENOTSUP with e for a state that
	 * can't be kept, restore() -EINVAL for bad bytes; where the driver was running
	 * activate() follows it.
	 */
	void (*drain)(struct virtio *d); /* wait until no request is in flight */
	int (*save)(struct virtio *d, struct buf *out, struct err *e);
	int (*restore)(struct virtio *d, struct cursor *in, struct err *e);
	void (*destroy)(struct virtio *d); /* threads ended, memory freed; d itself too */
};

/* A split virtqueue; the transport sets it up while the device is not active. */
struct virtio_queue {
	pthread_mutex_t lock; /* pop and push come from different threads */
	uint16_t size;	      /* agreed on; a power of 2 up to VIRTIO_QUEUE_SIZE */
	bool enabled;
	uint64_t desc, avail, used; /* guest-physical */
	uint16_t next_avail, next_used;
	uint16_t inflight;  /* chains popped and not yet pushed, at most size; not in snapshots */
	uint16_t signalled; /* used index of the last interrupt (EVENT_IDX) */
	uint16_t vector;    /* virtio_pci: its MSI-X entry, 0xffff none */
	bool quiet;	    /* virtio_quiet(); not in snapshots */
};

struct virtio {
	/* The device model fills these in before it is registered. */
	uint32_t id;	   /* VIRTIO_ID_* */
	const char *name;  /* "vda", "rng", "net0": in messages, [vmm] frames and statistics */
	uint64_t features; /* offered besides VERSION_1, INDIRECT_DESC and EVENT_IDX */
	unsigned int nqueues;
	uint8_t config[VIRTIO_CONFIG_SIZE];
	unsigned int config_len;
	const struct virtio_ops *ops;

	/* The rest is virtio.c's and the transport's. */
	const struct gmem *mem;
	struct virtio_queue queue[VIRTIO_MAX_QUEUES];
	pthread_rwlock_t running; /* read: kick(); write: status changes */
	atomic_uint status;	  /* device status (2.1) */
	atomic_bool failed;
	atomic_bool held; /* virtio_hold() */
	uint64_t agreed;  /* features that the driver took */
	pthread_mutex_t config_lock;
	/* Make the interrupt of queue q, or with q == UINT32_MAX that of a changed config. */
	void (*interrupt)(void *transport, unsigned int q);
	void *transport;
	atomic_uint_fast64_t kicks, chains, interrupts, bad; /* statistics */
};

/* Sets up locks and resets the status; the model's fields stay. ops->destroy() calls virtio_deinit(). */
void virtio_init(struct virtio *d, const struct gmem *mem);
void virtio_deinit(struct virtio *d);

/*
 * The next chain of queue q: 1, or 0 when there is none (also when the device has failed
 * or is not running). A chain that is not one (descriptors out of range, loops, buffers
 * outside RAM, a length that wraps), or one more than the queue has descriptors while the
 * others were not pushed yet, fails the device and gives 0. Any thread.
 */
int virtio_pop(struct virtio *d, unsigned int q, struct virtio_chain *c);

/*
 * Give a chain back, `written` bytes of its device-writable part were filled, and make the
 * interrupt if the driver wants one; was one made? Any thread; a no-op when the device was reset since.
 */
bool virtio_push(struct virtio *d, unsigned int q, uint16_t head, uint32_t written);

/*
 * Tell the driver that queue q need not be notified of, since somebody looks into it anyhow,
 * or that it has to be again. Hints only: notifications may still come, and chains may have
 * been added unnoticed before the driver sees the change, so look once more after `false`.
 * Any thread; it is off after a reset.
 */
void virtio_quiet(struct virtio *d, unsigned int q, bool on);

/* What the guest gave makes no sense: NEEDS_RESET, a config interrupt, counted in `bad`. */
void virtio_fail(struct virtio *d);

/*
 * While it is held, virtio_pop() gives nothing: a frame from outside must not get into RAM
 * between the moment at which queues are saved, or restored, and that at which RAM is. When it
 * is let go the model looks at all queues. vCPUs stand still; drain() after it.
 */
void virtio_hold(struct virtio *d, bool on);

/*
 * Queues, status, features and config, then what the model has; save after drain().
 * -ENOTSUP, -ENOMEM; -EINVAL for bad bytes.
 */
int virtio_save(const struct virtio *d, struct buf *out, struct err *e);
int virtio_restore(struct virtio *d, struct cursor *in, struct err *e);

/*
 * For transports, on a vCPU's thread; each may be called at any time with anything.
 * The transport serialises all but virtio_notify(), and holds no lock meanwhile that its
 * interrupt() takes: reset() waits for threads that call that.
 */
/* 32 feature bits of the 64 by number: offered; agreed on, which FEATURES_OK makes final. */
uint32_t virtio_features_read(const struct virtio *d, uint32_t word);
void virtio_features_write(struct virtio *d, uint32_t word, uint32_t bits);
/* Write the status register: 0 resets, FEATURES_OK stays clear for features that are not ours. */
void virtio_set_status(struct virtio *d, uint8_t status);
/* To describe queue q; NULL: there is none, or it is enabled and so not to be changed. */
struct virtio_queue *virtio_queue_setup(struct virtio *d, unsigned int q);
/* Checks size and places; nonsense fails the device. */
void virtio_queue_enable(struct virtio *d, unsigned int q);
void virtio_notify(struct virtio *d, unsigned int q);
/* len bytes of config, 1 to 8; what lies outside reads as 0 and is not written. */
uint64_t virtio_config_read(struct virtio *d, uint64_t off, unsigned int len);
void virtio_config_write(struct virtio *d, uint64_t off, unsigned int len, uint64_t val);

/* Copy between a chain's parts and a buffer; bytes copied. */
size_t virtio_chain_read(const struct virtio_chain *c, size_t off, void *dst, size_t len);
size_t virtio_chain_write(const struct virtio_chain *c, size_t off, const void *src, size_t len);

#endif
