#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Write the seed inputs of fuzz_lines: one small program in the forms that compilers,
# linkers and objcopy give its debug information.
#
#   tests/fuzz/make-corpus-lines.sh        (from the top of the repository; gcc, binutils)
set -eu

out=$PWD/tests/fuzz/corpus/fuzz_lines
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$out"
cd "$tmp"
cat >seed.c <<'END'
static int sink[4];
static inline __attribute__((always_inline)) void put(int n) { sink[n & 3] += n; }
static inline __attribute__((always_inline)) void twice(int n)
{
	put(n);
	if (n > 2)
		put(n + sink[1]);
}
__attribute__((noinline)) int f(int n) { twice(n); return sink[0]; }
void _start(void) { for (int i = 0; i < 5; i++) f(i); }
END
link='-O2 -nostdlib -static -no-pie -fno-asynchronous-unwind-tables -Wl,-z,max-page-size=64
	-Wl,-z,noseparate-code -Wl,--build-id=none -ffile-prefix-map='$tmp'=/src'
gcc $link -gdwarf-5 seed.c -o "$out/dwarf5"
gcc $link -gdwarf-4 seed.c -o "$out/dwarf4"
gcc $link -gdwarf-3 -fno-section-anchors seed.c -o "$out/dwarf3"
gcc $link -gdwarf-5 -gsplit-dwarf -fno-working-directory seed.c -o split
mv split "$out/split"
gcc $link -gdwarf-5 -gz=zlib seed.c -o "$out/packed"
gcc $link -gdwarf-4 -gz=zlib-gnu seed.c -o "$out/packed-gnu"
objcopy --remove-section=.debug_aranges "$out/dwarf5" "$out/no-aranges"
objcopy --only-keep-debug "$out/dwarf5" "$out/debug-only"
objcopy --strip-debug "$out/dwarf5" "$out/stripped"
printf 'common.debug\0aaaaaaaaaaaaaaaaaaaa' >link
objcopy --add-section .gnu_debugaltlink=link "$out/dwarf4" "$out/altlink"
# The .dwo is no input, and the path to it stays out of the repository.
rm -f "$out"/*.dwo
chmod 644 "$out"/*
