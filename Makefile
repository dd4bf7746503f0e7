# SPDX-License-Identifier: GPL-2.0-or-later
# kvmprof: `make help` lists what can be made.

BUILD ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := all

# -- what the code is built with ------------------------------------------------
OPT ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wsign-compare -Wmissing-prototypes -Wformat=2 -Werror
CPPFLAGS_ALL := -I. -D_GNU_SOURCE -DKVMPROF_VERSION='"$(shell cat VERSION 2>/dev/null || echo 0)"'
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -fno-omit-frame-pointer -pthread $(SAN) $(CFLAGS)
LIBS := -lcapstone -lzstd -llzma -llz4 -lbz2 -lz -lm -pthread
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all

LIB_SRC := $(sort $(filter-out profile/main.c,$(wildcard base/*.c vmm/*.c vmm/*/*.c symbolizer/*.c profile/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
LIB := $(BUILD)/libkvmprof.a
DEMO_OBJ := $(BUILD)/obj/demo_blob.o

UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)

.PHONY: all help deps deps-demo deps-test clean install
all: $(BUILD)/kvmprof $(BUILD)/guest/init $(BUILD)/guest/initramfs.cpio

include guest/guest.mk

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make              build build/kvmprof and the guest programs (needs `make deps` once)
## make deps         install what the build needs, through apt
deps:
	@scripts/deps.sh build
deps-demo:
	@scripts/deps.sh demo
deps-test:
	@scripts/deps.sh test

# -- the program ----------------------------------------------------------------
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(LIB): $(LIB_OBJ)
	@rm -f $@
	@$(AR) rcs $@ $(LIB_OBJ)

# The demo guest travels inside the program.
$(DEMO_OBJ): $(BUILD)/guest/demo.elf
	@mkdir -p $(@D)
	@printf '.section .rodata\n.balign 4096\n.global demo_elf, demo_elf_end\ndemo_elf:\n.incbin "%s"\ndemo_elf_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

$(BUILD)/kvmprof: $(BUILD)/obj/profile/main.o $(LIB) $(DEMO_OBJ)
	@echo "  LD    $@"
	@$(CC) $(CFLAGS_ALL) $(LDFLAGS) $< $(DEMO_OBJ) $(LIB) $(LIBS) -o $@

# -- tests ----------------------------------------------------------------------
$(BUILD)/unit/%: tests/unit/%.c $(LIB) $(DEMO_OBJ)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< $(DEMO_OBJ) $(LIB) $(LIBS) -lcmocka -o $@

$(BUILD)/fuzz/%: tests/fuzz/%.c tests/fuzz/main.c $(LIB)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $< tests/fuzz/main.c $(LIB) $(LIBS) -o $@

.PHONY: unit-bins fuzz-bins
unit-bins: $(UNIT_BIN)
fuzz-bins: $(FUZZ_BIN)

clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(BUILD)/obj/profile/main.d $(UNIT_BIN:=.d)
