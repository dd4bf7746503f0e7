#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches a stock Debian cloud kernel through apt, without installing it.
#
#   scripts/fetch-debian-kernel.sh [--dbg] [--modules] 6.1|6.12
#
# Prints on stdout only the path of a directory with what the newest package
# known to apt has in /boot: vmlinuz-RELEASE, System.map-RELEASE and
# config-RELEASE. (Debian's System.map is a one-line stub; the real one is in
# the -dbg package.) With --dbg the directory also has dbg/, with vmlinux and
# System.map from the -dbg package: some 100 MB to fetch and more on disk. With
# --modules it has modules/, with the modules of kernel/fs, unpacked.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by
# package version; a directory that exists there is complete.
set -eu

say() { printf '%s\n' "fetch-debian-kernel: $*" >&2; }
die() { say "$*"; exit 1; }
usage() { die "usage: fetch-debian-kernel.sh [--dbg] [--modules] 6.1|6.12"; }

dbg=
modules=
series=
for arg; do
	case $arg in
	--dbg)     dbg=yes ;;
	--modules) modules=yes ;;
	6.1|6.12)  [ -z "$series" ] || usage; series=$arg ;;
	*)         usage ;;
	esac
done
case $series in
6.1)  pattern='^linux-image-6\.1\.0-[0-9]+-cloud-amd64-unsigned$' ;;
6.12) pattern='^linux-image-6\.12\..*cloud-amd64-unsigned$' ;;
*)    usage ;;
esac

for tool in apt-cache apt-get dpkg-deb; do
	command -v $tool >/dev/null || die "$tool is missing: this script needs Debian"
done

package=$(apt-cache pkgnames linux-image-$series | grep -E "$pattern" | sort -V | tail -n 1)
[ -n "$package" ] ||
	die "apt knows no $series cloud kernel (linux-image-$series*-cloud-amd64-unsigned); try apt-get update"
version=$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p' | head -n 1)
[ -n "$version" ] || die "apt knows no version of $package"

cache=${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
# The colon of an epoch would be trouble in search paths.
out=$cache/debian-$(printf '%s' "$version" | tr ':' '_')

tmp=
trap '[ -z "$tmp" ] || rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# fetch PACKAGE MEMBERS DIR: unpack MEMBERS of PACKAGE (version above) into DIR
fetch() {
	mkdir "$tmp/deb"
	say "fetching $1 $version"
	# As root apt would want to download as another user, who cannot write here.
	if ! (cd "$tmp/deb" &&
	      apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1=$version") \
	     >"$tmp/log" 2>&1; then
		tail -n 5 "$tmp/log" >&2
		die "apt-get could not download $1 $version"
	fi
	mkdir "$3"
	# A stream that breaks off makes tar fail, so half a kernel is noticed.
	if ! dpkg-deb --fsys-tarfile "$tmp"/deb/*.deb |
	     tar -C "$3" -x --wildcards "$2" 2>"$tmp/log"; then
		tail -n 5 "$tmp/log" >&2
		die "could not unpack $2 of $1"
	fi
	rm -rf "$tmp/deb"
}

# publish DIR TARGET: of two that race, the first one's directory stays.
publish() {
	chmod 755 "$1"
	mv -T "$1" "$2" 2>/dev/null || [ -d "$2" ] || die "cannot create $2"
}

if [ ! -d "$out" ]; then
	mkdir -p "$cache"
	tmp=$(mktemp -d "$cache/.fetch.XXXXXX")
	fetch "$package" ./boot "$tmp/root"
	ls "$tmp"/root/boot/vmlinuz-* >/dev/null 2>&1 || die "$package has no /boot/vmlinuz-*"
	publish "$tmp/root/boot" "$out"
fi

if [ -n "$dbg" ] && [ ! -d "$out/dbg" ]; then
	[ -n "$tmp" ] || tmp=$(mktemp -d "$cache/.fetch.XXXXXX")
	rm -rf "$tmp/root"
	fetch "${package%-unsigned}-dbg" ./usr/lib/debug/boot "$tmp/root"
	ls "$tmp"/root/usr/lib/debug/boot/vmlinux-* >/dev/null 2>&1 ||
		die "${package%-unsigned}-dbg has no vmlinux"
	publish "$tmp/root/usr/lib/debug/boot" "$out/dbg"
fi

if [ -n "$modules" ] && [ ! -d "$out/modules" ]; then
	[ -n "$tmp" ] || tmp=$(mktemp -d "$cache/.fetch.XXXXXX")
	rm -rf "$tmp/root"
	fetch "$package" './lib/modules/*/kernel/fs' "$tmp/root"
	mkdir "$tmp/modules"
	find "$tmp/root" -name '*.ko*' -exec cp {} "$tmp/modules/" \;
	for file in "$tmp"/modules/*.ko.xz; do
		[ ! -e "$file" ] || xz -d "$file" || die "cannot unpack $file"
	done
	publish "$tmp/modules" "$out/modules"
fi

printf '%s\n' "$out"
