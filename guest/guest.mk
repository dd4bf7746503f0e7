# SPDX-License-Identifier: GPL-2.0-or-later
#
# What runs inside the guest. Included by the top Makefile; alone it works as
# "make -f guest/guest.mk" from the top directory.
#
# Own flags throughout: CFLAGS and CC are the host program's and may ask for
# sanitizers, PIE or a stack protector, none of which exist in here.

BUILD ?= build
GUEST_CC ?= gcc
PYTHON ?= python3

.PHONY: guest
guest: $(BUILD)/guest/demo.elf $(BUILD)/guest/init $(BUILD)/guest/initramfs.cpio \
	$(BUILD)/guest/worker.cpio $(BUILD)/guest/disk.cpio $(BUILD)/guest/devices.cpio \
	$(BUILD)/guest/made.cpio $(BUILD)/guest/mb.elf $(BUILD)/guest/mb.bin $(BUILD)/guest/blk.elf \
	$(BUILD)/guest/villain.elf

GUEST_WARN := -Wall -Wextra -Wshadow -Wmissing-prototypes $(if $(filter-out 0,$(WERROR)),-Werror)
# Frame pointers and no sibling calls: the frames on the stack are the
# functions that were called. General registers only: nothing in here needs
# more, and the KVM of some hosts cannot do SSE in ring 0.
GUEST_COMMON := -std=gnu11 -O2 -g $(GUEST_WARN) -ffreestanding -fno-pic -fno-pie \
	-mgeneral-regs-only -mno-sse -mno-mmx -mno-red-zone \
	-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls \
	-fcf-protection=none \
	-fno-stack-protector -fno-jump-tables -fno-asynchronous-unwind-tables \
	-fdebug-prefix-map=$(CURDIR)=. -MMD -MP

DEMO_OBJS := $(patsubst %,$(BUILD)/guest/demo/%.o,start work pvh main machine console options modes pages pvclock where nested \
	selfcheck user pages_user selfcheck_user)
DEMO_LDFLAGS := -nostdlib -static -no-pie -Wl,--build-id=sha1 -Wl,-z,max-page-size=4096 \
	-Wl,-z,noexecstack

$(patsubst %,$(BUILD)/guest/demo/%.o,user pages_user selfcheck_user): DEMO_MODEL := -mcmodel=small
DEMO_MODEL = -mcmodel=kernel

$(BUILD)/guest/demo/%.o: guest/demo/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) $(DEMO_MODEL) -c -o $@ $<

$(BUILD)/guest/demo/%.o: guest/demo/%.S guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -c -o $@ $<

$(BUILD)/guest/demo.elf: $(DEMO_OBJS) guest/demo/demo.lds
	@echo "  GUEST $@"
	@$(GUEST_CC) $(DEMO_LDFLAGS) -T guest/demo/demo.lds -o $@ $(DEMO_OBJS)

# Reads its virtio disk from ring 3; begins and is laid out as the demo.
BLK_OBJS := $(patsubst %,$(BUILD)/guest/demo/%.o,start pvh machine console options) \
	$(patsubst %,$(BUILD)/guest/blk/%.o,main device irq blk_user)

$(BUILD)/guest/blk/blk_user.o: DEMO_MODEL := -mcmodel=small

$(BUILD)/guest/blk/%.o: guest/blk/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) $(DEMO_MODEL) -c -o $@ $<

$(BUILD)/guest/blk/%.o: guest/blk/%.S guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -c -o $@ $<

$(BUILD)/guest/blk.elf: $(BLK_OBJS) guest/demo/demo.lds
	@echo "  GUEST $@"
	@$(GUEST_CC) $(DEMO_LDFLAGS) -T guest/demo/demo.lds -o $@ $(BLK_OBJS)

# Attacks the machine it runs in; begins and is laid out as the demo. memset() and memcpy() are
# its own, and are not to be made of themselves.
VILLAIN_OBJS := $(patsubst %,$(BUILD)/guest/demo/%.o,start pvh machine console options) \
	$(patsubst %,$(BUILD)/guest/villain/%.o,main bytes trap transport queue works attack_ring \
	attack_transport attack_pci attack_blk attack_net attack_small attack_p9 attack_ports attack_cpu \
	attack_simd attack_simd_memory attack_stack attack_race stack ap villain_user)

$(BUILD)/guest/villain/villain_user.o: DEMO_MODEL := -mcmodel=small

$(BUILD)/guest/villain/%.o: guest/villain/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -fno-tree-loop-distribute-patterns $(DEMO_MODEL) -c -o $@ $<

$(BUILD)/guest/villain/%.o: guest/villain/%.S guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -c -o $@ $<

$(BUILD)/guest/villain.elf: $(VILLAIN_OBJS) guest/demo/demo.lds
	@echo "  GUEST $@"
	@$(GUEST_CC) $(DEMO_LDFLAGS) -T guest/demo/demo.lds -o $@ $(VILLAIN_OBJS)

# A 32-bit kernel, for multiboot and PVH; mb.bin: the same as a flat image.
MB_OBJS := $(BUILD)/guest/mb/start.o $(BUILD)/guest/mb/main.o
MB_FLAGS := -m32 -march=i686 -fno-ipa-icf -Wno-int-to-pointer-cast -Wno-pointer-to-int-cast

$(BUILD)/guest/mb/%.o: guest/mb/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(filter-out -mno-red-zone,$(GUEST_COMMON)) $(MB_FLAGS) -c -o $@ $<

$(BUILD)/guest/mb/%.o: guest/mb/%.S guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) -m32 -c -o $@ $<

$(BUILD)/guest/mb.elf: $(MB_OBJS) guest/mb/mb.lds
	@echo "  GUEST $@"
	@$(GUEST_CC) -m32 $(DEMO_LDFLAGS) -Wl,--no-warn-rwx-segments -T guest/mb/mb.lds -o $@ $(MB_OBJS)

$(BUILD)/guest/mb.bin: $(BUILD)/guest/mb.elf
	@echo "  GUEST $@"
	@objcopy -O binary $< $@

$(BUILD)/guest/init.d/%.o: guest/init/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -c -o $@ $<

INIT_OBJS := $(patsubst %,$(BUILD)/guest/init.d/%.o,init phases)

# The program is build/guest/init, and a directory cannot have that name too: so
# the objects are in init.d.
$(BUILD)/guest/init: $(INIT_OBJS)
	@echo "  GUEST $@"
	@$(GUEST_CC) -nostdlib -static -no-pie -Wl,--build-id=sha1 -Wl,-z,noexecstack -o $@ $(INIT_OBJS)

$(BUILD)/guest/exec/%.o: guest/exec/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -fno-tree-loop-distribute-patterns -c -o $@ $<

# The init of `kvmprof run --exec`; it travels inside the program, without its debug information.
EXEC_OBJS := $(patsubst %,$(BUILD)/guest/exec/%.o,exec end mount text)
$(BUILD)/guest/exec-init: $(EXEC_OBJS)
	@echo "  GUEST $@"
	@$(GUEST_CC) -nostdlib -static -no-pie -Wl,--build-id=sha1 -Wl,-z,noexecstack -Wl,-S -o $@ $(EXEC_OBJS)

$(BUILD)/guest/initramfs.cpio: $(BUILD)/guest/init scripts/mkinitramfs.py
	@echo "  GUEST $@"
	@$(PYTHON) scripts/mkinitramfs.py $(BUILD)/guest/init $@

# The /init of tests of disks.
$(BUILD)/guest/disk.d/%.o: guest/disk/%.c guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(GUEST_COMMON) -c -o $@ $<

$(BUILD)/guest/disk: $(BUILD)/guest/disk.d/disk.o
	@echo "  GUEST $@"
	@$(GUEST_CC) -nostdlib -static -no-pie -Wl,--build-id=sha1 -Wl,-z,noexecstack -o $@ $<

$(BUILD)/guest/disk.cpio: $(BUILD)/guest/disk scripts/mkinitramfs.py
	@echo "  GUEST $@"
	@$(PYTHON) scripts/mkinitramfs.py $< $@

# An ordinary program with a library of its own, as distributions build them but for
# frame pointers. "-z now": no lazy binding frames in its stacks.
WORKER_FLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g $(GUEST_WARN) -fno-omit-frame-pointer \
	-mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls \
	-fdebug-prefix-map=$(CURDIR)=. -Wl,--build-id=sha1 -Wl,-z,now
WORKER_SRC := guest/worker/worker.c guest/worker/roles.c guest/worker/waits.c guest/worker/turns.c
C_LIBRARY = $(shell $(GUEST_CC) -print-file-name=libc.so.6)
# The name in the psABI.
LD_SO := /lib64/ld-linux-x86-64.so.2

$(BUILD)/guest/libhot.so: guest/worker/libhot.c guest/worker/worker.h guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(WORKER_FLAGS) -fPIC -shared -Wl,-soname,libhot.so -o $@ $<

# Two that differ in their names only.
$(BUILD)/guest/libone.so $(BUILD)/guest/libtwo.so: $(BUILD)/guest/lib%.so: guest/worker/libturn.c \
		guest/worker/worker.h guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) $(WORKER_FLAGS) -fPIC -shared -DTURN=turn_$* -o $@ $<

$(BUILD)/guest/worker: $(WORKER_SRC) $(BUILD)/guest/libhot.so
	@echo "  GUEST $@"
	@$(GUEST_CC) $(WORKER_FLAGS) -fPIE -pie -pthread -o $@ $^

$(BUILD)/guest/worker.cpio: $(BUILD)/guest/worker $(BUILD)/guest/libhot.so $(BUILD)/guest/libone.so \
		$(BUILD)/guest/libtwo.so scripts/mkinitramfs.py
	@echo "  GUEST $@"
	@$(PYTHON) scripts/mkinitramfs.py $< $@ bin/worker=$< lib/libhot.so=$(BUILD)/guest/libhot.so \
		lib/libone.so=$(BUILD)/guest/libone.so lib/libtwo.so=$(BUILD)/guest/libtwo.so \
		lib/x86_64-linux-gnu/libc.so.6=$(C_LIBRARY) $(LD_SO)=$(LD_SO)

# Static: what it is for are the kernel's drivers.
$(BUILD)/guest/devices: guest/devices/devices.c guest/devices/net.c guest/devices/devices.h guest/linux_init.h \
	guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(GUEST_WARN) -fdebug-prefix-map=$(CURDIR)=. -static \
		-Wl,--build-id=sha1 -o $@ $(filter %.c,$^)

$(BUILD)/guest/devices.cpio: $(BUILD)/guest/devices scripts/mkinitramfs.py
	@echo "  GUEST $@"
	@$(PYTHON) scripts/mkinitramfs.py $< $@

# Static as well: it has the kernel make code.
$(BUILD)/guest/made: guest/made/made.c guest/linux_init.h guest/guest.mk
	@mkdir -p $(@D)
	@echo "  GUEST $@"
	@$(GUEST_CC) -std=gnu11 -D_GNU_SOURCE -O2 -g $(GUEST_WARN) -fdebug-prefix-map=$(CURDIR)=. -static \
		-Wl,--build-id=sha1 -o $@ $<

$(BUILD)/guest/made.cpio: $(BUILD)/guest/made scripts/mkinitramfs.py
	@echo "  GUEST $@"
	@$(PYTHON) scripts/mkinitramfs.py $< $@

-include $(DEMO_OBJS:.o=.d) $(BLK_OBJS:.o=.d) $(VILLAIN_OBJS:.o=.d) $(MB_OBJS:.o=.d) $(INIT_OBJS:.o=.d) $(EXEC_OBJS:.o=.d) $(BUILD)/guest/disk.d/disk.d

# For prerequisites that all of it has.
GUEST_BUILT := $(DEMO_OBJS) $(BLK_OBJS) $(VILLAIN_OBJS) $(MB_OBJS) $(INIT_OBJS) $(EXEC_OBJS) $(BUILD)/guest/disk.d/disk.o \
	$(patsubst %,$(BUILD)/guest/%,libhot.so libone.so libtwo.so devices made)
