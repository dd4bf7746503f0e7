/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The villain guest attacks its machine from inside, one device after the other, and prints the
 * result of each attack. See main.c.
 *
 * Sections in names of attacks are those of Virtual I/O Device (VIRTIO) 1.3.
 */
#ifndef VILLAIN_H
#define VILLAIN_H

#include "../demo/demo.h"

/* Physical addresses. The machine has 64 MiB; the upper half is for queues and buffers. */
#define RAM_END 0x4000000ul
#define VQ_AREA 0x2000000ul /* area of queue i, 64 KiB each */
#define VQ_STEP 0x10000ul
#define VQ_AVAIL 0x2000ul
#define VQ_USED 0x4000ul
#define VQ_TABLES 0x8000ul /* indirect tables */
#define BUFFERS 0x2100000ul
#define BUFFER_SIZE 0x1000ul
#define BIG_BUFFER 0x2400000ul
#define BIG_BUFFER_SIZE 0x400000ul
#define SCRATCH_TABLES 0x2800000ul /* page tables of attacks */
#define DEVICES 0xc0000000ul	   /* up to 4 GiB: mapped one to one */
#define PCI_ECAM 0xe0000000ul
#define LAPIC 0xfee00000ul
#define IOAPIC 0xfec00000ul

#define VQ_SIZE 256u
#define VQ_MAX 2u /* number of queues that are set up on a device */

#define DESC_NEXT 1u
#define DESC_WRITE 2u
#define DESC_INDIRECT 4u

#define STATUS_ACKNOWLEDGE 1u
#define STATUS_DRIVER 2u
#define STATUS_DRIVER_OK 4u
#define STATUS_FEATURES_OK 8u
#define STATUS_NEEDS_RESET 64u
#define STATUS_BEGUN (STATUS_ACKNOWLEDGE | STATUS_DRIVER)

#define F_INDIRECT_DESC (1ul << 28)
#define F_EVENT_IDX (1ul << 29)
#define F_VERSION_1 (1ul << 32)

enum { ID_NET = 1, ID_BLOCK = 2, ID_CONSOLE = 3, ID_RNG = 4, ID_9P = 9 };

struct desc {
	u64 addr;
	u32 len;
	u16 flags, next;
};

struct vq {
	u64 desc, avail, used; /* physical */
	u16 next_avail;
};

struct vdev {
	const char *name;
	u32 id;
	int pci;
	u64 function;			      /* PCI: address of its configuration space */
	u64 common, notify, isr, config, bar; /* PCI: structures in its BAR */
	u32 notify_step;
	u64 mmio;	       /* MMIO: address of its registers */
	u32 nqueues, attacked; /* attacked: the queue that is attacked */
	u64 features;
	struct vq q[VQ_MAX];
};

/* The expected outcome of an attack. */
enum expect {
	PASS,	/* the device continues to work without a reset */
	REJECT, /* it needs a reset, or refuses, and works after a reset */
	ANY	/* either */
};

/*
 * Runs an attack. Returns 0, or nonzero if it saw an effect that must not occur. d is NULL for
 * classes without a device.
 */
typedef int attack_fn(struct vdev *d);
struct attack {
	const char *name;
	enum expect expect;
	attack_fn *f;
};

/* A table of attacks; `on` is the id of the virtio device that they attack, or one of these. */
enum { ON_EACH = 0x100, ON_EACH_PCI, ON_NONE };
struct attack_class {
	const char *name;
	const struct attack *attacks;
	u32 n, on;
	int (*works)(void); /* for ON_NONE: checks that the machine works */
};
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ATTACKS(table) (table), ARRAY_SIZE(table)
extern const struct attack_class ring_class, transport_class, pci_class, blk_class, net_class,
	console_class, rng_class, p9_class, ports_class, cpu_class, simd_class, simd_memory_class,
	refused_class, stack_class, race_class, race_simd_class;
/* -- attack_simd.c ----------------------------------------------------------------------------- */

/* Enables SSE. */
void simd_on(void);
/* Returns 1 if an SSE instruction works correctly, else 0. */
int simd_works(void);

/* -- bytes.c: memory and registers ------------------------------------------------------------- */

/* Returns a pointer to a guest-physical address. */
static inline void *at(u64 physical)
{
	return (void *)(KERNEL_MAP + physical);
}
/*
 * Reads 1 byte at a virtual address with one access. The functions below do the same for other
 * widths.
 */
u8 read8(u64 address);
u16 read16(u64 address);
u32 read32(u64 address);
u64 read64(u64 address);
/*
 * Writes 1 byte at a virtual address with one access. The functions below do the same for other
 * widths.
 */
void write8(u64 address, u32 v);
void write16(u64 address, u32 v);
void write32(u64 address, u32 v);
void write64(u64 address, u64 v);
/* Reads 1, 2 or 4 bytes from a port. */
u32 in_width(u16 port, u32 width);
/* Writes 1, 2 or 4 bytes to a port. */
void out_width(u16 port, u32 width, u32 v);
void *memset(void *to, int byte, u64 len);
void *memcpy(void *to, const void *from, u64 len);
/* Returns the next number of a sequence that is the same in each run. */
u64 random64(void);
/*
 * Executes RDMSR with exceptions caught. Returns 0 if one occurred. The three functions below
 * return the same for their accesses.
 */
int try_rdmsr(u32 msr, u64 *v);
int try_wrmsr(u32 msr, u64 v);
int try_read32(u64 address, u32 *v);
/* Calls f. */
int try_call(void (*f)(void));
/* Installs handlers that end the run and print the name of an uncaught exception. */
void traps_init(void);
/* Maps the addresses from DEVICES to 4 GiB one to one, uncached. */
void devices_map(void);

/* -- transport.c ------------------------------------------------------------------------------- */

/* Finds at most max virtio devices on PCI and on MMIO, and fills in d[]. Returns their number. */
u32 devices_find(struct vdev *d, u32 max);
/* Returns the status register. */
u32 dev_status(const struct vdev *d);
/* Writes the status register. */
void dev_set_status(const struct vdev *d, u32 status);
/* Returns 32 of the offered features; word: 0 or 1. */
u32 dev_features(const struct vdev *d, u32 word);
/* Writes 32 of the accepted features; word: 0 or 1. */
void dev_set_features(const struct vdev *d, u32 word, u32 bits);
/* Selects the queue to which the next four functions apply. */
void queue_select(const struct vdev *d, u32 q);
/* Writes the queue's number of descriptors. */
void queue_set_size(const struct vdev *d, u32 size);
/* Writes the physical addresses of the queue's three parts. */
void queue_set_places(const struct vdev *d, u64 desc, u64 avail, u64 used);
/* Enables the queue (1), or disables it (0). */
void queue_set_ready(const struct vdev *d, u32 on);
/* Returns whether the queue is enabled. */
u32 queue_ready(const struct vdev *d);
/* Notifies the device that queue q has new buffers. */
void dev_notify(const struct vdev *d, u32 q);
/* Returns the address of the device-specific configuration. */
u64 config_address(const struct vdev *d);
/*
 * Sets a device up to last_step: reset, all features except `unwanted`, queues, DRIVER_OK. Returns
 * 1 if the device has accepted that, else 0.
 */
enum { STEP_RESET, STEP_BEGUN, STEP_FEATURES, STEP_FEATURES_OK, STEP_QUEUES, STEP_DRIVER_OK };
int dev_setup(struct vdev *d, u64 unwanted, int last_step);

/* -- attack_race.c ----------------------------------------------------------------------------- */

/* Starts the second vCPU, if the command line has race=1. Returns 0 if there is none. */
int ap_start(void);
/*
 * Makes the second vCPU write these values (2, 4 or 8 bytes) to the address in turn, until
 * job_end().
 */
void job_values(u64 address, u32 width, const u64 *values, u32 n);
/* Ends the writes of job_values(). */
void job_end(void);

/* -- queue.c ----------------------------------------------------------------------------------- */

/* Returns descriptor i of a queue. */
struct desc *vq_desc(const struct vq *q, u16 i);
/* Fills in a descriptor. */
void desc_set(struct desc *d, u64 address, u32 len, u16 flags, u16 next);
/* Returns an area for an indirect table of the queue. */
struct desc *vq_table(const struct vq *q);
/* Returns the physical address of that area. */
u64 vq_table_address(const struct vq *q);
/* Returns the queue's used index. */
u16 vq_used(const struct vq *q);
/* Returns the written length of the newest used entry. */
u32 vq_used_len(const struct vq *q);
/* Makes the chain that begins with descriptor `head` available and notifies the device. */
void vq_offer(struct vdev *d, u32 q, u16 head);
/* Makes the chain available without a notification. */
void vq_publish(struct vdev *d, u32 q, u16 head);
/*
 * Waits until the used index changes. Returns 1, or 0 if the device has failed or it takes too
 * long.
 */
int vq_wait(const struct vdev *d, u32 q, u16 used);
/* Queues of the network card and of the console. */
enum { RECEIVE = 0, SEND = 1 };
/* Sends one buffer on SEND. Returns 0 when it was returned. */
int send_one(struct vdev *d, u64 address, u32 len, u16 flags);
/* Waits for about a millisecond. */
void wait_shortly(void);
extern u64 patience; /* TSC cycles */
#define PATIENCE 20000000000ul
#define PATIENCE_SHORT 200000000ul /* for attacks that may also get no answer */
/* Returns the physical address of buffer n, which has BUFFER_SIZE bytes. */
u64 buffer(u32 n);

/* -- works.c ----------------------------------------------------------------------------------- */

/* Makes an ordinary request to the device. Returns 1 if it is answered correctly. */
int dev_works(struct vdev *d);
/* Sends a frame. Returns 1 if the device has used it, else 0. */
int net_send(struct vdev *d, const u8 *frame, u32 len);
/* Writes the frame of an ARP request and returns its length, 42 bytes. */
u32 net_arp(u8 *frame);
/* Sends one 9P message with room for a reply. Returns the reply's type, 0: none. */
u32 p9_call(struct vdev *d, u32 len, u32 room);
#define P9_REQUEST buffer(8)
#define P9_REPLY buffer(10)
/* Begins a 9P request with its header. */
void p9_begin(u8 type, u16 tag);
/* Appends an integer of `bytes` bytes in little-endian order to the request. */
void p9_put(u64 v, u32 bytes);
/* Appends a string with its length to the request. */
void p9_put_text(const char *s);
/* Sends the request and returns as p9_call(). */
u32 p9_end(struct vdev *d);

#endif
