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
# Each compiler has new warnings, so they stop a build only where WERROR=1 asks for it, as .ci/run does.
WERROR ?=
WERROR_FLAG := $(if $(filter-out 0,$(WERROR)),-Werror)
# The last is for clang: KVM's headers are used with such structures, as gcc allows.
WARN := -Wall -Wextra -Wshadow -Wsign-compare -Wmissing-prototypes -Wformat=2 $(WERROR_FLAG) \
	-Wno-gnu-variable-sized-type-not-at-end
CPPFLAGS_ALL := -I. -I$(BUILD)/gen -I/usr/include/libxml2 -D_GNU_SOURCE -DKVMPROF_VERSION='"$(shell cat VERSION 2>/dev/null || echo 0)"'
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -fno-omit-frame-pointer -pthread $(SAN) $(CFLAGS)
# For profile/*/*.cc, which the C compiler's driver compiles as well.
CXXFLAGS_ALL = -std=gnu++17 $(OPT) $(filter-out -Wmissing-prototypes,$(WARN)) -fno-omit-frame-pointer \
	-pthread $(SAN) $(CXXFLAGS)
# PVM=0 leaves vmm/pvm out, all that only hosts need whose KVM interprets ring 0; pvm_none.c is in its place.
PVM ?= 1
ifeq ($(PVM),0)
LEFT_OUT := vmm/pvm/% tests/unit/pvm/% tests/fuzz/fuzz_simd_form.c
else
LEFT_OUT := vmm/pvm_none.c
PVM_OBJ := $(BUILD)/obj/peek_object.o
endif
# A build directory is of one kind: another one makes its library anew. tests/run.py looks for this, too.
PVM_STAMP := $(BUILD)/pvm-$(PVM)

# The little of it that is used, where there is an archive: the library as a whole takes 0.7 MiB of memory more. It
# stays one where sanitizers look at what it throws.
STDCXX := $(if $(or $(SAN),$(filter-out /%,$(shell $(CC) -print-file-name=libstdc++.a))),-lstdc++,-static-libgcc \
	-Wl,-Bstatic -lstdc++ -Wl,-Bdynamic)
LIBS := -lbpf -lseccomp -lblkid -lext2fs -lcom_err -ljansson -lncursesw -ltinfo -lnettle -ldw -lelf -liberty -lzstd -llzma -llz4 -lbz2 -lprotobuf-c -lz $(STDCXX) -lm -pthread
# What the program loads when it needs it (base/library.h), and some tests call by themselves.
TEST_LIBS := -lcapstone -larchive
# What it says of fences holds for memory of the guest alone, which it does not watch.
TSAN := -fsanitize=thread -Wno-tsan
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all

LIB_SRC := $(sort $(filter-out profile/cmd/main.c $(LEFT_OUT),$(wildcard base/*.c vmm/*.c vmm/*/*.c symbolizer/*/*.c profile/*/*.c profile/*/*/*.c)))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/flamegraph_js.o
ASM_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard vmm/pvm/*.S)))
LIB_OBJ += $(ASM_SRC:%.S=$(BUILD)/obj/%.o)
CXX_SRC := $(sort $(wildcard profile/*/*.cc profile/*/*/*.cc))
LIB_OBJ += $(CXX_SRC:%.cc=$(BUILD)/obj/%.o) $(BUILD)/obj/gate_default.o $(BUILD)/obj/gate_exact.o $(BUILD)/obj/exec_init.o \
	$(BUILD)/obj/slots_object.o $(PVM_OBJ)
# What protoc-c makes of a schema; pprof.pb-c.h is found through -I.
GEN := $(BUILD)/gen
PB_OBJ := $(BUILD)/obj/pprof.pb-c.o
LIB_OBJ += $(PB_OBJ)
LIB := $(BUILD)/libkvmprof.a
DEMO_OBJ := $(BUILD)/obj/demo_blob.o
# Beside the program of a build with ThreadSanitizer.
SAN_OBJ := $(if $(findstring thread,$(SAN)),$(BUILD)/obj/tests/e2e/tsan_shim.o)

UNIT_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c)))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
FUZZ_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
FUZZ_MAIN = $(BUILD)/obj/tests/fuzz/main.o
BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard tests/bench/bench_*.c)))
BENCH_SCRIPT := $(sort $(wildcard tests/bench/bench_*.sh tests/bench/bench_*.py))
C_FILES := $(sort $(wildcard $(addsuffix /*.[ch],base vmm vmm/* symbolizer/* profile/* profile/*/* tests/* tests/unit/*)))
FORMAT_FILES := $(C_FILES) $(CXX_SRC)

.PHONY: all help deps deps-test clean install
all: $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so $(BUILD)/guest/init $(BUILD)/guest/initramfs.cpio $(BUILD)/guest/worker.cpio $(BUILD)/guest/mb.elf $(BUILD)/guest/mb.bin \
	$(BUILD)/guest/disk.cpio $(BUILD)/guest/devices.cpio $(BUILD)/guest/made.cpio $(BUILD)/guest/blk.elf \
	$(BUILD)/guest/villain.elf

include guest/guest.mk

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make              build build/kvmprof and the guest programs (needs `make deps` once)
##                   WERROR=1: compiler warnings are errors
##                   PVM=0: for hosts with VMX or SVM alone, without vmm/pvm
## make deps         install what the build needs, through apt
deps:
	@scripts/deps.sh build
## make deps-test    what the tests need in addition
deps-test:
	@scripts/deps.sh test

# -- the program ----------------------------------------------------------------
# Objects are kept even where make sees them as intermediate: the library is made of them.
.SECONDARY:

$(GEN)/%.pb-c.c: profile/analyse/export/%.proto
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	@protoc-c --c_out=$(GEN) -Iprofile/analyse/export $<

$(PB_OBJ): $(GEN)/pprof.pb-c.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/obj/profile/analyse/export/pprof.o: $(GEN)/pprof.pb-c.c

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.S
	@mkdir -p $(@D)
	@echo "  AS    $<"
	@$(CC) $(CPPFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cc
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	@$(CC) $(CPPFLAGS_ALL) $(CXXFLAGS_ALL) -MMD -MP -c $< -o $@

# It stands in profiles, and in what --version says.
$(LIB_OBJ) $(BUILD)/obj/profile/cmd/main.o: VERSION

$(PVM_STAMP):
	@mkdir -p $(@D)
	@rm -f $(BUILD)/pvm-*
	@touch $@

$(LIB): $(LIB_OBJ) $(PVM_STAMP)
	@rm -f $@
	@$(AR) rcs $@ $(LIB_OBJ)

# The script that pictures carry travels inside the program.
$(BUILD)/obj/flamegraph_js.o: profile/analyse/flame/flamegraph.js
	@mkdir -p $(@D)
	@printf '.section .rodata\n.global flamegraph_js, flamegraph_js_end\nflamegraph_js:\n.incbin "%s"\nflamegraph_js_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

# So do the rules that a gate has when none are given.
$(BUILD)/obj/gate_default.o: configs/gate-default.toml
	@mkdir -p $(@D)
	@printf '.section .rodata\n.global gate_default_toml, gate_default_toml_end\ngate_default_toml:\n.incbin "%s"\ngate_default_toml_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

$(BUILD)/obj/gate_exact.o: configs/gate-exact.toml
	@mkdir -p $(@D)
	@printf '.section .rodata\n.global gate_exact_toml, gate_exact_toml_end\ngate_exact_toml:\n.incbin "%s"\ngate_exact_toml_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

# And the init that runs --exec's command.
$(BUILD)/obj/exec_init.o: $(BUILD)/guest/exec-init
	@mkdir -p $(@D)
	@printf '.section .rodata\n.balign 16\n.global exec_init, exec_init_end\nexec_init:\n.incbin "%s"\nexec_init_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

# And the programs that attach runs in the kernel. They need nothing of this machine's kernel.
CLANG ?= clang
$(BUILD)/bpf/peek.o: vmm/pvm/bpf/peek.bpf.c vmm/pvm/peek_record.h vmm/attach/peek_status.h vmm/attach/bpf/kernel.bpf.h
$(BUILD)/bpf/slots.o: vmm/attach/bpf/slots.bpf.c vmm/attach/slots_record.h vmm/attach/bpf/kernel.bpf.h
$(BUILD)/bpf/%.o:
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	@$(CLANG) -target bpf -O2 -g -Wall -Wextra $(WERROR_FLAG) -I. -c $< -o $@

$(BUILD)/obj/%_object.o: $(BUILD)/bpf/%.o
	@mkdir -p $(@D)
	@printf '.section .rodata\n.balign 16\n.global $*_object, $*_object_end\n$*_object:\n.incbin "%s"\n$*_object_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

# The demo guest travels inside the program.
$(DEMO_OBJ): $(BUILD)/guest/demo.elf
	@mkdir -p $(@D)
	@printf '.section .rodata\n.balign 4096\n.global demo_elf, demo_elf_end\ndemo_elf:\n.incbin "%s"\ndemo_elf_end:\n.section .note.GNU-stack,"",@progbits\n' $< \
		| $(CC) -c -x assembler - -o $@

$(BUILD)/kvmprof: $(BUILD)/obj/profile/cmd/main.o $(LIB) $(DEMO_OBJ) $(SAN_OBJ)
	@echo "  LD    $@"
	@$(CC) $(CFLAGS_ALL) $(LDFLAGS) $< $(DEMO_OBJ) $(SAN_OBJ) $(LIB) $(LIBS) -o $@

# What QEMU loads for --engine exact: freestanding but for libc, its names are QEMU's.
$(BUILD)/kvmprof-exact.so: $(wildcard vmm/exact/plugin/*.[ch]) vmm/exact/shared.h vmm/exact/trace.h vmm/layout.h \
		$(foreach x,blockend calltree callstacks callstacks_blocks callstacks_stacks countfile,vmm/exact/$x.c) \
		$(foreach x,blockend calltree callstacks callstacks_private countfile,vmm/exact/$x.h) \
		base/array.c base/array.h base/err.c base/err.h
	@mkdir -p $(@D)
	@echo "  PLUGIN $@"
	@$(CC) -I. -D_GNU_SOURCE -std=gnu11 $(OPT) $(WARN) -fPIC -shared -fvisibility=hidden $(CFLAGS) \
		$(filter %.c,$^) -o $@

# -- tests ----------------------------------------------------------------------
$(BUILD)/unit/%: tests/unit/%.c $(LIB) $(DEMO_OBJ)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< $(DEMO_OBJ) $(LIB) $(LIBS) $(TEST_LIBS) -lcmocka -o $@

# A target with a main() that runs it over files; `make fuzz` has libFuzzer's instead.
$(BUILD)/fuzz/%: tests/fuzz/%.c $(FUZZ_MAIN) $(LIB)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< $(FUZZ_MAIN) $(FUZZ_LINK) $(LIB) $(LIBS) $(TEST_LIBS) -o $@

$(BUILD)/bench/%: tests/bench/%.c $(LIB) $(DEMO_OBJ)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< $(DEMO_OBJ) $(LIB) $(LIBS) -o $@

# Objects are kept, also those that only a program's rule asks for.
.SECONDARY:
.PHONY: unit-bins fuzz-bins asan test-bins check test test-slow fuzz bench check-format
unit-bins: $(UNIT_BIN)
fuzz-bins: $(FUZZ_BIN)

# As many jobs as processors, unless the user said how many.
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

test-bins: all unit-bins asan

## make check        rules of the source, unit tests and corpora: installs nothing, needs no KVM, no root
##                   and no network; a minute once it is built
check:
	@$(MAKE) $(JOBS) unit-bins fuzz-bins
	@tests/run.py --build $(BUILD) --check $(TESTS)

## make test         all tests (installs what they need; 30 minutes, and 10 more once)
##                   TESTS="unit e2e/demo": only those whose name contains one of these
##                   NO_SKIP=1: what is skipped and not in tests/skips.txt fails
test: deps-test
	@$(MAKE) $(JOBS) test-bins
	@CC="$(CC)" LIBS="$(LIBS)" tests/run.py --build $(BUILD) $(if $(filter-out 0,$(NO_SKIP)),--no-skip) $(TESTS)

## make test-slow    30 boots with two CPUs, boots with four and eight, Debian's kernels to the end,
##                   10,000 times attached and detached, QEMU's gdbstub
test-slow: deps-test
	@$(MAKE) $(JOBS) all unit-bins asan-program tsan-program
	@tests/run.py --build $(BUILD) --slow $(TESTS)

## make asan         the program, unit tests and fuzz targets with sanitizers, in build/asan
asan:
	@$(MAKE) BUILD=$(BUILD)/asan SAN="$(ASAN)" OPT="-O1 -g" $(BUILD)/asan/kvmprof unit-bins fuzz-bins

# The program alone, for tests that take it and nothing else of that build.
.PHONY: asan-program
asan-program:
	@$(MAKE) BUILD=$(BUILD)/asan SAN="$(ASAN)" OPT="-O1 -g" $(BUILD)/asan/kvmprof

# The same with ThreadSanitizer.
.PHONY: tsan-program
tsan-program:
	@$(MAKE) BUILD=$(BUILD)/tsan SAN="$(TSAN)" OPT="-O1 -g" $(BUILD)/tsan/kvmprof

## make fuzz         fuzz targets (FUZZ_TARGETS; all) with libFuzzer, each for FUZZ_SECONDS (60) of a processor; needs clang
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
fuzz: deps-test
	@$(MAKE) $(JOBS) BUILD=$(BUILD)/libfuzzer CC=clang OPT="-O1 -g" FUZZ_MAIN= \
		FUZZ_LINK="-fsanitize=fuzzer -fsanitize-link-c++-runtime" SAN="$(ASAN) -fsanitize=fuzzer-no-link" fuzz-bins
	@tests/fuzz/fuzz.py $(BUILD)/libfuzzer $(FUZZ_SECONDS) $(FUZZ_TARGETS)

## make bench        start-up, memory, lost samples, sizes, speeds: medians and spread
bench: deps-test
	@$(MAKE) $(JOBS) all $(BENCH_BIN)
	@for b in $(BENCH_SCRIPT); do \
		echo "== $$b"; LIBS="$(LIBS)" $$b $(BUILD)/kvmprof $(BUILD)/bench-tmp || exit 1; \
	done
	@for b in $(BENCH_BIN); do echo "== $$b"; $$b || exit 1; done

# For tests that compile something by themselves.
.PHONY: print-libs
print-libs:
	@echo $(LIBS)

## make check-format what clang-format would change (needs clang-format)
check-format:
	@clang-format --dry-run -Werror $(FORMAT_FILES)

# -- for people -------------------------------------------------------------------
## make demo         profile the demo guest, show where its time went, and how to go on
DEMO_SECONDS ?= 10
.PHONY: demo
demo: deps
	@$(MAKE) $(JOBS) $(BUILD)/kvmprof
	$(BUILD)/kvmprof run --append "seconds=$(DEMO_SECONDS)" -o $(BUILD)/demo.data
	$(BUILD)/kvmprof report -n 20 -i $(BUILD)/demo.data
	@echo
	@echo "The guest printed the truth above: compare the lines \`truth' with the table."
	@echo "perf, where it is installed, reads the same file:  perf report -i $(BUILD)/demo.data"

## make docs-pictures  the pictures of the documents: terminals, and a boot of Debian's kernel (minutes)
.PHONY: docs-pictures
docs-pictures: deps-test
	@$(MAKE) $(JOBS) all
	@scripts/terminal-pictures.py $(BUILD)/kvmprof docs/pictures
	@set -e; d=$$(scripts/fetch-debian-kernel.sh 6.1); \
	$(BUILD)/kvmprof run -q $$d/vmlinuz-* --initrd $(BUILD)/guest/initramfs.cpio -o $(BUILD)/boot.data; \
	$(BUILD)/kvmprof flamegraph -i $(BUILD)/boot.data --min-width 1.5 -o docs/pictures/boot.svg \
		--title "Debian's 6.1 cloud kernel, from its first instruction to /init"

## make install      program, manual pages, shell completion, gate rules; PREFIX=/usr/local, DESTDIR=
install: $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so
	install -D -m 755 $(BUILD)/kvmprof $(DESTDIR)$(PREFIX)/bin/kvmprof
	install -D -m 644 $(BUILD)/kvmprof-exact.so $(DESTDIR)$(PREFIX)/lib/kvmprof/kvmprof-exact.so
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	@# The version stands in VERSION alone.
	for page in docs/kvmprof.1 docs/man/*.1; do \
		sed "/^\.TH/s/\"kvmprof\"/\"kvmprof $$(cat VERSION)\"/" $$page \
			>$(DESTDIR)$(PREFIX)/share/man/man1/$${page##*/} && \
		chmod 644 $(DESTDIR)$(PREFIX)/share/man/man1/$${page##*/} || exit 1; \
	done
	install -D -m 644 configs/completion/kvmprof.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kvmprof
	install -D -m 644 configs/completion/_kvmprof $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kvmprof
	install -d $(DESTDIR)$(PREFIX)/share/kvmprof/ci
	install -m 644 configs/gate-*.toml $(DESTDIR)$(PREFIX)/share/kvmprof
	install -m 644 configs/ci/*.yml $(DESTDIR)$(PREFIX)/share/kvmprof/ci

## make dist         build/kvmprof-VERSION.tar.gz, which builds without git
## make deb          build/kvmprof_VERSION_amd64.deb and kvmprof-exact's; needs debhelper
.PHONY: dist deb
dist deb:
	@scripts/package.sh $@ $(BUILD)

# The version is a string, whose quotes would need three levels of escapes; any
# other string serves a checker as well.
## make compile_commands.json   for clangd and clang-tidy
compile_commands.json: Makefile
	@{ sep='['; for f in $(filter %.c,$(C_FILES)); do \
		printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$sep" "$(CURDIR)" \
			"$$f" "$(CC) -I. -I$(GEN) -I/usr/include/libxml2 -D_GNU_SOURCE -DKVMPROF_VERSION=__FILE__ -std=gnu11 $(WARN)" "$$f"; \
		sep=','; done; printf '\n]\n'; } > $@

## make clean        remove build/
clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(BUILD)/obj/profile/cmd/main.d $(BUILD)/obj/tests/fuzz/main.d
-include $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(BENCH_BIN:=.d)
