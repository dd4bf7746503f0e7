#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds a small Linux guest kernel from a linux-source package: 6.1 if it is installed, else
# the newest one.
#
#   scripts/build-guest-kernel.sh VARIANT
#
# VARIANT is tiny, which its own decompressor moves (guest-kaslr.config), or what guest-VARIANT.config
# makes of guest-tiny.config: full, bare, guess, kasan, randstruct; with the drivers of guest-virtio.config:
# smp-fp, exact; or of the full one: trace, lto, kcfi, fineibt.
# The last three are built by clang 16 or later. fineibt takes the newest source, of 6.2 or later.
#
# Prints on stdout only the path of a directory that holds vmlinux, bzImage,
# System.map, config and, in modules/, what the configuration has as modules. The
# directory is a cache entry, named by a hash of all that went into it, under
#   ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
# It appears there by one rename, so a directory that exists is complete.
set -eu

say() { printf '%s\n' "build-guest-kernel: $*" >&2; }
die() { say "$*"; exit 1; }

usage() {
	die "usage: build-guest-kernel.sh tiny|smp-fp|full|bare|guess|kasan|randstruct|exact|trace|lto|kcfi|fineibt"
}

[ $# -eq 1 ] || usage
variant=$1
top=$(cd "$(dirname "$0")/.." && pwd)

case $variant in
tiny)   set -- "$top/configs/guest-tiny.config" "$top/configs/guest-kaslr.config" ;;
smp-fp) set -- "$top/configs/guest-tiny.config" "$top/configs/guest-smp-fp.config" \
		"$top/configs/guest-virtio.config" ;;
full|bare|guess|kasan|randstruct)
	set -- "$top/configs/guest-tiny.config" "$top/configs/guest-$variant.config" ;;
exact)  set -- "$top/configs/guest-tiny.config" "$top/configs/guest-virtio.config" \
		"$top/configs/guest-exact.config" ;;
trace|lto|kcfi)
	set -- "$top/configs/guest-tiny.config" "$top/configs/guest-full.config" \
		"$top/configs/guest-$variant.config" ;;
fineibt)
	set -- "$top/configs/guest-tiny.config" "$top/configs/guest-full.config" \
		"$top/configs/guest-kcfi.config" "$top/configs/guest-fineibt.config" ;;
*)      usage ;;
esac
for fragment; do
	[ -r "$fragment" ] || die "cannot read $fragment"
done

sources=$(ls -d /usr/src/linux-source-[0-9]*.tar.* 2>/dev/null | sort -rV)
case $variant in
fineibt) sources=$(printf '%s\n' "$sources" | grep -v '/linux-source-6\.[01]\.tar' || :)
	 wanted="of 6.2 or later in /usr/src: install the package linux-source-6.12" ;;
*)       sources="/usr/src/linux-source-6.1.tar.* $sources"
	 wanted="in /usr/src (scripts/deps.sh kernel installs one)" ;;
esac
tarball=
for name in $sources; do
	case $name in
	*.tar.xz|*.tar.bz2|*.tar.gz|*.tar.zst) [ ! -r "$name" ] || tarball=${tarball:-$name} ;;
	esac
done
[ -n "$tarball" ] || die "no kernel source $wanted"

# kCFI came with clang 16. All tools are of one version; the lowest will do for old sources, too.
compiler=
with=
case $variant in
lto|kcfi|fineibt)
	for v in 16 17 18 19; do
		for tool in clang ld.lld llvm-ar llvm-nm llvm-objcopy llvm-readelf llvm-strip; do
			command -v "$tool-$v" >/dev/null || continue 2
		done
		compiler=LLVM=-$v
		with=$("clang-$v" --version | head -n 1)
		break
	done
	[ -n "$compiler" ] || die "no clang of 16 to 19 with its lld and llvm (scripts/deps.sh test installs one)" ;;
randstruct)
	[ -e "$(gcc -print-file-name=plugin)/include/plugin-version.h" ] ||
		die "the headers of GCC's plugins are missing (scripts/deps.sh test installs gcc-N-plugin-dev)"
	with=$(gcc --version | head -n 1) ;;
esac

# Without dpkg's word for it, the size stands in for the version.
package=$(basename "${tarball%.tar.*}")
version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null || stat -L -c 'size-%s' "$tarball")

# What is done below with source and fragments. Add one where it changes the kernel that comes out;
# whatever else changes in this script, the kernels in people's caches serve on.
recipe=1

cache=${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
hash=$( { printf '%s\n' "$recipe" "$version" ${with:+"$with"}; cat "$@"; } | sha256sum | cut -c1-12)
out=$cache/kernel-$variant-$hash

done_already() {
	if [ -d "$out" ]; then
		printf '%s\n' "$out"
		exit 0
	fi
}
done_already

tools="make gcc flex bison bc xz flock"
[ "$variant" != tiny ] || tools="$tools lz4"
for tool in $tools; do
	command -v $tool >/dev/null || die "$tool is missing (scripts/deps.sh kernel installs it)"
done

# One build of a variant at a time: the second caller waits for the first
# one's result and does not build it again.
mkdir -p "$cache"
exec 9>"$cache/.lock-kernel-$variant"
flock 9
done_already

tmp=$(mktemp -d "$cache/.build-$variant.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# The one thing a user wants of a failed step is its end.
run() {
	if ! "$@" >"$tmp/log" 2>&1 9>&-; then
		tail -n 25 "$tmp/log" >&2
		die "failed: $*"
	fi
}

say "building $variant from $tarball ($version); this takes some minutes"
mkdir "$tmp/src" "$tmp/obj" "$tmp/publish"
run tar -C "$tmp/src" --strip-components=1 --exclude='*/Documentation/*/*' -xf "$tarball"
# What structures are shuffled by: otherwise a random number of each build.
[ "$variant" != randstruct ] ||
	run sed -i "s/^SEED=.*/SEED=$(printf kvmprof | sha256sum | cut -c1-64)/" "$tmp/src/scripts/gen-randstruct-seed.sh"

# The same inputs give the same bytes: no date, user, host or path of this
# machine in the image.
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
export KBUILD_BUILD_USER=kvmprof KBUILD_BUILD_HOST=kvmprof KBUILD_BUILD_VERSION=1
export LC_ALL=C
unset MAKEFLAGS MAKELEVEL MFLAGS ARCH CROSS_COMPILE CFLAGS LDFLAGS LOCALVERSION KCFLAGS || :

kmake() { run make -C "$tmp/src" O="$tmp/obj" ARCH=x86 ${compiler:+"$compiler"} "$@"; }

kmake tinyconfig
(cd "$tmp/src" && run sh scripts/kconfig/merge_config.sh -m -O "$tmp/obj" "$tmp/obj/.config" "$@")
kmake olddefconfig

# kconfig drops without a word what it finds unmet dependencies for. Look at
# the final value each fragment asked for (a later fragment wins). An option that no Kconfig
# file of this kernel defines came or went with another version, and cannot be had.
lost=$(awk '
	FNR == 1 { file++ }
	{ name = "" }
	/^CONFIG_[A-Za-z0-9_]+=/ { name = $0; sub(/=.*/, "", name); value = substr($0, length(name) + 2) }
	/^# CONFIG_[A-Za-z0-9_]+ is not set$/ { name = $2; value = "n" }
	name == "" { next }
	file < last { want[name] = value; next }
	{ have[name] = value }
	END {
		for (name in want) {
			got = (name in have) ? have[name] : "n"
			if (got != want[name])
				print name "=" want[name] " (is " got ")"
		}
	}' last=$(($# + 1)) "$@" "$tmp/obj/.config")
unmet= absent=
while read -r option; do
	[ -n "$option" ] || continue
	name=${option%%=*}
	if grep -rqE --include='Kconfig*' "^[[:space:]]*(menu)?config[[:space:]]+${name#CONFIG_}[[:space:]]*$" "$tmp/src"; then
		unmet="$unmet $option"
	else
		absent="$absent $name"
	fi
done <<END
$lost
END
[ -z "$absent" ] || say "options that this kernel does not have:$absent"
[ -z "$unmet" ] || die "options that did not survive:$unmet"

targets="vmlinux bzImage"
! grep -q '^CONFIG_MODULES=y' "$tmp/obj/.config" || targets="$targets modules"
kmake -j"$(nproc)" $targets

# Where BTF was made out of it, DWARF has done its work.
run objcopy --strip-debug "$tmp/obj/vmlinux" "$tmp/publish/vmlinux"
cp "$tmp/obj/System.map" "$tmp/publish/"
cp "$tmp/obj/arch/x86/boot/bzImage" "$tmp/publish/bzImage"
cp "$tmp/obj/.config" "$tmp/publish/config"
mkdir "$tmp/publish/modules"
find "$tmp/obj" -name '*.ko' -exec cp {} "$tmp/publish/modules/" \;
chmod 755 "$tmp/publish"
mv -T "$tmp/publish" "$out"
say "built $out"
printf '%s\n' "$out"
