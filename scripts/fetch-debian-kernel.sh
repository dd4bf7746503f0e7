#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches a stock Debian cloud kernel through apt, without installing it.
#
#   scripts/fetch-debian-kernel.sh [--dbg] [--modules] [--host] [--nvdimm] [--full|--rt] SERIES
#
# SERIES is 5.10, 6.1, 6.12, 7.3 ... or 7 for any 7.x: the newest package of it in
# Debian's suites is taken, by lists of our own (debian-lists.sh).
#
# Prints on stdout only the path of a directory with vmlinuz-RELEASE and what
# else the package has beside it: System.map-RELEASE and config-RELEASE. (Debian's
# System.map is a one-line stub; the real one is in the -dbg package.) With --dbg
# the directory also has dbg/, with vmlinux and System.map from the -dbg package,
# where there is one: some 100 to 350 MB to fetch and more on disk. With --modules
# it has modules/, with the modules of kernel/fs, unpacked. With --host it has
# host/, with what emulated-host.py loads: KVM, and a root over 9P; with --nvdimm
# nvdimm/, with what makes /dev/pmem0. --full takes
# the kernel for any machine instead, which has 9P, and --rt that with PREEMPT_RT.
#
# Exit status: 3 where this kernel cannot be had here (no network, no such package, no
# Debian), 1 for what should not happen, 2 for wrong usage.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by
# package version; a directory that exists there is complete.
set -eu

say() { printf '%s\n' "fetch-debian-kernel: $*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "$*"; exit 3; }
usage() { say "usage: fetch-debian-kernel.sh [--dbg] [--modules] [--host] [--nvdimm] [--full|--rt] SERIES (such as 6.12)"; exit 2; }

dbg=
modules=
host=
nvdimm=
flavour=cloud-amd64
prefix=debian
series=
for arg; do
	case $arg in
	--dbg)     dbg=yes ;;
	--modules) modules=yes ;;
	--host)    host=yes ;;
	--nvdimm)  nvdimm=yes ;;
	--full)    flavour=amd64 prefix=debian-full ;;
	--rt)      flavour=rt-amd64 prefix=debian-rt ;;
	*)         [ -z "$series" ] && printf '%s\n' "$arg" | grep -qE '^[0-9]+(\.[0-9]+)?$' || usage
		   series=$arg ;;
	esac
done
[ -n "$series" ] || usage

. "$(dirname "$0")/debian-lists.sh"
start_lists

# releases: the series' kernels that the lists have, newest last. A package is
# called linux-image-RELEASE[-unsigned], and since 6.19 linux-binary[-unsigned]-RELEASE.
releases() {
	apt apt-cache pkgnames linux- >"$tmp/names" 2>/dev/null || return 0
	sed -n -E -e "s/^linux-binary-(unsigned-)?([0-9][^-]*(-[0-9]+)?-$flavour)\$/\\2/p" \
		-e "s/^linux-image-([0-9][^-]*(-[0-9]+)?-$flavour)(-unsigned)?\$/\\1/p" "$tmp/names" |
		grep -E "^$(printf '%s' "$series" | sed 's/\./\\./')\.[0-9]" | sort -uV
}

has() { grep -qxF "$1" "$tmp/names"; }

# package_of RELEASE: the package with its vmlinuz. linux-image is an empty
# package where there is a linux-binary.
package_of() {
	for name in "linux-binary-unsigned-$1" "linux-binary-$1" "linux-image-$1-unsigned" \
		    "linux-image-$1"; do
		! has "$name" || { printf '%s\n' "$name"; return; }
	done
}

# fetch PACKAGE DIR EXCLUDED: unpack PACKAGE, of the version above, into DIR
fetch() {
	mkdir "$tmp/deb"
	say "fetching $1 $version"
	if ! (cd "$tmp/deb" && apt apt-get download "$1=$version") >"$tmp/log" 2>&1; then
		say "$(grep -E '^E:' "$tmp/log" | head -n 1)"
		rm -rf "$tmp/deb"
		return 1
	fi
	rm -rf "$2"
	mkdir "$2"
	# A stream that breaks off makes tar fail, so half a kernel is noticed.
	if ! dpkg-deb --fsys-tarfile "$tmp"/deb/*.deb |
	     tar -C "$2" -x --exclude="$3" 2>"$tmp/log"; then
		tail -n 5 "$tmp/log" >&2
		die "could not unpack $1"
	fi
	rm -rf "$tmp/deb"
}

# look MINUTES: sets found to the series' releases, newest first, by lists that
# are not older than that.
look() {
	exec 9>"$cache/.lock-debian-apt"
	flock 9
	update "$1"
	found=$(releases | tac)
	exec 9>&-
	[ -n "$found" ]
}

# choose RELEASE: sets release, package, version and out
choose() {
	release=$1
	package=$(package_of "$release")
	version=$(apt apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p' | head -n 1)
	[ -n "$version" ] || cannot "apt knows no version of $package"
	# The colon of an epoch would be trouble in search paths.
	out=$cache/$prefix-$(printf '%s' "$version" | tr ':' '_')
}

# fetch_image: vmlinuz and what is beside it. It lies in /boot, or below
# /usr/lib/modules/RELEASE, without the release in its name.
fetch_image() {
	fetch "$package" "$tmp/root" '*/kernel/*' || return 1
	mkdir "$tmp/boot"
	find "$tmp/root/boot" -maxdepth 1 -type f -exec mv {} "$tmp/boot/" \; 2>/dev/null || :
	for name in vmlinuz config System.map; do
		file=$(find "$tmp/root" -type f \( -name "$name" -o -name "$name.unsigned" \) |
			head -n 1)
		[ -z "$file" ] || mv "$file" "$tmp/boot/$name-$release"
	done
	[ -e "$tmp/boot/vmlinuz-$release" ] || die "$package has no vmlinuz"
	publish "$tmp/boot" "$out"
}

# get_newest: the newest release that the mirror still has. Lists may name packages
# that were taken away; they are not asked for again until the lists are new.
get_newest() {
	for each in $found; do
		choose "$each"
		[ ! -d "$out" ] || return 0
		! grep -qxF "$package=$version" "$lists/gone" 2>/dev/null || continue
		! fetch_image || return 0
		printf '%s\n' "$package=$version" >>"$lists/gone"
	done
	return 1
}

look 1440 || look 10 || {
	[ -e "$lists/stamp" ] || cannot "the lists of Debian's packages cannot be fetched"
	cannot "Debian's suites have no $series kernel (linux-image-$series.*-$flavour)"
}
get_newest || { look 10 && get_newest; } ||
	cannot "none of Debian's $series kernels ($flavour) can be fetched any more, or there is no network"

if [ -n "$dbg" ] && [ ! -d "$out/dbg" ]; then
	debug=linux-image-$release-dbg
	has "$debug" || cannot "Debian's suites have no $debug"
	fetch "$debug" "$tmp/root" '*.ko*' || cannot "apt-get could not download $debug $version"
	mkdir "$tmp/dbg"
	for name in vmlinux System.map; do
		file=$(find "$tmp/root" -type f -name "$name*" | head -n 1)
		[ -n "$file" ] || die "$debug has no $name"
		mv "$file" "$tmp/dbg/$name-$release"
	done
	publish "$tmp/dbg" "$out/dbg"
fi

# modules DIR PLACE NAME...: the modules of these names below PLACE, unpacked, in $out/DIR
modules() {
	dir=$1
	place=$2
	[ ! -d "$out/$dir" ] || return 0
	shift 2
	of=linux-modules-$release
	has "$of" || of=$package
	case $of in
	linux-binary*) cannot "Debian's suites have no linux-modules-$release any more" ;;
	esac
	fetch "$of" "$tmp/root" '*/boot/*' || cannot "apt-get could not download $of $version"
	mkdir "$tmp/$dir"
	for name; do
		find "$tmp/root" -path "*/kernel/$place*" -name "$name.ko*" \
			-exec mv {} "$tmp/$dir/" \;
	done
	for file in "$tmp/$dir"/*.ko.xz; do
		[ ! -e "$file" ] || xz -d "$file" || die "cannot unpack $file"
	done
	ls "$tmp/$dir"/*.ko >/dev/null 2>&1 || die "$of has no modules for $dir"
	publish "$tmp/$dir" "$out/$dir"
}

[ -z "$modules" ] || modules modules fs/ '*'
# kvm-amd may need ccp, and that rng-core; what a kernel has built in is not there.
[ -z "$host" ] || modules host '' irqbypass rng-core ccp kvm kvm-amd kvm-intel \
	virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci \
	netfs fscache 9pnet 9pnet_virtio 9p overlay

[ -z "$nvdimm" ] || modules nvdimm '' libnvdimm nd_btt nd_pmem nfit

printf '%s\n' "$out"
