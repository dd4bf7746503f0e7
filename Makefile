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
# Hardening, which tests/check-binary.py verifies in the program. Flags that not every compiler accepts are tried first.
# -ftrivial-auto-var-init=zero is left out: a sample took 12 % more instructions with it. FORTIFY needs an optimizing build. Builds with
# sanitizers have none of it: those find more by themselves, and do not know the functions that FORTIFY calls.
HARDEN_FOUND := $(shell for f in -fstack-clash-protection -fcf-protection \
	-D_FORTIFY_SOURCE=3 -D_FORTIFY_SOURCE=2; do \
	$(CC) -Werror -O2 -U_FORTIFY_SOURCE $$f -include string.h -x c -S -o /dev/null /dev/null 2>/dev/null && echo "$$f"; done)
HARDEN_FORTIFY := $(firstword $(filter -D_FORTIFY_SOURCE=%,$(HARDEN_FOUND)))
HARDEN = $(if $(SAN),,-fstack-protector-strong $(filter-out -D%,$(HARDEN_FOUND)) \
	$(if $(filter -O1 -O2 -O3 -Os -Ofast,$(OPT)),-U_FORTIFY_SOURCE $(HARDEN_FORTIFY)))
HARDEN_LINK := -Wl,-z,relro,-z,now,-z,noexecstack
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) -fno-omit-frame-pointer -fPIE -pthread $(HARDEN) $(SAN) $(CFLAGS)
# For C++ sources, which the C compiler's driver compiles as well.
CXXFLAGS_ALL = -std=gnu++17 $(OPT) $(filter-out -Wmissing-prototypes,$(WARN)) -fno-omit-frame-pointer \
	-fPIE -pthread $(HARDEN) $(SAN) $(CXXFLAGS)
# PVM=0 leaves vmm/pvm out, all that only hosts need whose KVM interprets ring 0; pvm_none.c is in its place.
PVM ?= 1
ifeq ($(PVM),0)
LEFT_OUT := vmm/pvm/% tests/unit/vmm/pvm/% tests/fuzz/fuzz_simd_form.c
else
LEFT_OUT := vmm/pvm_none.c
PVM_OBJ := $(BUILD)/obj/peek_object.o
endif
# A build directory is of one kind: another one makes its library anew. tests/run.py looks for this, too.
PVM_STAMP := $(BUILD)/pvm-$(PVM)

# The little of it that is used, where there is an archive: the library as a whole takes 0.7 MiB of memory more. It
# stays one where sanitizers look at what it throws.
STDCXX := $(if $(or $(SAN),$(filter-out /%,$(shell $(CC) -print-file-name=libstdc++.a 2>/dev/null))),-lstdc++,-static-libgcc \
	-Wl,-Bstatic -lstdc++ -Wl,-Bdynamic)
LIBS := -lbpf -ljansson -ldw -lelf -liberty -lzstd -llzma -llz4 -lbz2 -lprotobuf-c -lz $(STDCXX) -lm -pthread
# What the program loads when it needs it (base/library.h), and some tests call by themselves.
TEST_LIBS := -lcapstone -larchive -lseccomp
# What it says of fences holds for memory of the guest alone, which it does not watch.
TSAN := -fsanitize=thread -Wno-tsan
ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all

# The folders that have sources of the program; tests/unit has the same.
ROOMS := base vmm $(patsubst %/,%,$(wildcard vmm/*/ symbolizer/*/ profile/*/ profile/*/*/))
LIB_SRC := $(sort $(filter-out profile/cmd/main.c $(LEFT_OUT),$(wildcard $(ROOMS:=/*.c))))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
ASM_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard vmm/pvm/*.S)))
LIB_OBJ += $(ASM_SRC:%.S=$(BUILD)/obj/%.o)
CXX_SRC := $(sort $(wildcard $(ROOMS:=/*.cc)))
LIB_OBJ += $(CXX_SRC:%.cc=$(BUILD)/obj/%.o)
# Files that travel inside the program (see `embed').
LIB_OBJ += $(patsubst %,$(BUILD)/obj/%.o,flamegraph_js html_markup html_style html_script gate_default_toml gate_exact_toml gate_vmm_toml exec_init slots_object) $(PVM_OBJ)
# What protoc-c makes of a schema; pprof.pb-c.h is found through -I.
GEN := $(BUILD)/gen
PB_OBJ := $(BUILD)/obj/pprof.pb-c.o
LIB_OBJ += $(PB_OBJ)
LIB := $(BUILD)/libkvmprof.a
DEMO_OBJ := $(BUILD)/obj/demo_elf.o
# Beside the program of a build with ThreadSanitizer.
SAN_OBJ := $(if $(findstring thread,$(SAN)),$(BUILD)/obj/tests/e2e/tsan_shim.o)

UNIT_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard $(ROOMS:%=tests/unit/%/test_*.c))))
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
FUZZ_SRC := $(sort $(filter-out $(LEFT_OUT),$(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/fuzz/%)
FUZZ_MAIN = $(BUILD)/obj/tests/fuzz/main.o $(BUILD)/obj/tests/fuzz/mutate.o
BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard tests/bench/bench_*.c)))
BENCH_SCRIPT := $(sort $(wildcard tests/bench/bench_*.sh tests/bench/bench_*.py))
C_FILES := $(sort $(wildcard $(addsuffix /*.[ch],$(ROOMS) $(ROOMS:%=tests/unit/%) tests/*)))
FORMAT_FILES := $(C_FILES) $(CXX_SRC)

.PHONY: all help deps deps-test clean install uninstall
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

# What is missing is named by its package, before a compiler does not find it. Once it was all there, the stamp says so.
NEEDS := $(BUILD)/needs-build
$(BUILD)/needs-%: scripts/needs.sh
	@mkdir -p $(@D)
	@CC="$(CC)" scripts/needs.sh $*
	@touch $@

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

# The names of system calls, for messages of the sandbox: [number] = "name",
$(GEN)/syscall_names.h:
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	@echo '#include <asm/unistd_64.h>' | $(CC) -E -dM -x c - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/[\2] = "\1",/p' >$@.tmp
	@grep -q '"read"' $@.tmp && mv $@.tmp $@

$(BUILD)/obj/profile/record/sandbox/filter.o: $(GEN)/syscall_names.h

# It stands in profiles, and in what --version says.
$(LIB_OBJ) $(BUILD)/obj/profile/cmd/main.o: VERSION
$(LIB_OBJ) $(BUILD)/obj/profile/cmd/main.o $(GEN)/pprof.pb-c.c $(BUILD)/kvmprof-exact.so $(GUEST_BUILT): | $(NEEDS)
$(UNIT_BIN) $(FUZZ_BIN): | $(BUILD)/needs-check

# Objects of other hardening, those of an earlier version among them, are made anew. The rule is for a new directory: in
# an old one make does not miss a file that is intermediate to it.
HARDEN_STAMP := $(BUILD)/harden-$(firstword $(shell echo '$(HARDEN) $(HARDEN_LINK)' | cksum))
$(shell [ ! -d $(BUILD)/obj ] || [ -e $(HARDEN_STAMP) ] || { rm -f $(BUILD)/harden-*; touch $(HARDEN_STAMP); })
$(LIB_OBJ) $(BUILD)/obj/profile/cmd/main.o $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so: $(HARDEN_STAMP)
$(HARDEN_STAMP):
	@mkdir -p $(@D)
	@rm -f $(BUILD)/harden-*
	@touch $@

$(PVM_STAMP):
	@mkdir -p $(@D)
	@rm -f $(BUILD)/pvm-*
	@touch $@

$(LIB): $(LIB_OBJ) $(PVM_STAMP)
	@rm -f $@
	@$(AR) rcs $@ $(LIB_OBJ)

# The page of `kvmprof view'. Its script is one function, so that its parts know each other and nothing else does. The
# page names the hashes of script and style, so that a browser runs nothing else.
HTML := profile/analyse/html
HTML_JS := $(patsubst %,$(HTML)/%.js,store dom model time flame tables code where app)
$(GEN)/page.js: $(HTML_JS)
	@mkdir -p $(@D)
	@{ echo '(function () {' && echo '"use strict";' && cat $(HTML_JS) && echo '})();'; } >$@.tmp && mv $@.tmp $@
$(GEN)/html_hashes.h: $(GEN)/page.js $(HTML)/page.css
	@for f in SCRIPT:$(GEN)/page.js STYLE:$(HTML)/page.css; do printf '#define HTML_%s_HASH "%s"\n' $${f%%:*} \
		"$$(sha256sum <$${f#*:} | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64)"; done >$@.tmp && mv $@.tmp $@
$(BUILD)/obj/$(HTML)/html.o: $(GEN)/html_hashes.h

# $(call embed,SYMBOL,FILE[,ALIGN]): an object with FILE's bytes, which travel inside the program.
define embed
$(BUILD)/obj/$(1).o: $(2) scripts/embed.S
	@mkdir -p $$(@D)
	@$$(CC) -c -DSYMBOL=$(1) -DFILE='"$(2)"' -DALIGN=$(or $(3),1) scripts/embed.S -o $$@

endef
$(eval $(call embed,flamegraph_js,profile/analyse/flame/flamegraph.js))
$(eval $(call embed,html_markup,$(HTML)/page.html))
$(eval $(call embed,html_style,$(HTML)/page.css))
$(eval $(call embed,html_script,$(GEN)/page.js))
$(eval $(call embed,gate_default_toml,configs/gate-default.toml))
$(eval $(call embed,gate_exact_toml,configs/gate-exact.toml))
$(eval $(call embed,gate_vmm_toml,configs/gate-vmm.toml))
$(eval $(call embed,exec_init,$(BUILD)/guest/exec-init,16))
$(eval $(call embed,slots_object,$(BUILD)/bpf/slots.o,16))
$(eval $(call embed,peek_object,$(BUILD)/bpf/peek.o,16))
$(eval $(call embed,demo_elf,$(BUILD)/guest/demo.elf,4096))

# The programs that attach runs in the kernel need nothing of this machine's kernel.
CLANG ?= clang
$(BUILD)/bpf/peek.o: vmm/pvm/bpf/peek.bpf.c vmm/pvm/peek_record.h vmm/attach/peek_status.h vmm/attach/bpf/kernel.bpf.h
$(BUILD)/bpf/slots.o: vmm/attach/bpf/slots.bpf.c vmm/attach/slots_record.h vmm/attach/bpf/kernel.bpf.h
$(BUILD)/bpf/%.o:
	@mkdir -p $(@D)
	@echo "  BPF   $<"
	@$(CLANG) -target bpf -O2 -g -Wall -Wextra $(WERROR_FLAG) -I. -c $< -o $@

$(BUILD)/kvmprof: $(BUILD)/obj/profile/cmd/main.o $(LIB) $(DEMO_OBJ) $(SAN_OBJ)
	@echo "  LD    $@"
	@$(CC) $(CFLAGS_ALL) -pie $(HARDEN_LINK) $(LDFLAGS) $< $(DEMO_OBJ) $(SAN_OBJ) $(LIB) $(LIBS) -o $@

# What QEMU loads for --engine exact: freestanding but for libc, its names are QEMU's.
$(BUILD)/kvmprof-exact.so: $(wildcard vmm/exact/plugin/*.[ch]) vmm/exact/shared.h vmm/exact/trace.h vmm/layout.h \
		$(foreach x,blockend calltree callstacks callstacks_blocks callstacks_stacks countfile,vmm/exact/$x.c) \
		$(foreach x,blockend calltree callstacks callstacks_state callstacks_blocks callstacks_stacks countfile,vmm/exact/$x.h) \
		base/array.c base/array.h base/err.c base/err.h
	@mkdir -p $(@D)
	@echo "  PLUGIN $@"
	@$(CC) -I. -D_GNU_SOURCE -std=gnu11 $(OPT) $(WARN) $(HARDEN) -fPIC -shared -fvisibility=hidden \
		$(HARDEN_LINK) $(CFLAGS) $(LDFLAGS) \
		$(filter %.c,$^) -o $@

# -- tests ----------------------------------------------------------------------
$(BUILD)/unit/%: tests/unit/%.c $(LIB) $(DEMO_OBJ)
	@mkdir -p $(@D)
	@echo "  LD    $@"
	@$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $< $(DEMO_OBJ) $(LIB) $(LIBS) $(TEST_LIBS) -lcmocka -o $@

# A target with a main() that runs it over files and over what is made of them; `make fuzz` has libFuzzer's instead.
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
.PHONY: unit-bins room-bins fuzz-bins asan test-bins check test test-slow fuzz bench check-format
unit-bins: $(UNIT_BIN)
fuzz-bins: $(FUZZ_BIN)

# As many jobs as processors, unless the user said how many.
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# Benchmarks are built as well, so that they stay buildable.
test-bins: all unit-bins $(BENCH_BIN) asan

## make check        rules of the source, unit tests and corpora: installs nothing (scripts/deps.sh check
##                   does), needs no KVM, no root and no network; a minute once it is built
check: $(BUILD)/needs-check
	@$(MAKE) $(JOBS) $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so unit-bins fuzz-bins
	@CC="$(CC)" tests/run.py --build $(BUILD) --check $(TESTS)

## make unit/ROOM    build and run the unit tests of one folder of tests/unit alone, by its path or its last
##                   word: unit/profile/compare/gate or unit/gate; for work on one room
UNIT_ROOMS := $(patsubst tests/unit/%/,%,$(sort $(dir $(UNIT_SRC))))
ROOM_FOUND = $(or $(filter $(ROOM),$(UNIT_ROOMS)),$(filter %/$(ROOM),$(UNIT_ROOMS)))
ROOM_BIN = $(filter $(foreach t,$(notdir $(UNIT_BIN)),$(BUILD)/unit/$(ROOM_FOUND)/$t),$(UNIT_BIN))
room-bins: $(ROOM_BIN)
unit/%: ROOM = $*
unit/%:
	$(if $(filter 1,$(words $(ROOM_FOUND))),,$(error $@: one of these was expected: $(addprefix unit/,$(UNIT_ROOMS))))
	@$(MAKE) $(JOBS) ROOM=$(ROOM) room-bins
	@tests/run.py --build $(BUILD) --exact $(ROOM_BIN:$(BUILD)/%=%)

## make test         all tests (installs what they need, some 700 MB; 40 minutes)
##                   TESTS="unit e2e/demo": only those whose name contains one of these
##                   NO_SKIP=1: what is skipped and not in tests/skips.txt fails
test: deps-test
	@$(MAKE) $(JOBS) test-bins
	@CC="$(CC)" LIBS="$(LIBS)" tests/run.py --build $(BUILD) $(if $(filter-out 0,$(NO_SKIP)),--no-skip) $(TESTS)

## make test-slow    30 boots with two CPUs, boots with four and eight, Debian's kernels to the end,
##                   10,000 times attached and detached, QEMU's gdbstub
test-slow: deps-test
	@$(MAKE) $(JOBS) all unit-bins asan-slow tsan-program
	@tests/run.py --build $(BUILD) --slow $(TESTS)

## make asan         the program, unit tests and fuzz targets with sanitizers, in build/asan
asan:
	@$(MAKE) BUILD=$(BUILD)/asan SAN="$(ASAN)" OPT="-O1 -g" $(BUILD)/asan/kvmprof unit-bins fuzz-bins

# Of that build what `make test-slow' runs: the program, and the unit tests that say so (tests/e2e/tiers.py).
.PHONY: asan-slow
asan-slow:
	@$(MAKE) BUILD=$(BUILD)/asan SAN="$(ASAN)" OPT="-O1 -g" $(BUILD)/asan/kvmprof \
		$(patsubst tests/unit/%.c,$(BUILD)/asan/unit/%,$(shell grep -l '^/\* tests: slow with sanitizers \*/$$' $(UNIT_SRC)))

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
.PHONY: print-libs print-unit-tests
print-libs:
	@echo $(LIBS)
# For tests/check-source.py.
print-unit-tests:
	@echo $(UNIT_SRC)

## make check-format what clang-format would change (needs clang-format)
check-format:
	@clang-format --dry-run -Werror $(FORMAT_FILES)

# -- for people -------------------------------------------------------------------
## make demo         install what the build needs, build all, profile the demo guest, show where its time went
DEMO_SECONDS ?= 10
.PHONY: demo
demo: deps
	@$(MAKE) $(JOBS) all
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

# fetch-qemu.sh and what it reads: --engine exact needs a QEMU that Debian 12 does not have.
QEMU_SCRIPTS := scripts/fetch-qemu.sh scripts/debian-lists.sh scripts/debian-program.sh scripts/mend-qemu.py

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
	install -d $(DESTDIR)$(PREFIX)/share/kvmprof/scripts
	install -m 755 $(QEMU_SCRIPTS) $(DESTDIR)$(PREFIX)/share/kvmprof/scripts

## make uninstall    remove what make install has put there, with the same PREFIX and DESTDIR
# Directories go when they are empty, and only those that are kvmprof's own.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/kvmprof $(DESTDIR)$(PREFIX)/lib/kvmprof/kvmprof-exact.so
	rm -f $(patsubst %,$(DESTDIR)$(PREFIX)/share/man/man1/%,$(notdir docs/kvmprof.1 $(wildcard docs/man/*.1)))
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/kvmprof \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_kvmprof
	rm -f $(patsubst configs/%,$(DESTDIR)$(PREFIX)/share/kvmprof/%,$(wildcard configs/gate-*.toml configs/ci/*.yml))
	rm -f $(patsubst %,$(DESTDIR)$(PREFIX)/share/kvmprof/%,$(QEMU_SCRIPTS))
	for d in lib/kvmprof share/kvmprof/ci share/kvmprof/scripts share/kvmprof; do \
		[ ! -d $(DESTDIR)$(PREFIX)/$$d ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/$$d || exit 1; \
	done

## make dist         build/kvmprof-VERSION.tar.gz, which builds without git
## make deb          build/kvmprof_VERSION_amd64.deb and kvmprof-exact's; needs debhelper
.PHONY: dist deb
dist deb:
	@scripts/package.sh $@ $(BUILD)

## make release      build/kvmprof-VERSION-linux-amd64.tar.gz: with its own loader and libraries, for any x86-64 Linux
.PHONY: release
release: $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so
	@MAKE='$(MAKE)' scripts/package.sh $@ $(BUILD)

## make sbom         build/kvmprof-VERSION.spdx.json: what the program consists of, as SPDX 2.3
.PHONY: sbom
sbom: $(BUILD)/kvmprof $(BUILD)/kvmprof-exact.so
	@scripts/sbom.py $(BUILD)/kvmprof-$$(cat VERSION).spdx.json $^

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

-include $(LIB_OBJ:.o=.d) $(BUILD)/obj/profile/cmd/main.d $(BUILD)/obj/tests/fuzz/main.d $(BUILD)/obj/tests/fuzz/mutate.d
-include $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(BENCH_BIN:=.d)
