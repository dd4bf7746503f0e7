#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches a Debian release's Python through apt, without installing it.
#
#   scripts/fetch-python.sh [RELEASE]      (trixie)
#
# Prints on stdout only the path of a directory that is a root directory with it: /usr/bin/python3
# and what that needs, the C library of the release included. For guests (run --rootfs).
#
# Exit status: 3 where it cannot be had here (no network, no such package, no Debian), 1 for
# what should not happen, 2 for wrong usage.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by package version; a
# directory that exists there is complete. 10 MB to fetch, 50 MB on disk.
set -eu

say() { printf '%s\n' "fetch-python: $*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "$*"; exit 3; }

[ $# -le 1 ] || { say "usage: fetch-python.sh [RELEASE]"; exit 2; }
release=${1:-trixie}

. "$(dirname "$0")/debian-lists.sh"
start_lists
mkdir -p "$tmp/debs/partial" "$tmp/root"

exec 9>"$cache/.lock-debian-apt"
flock 9
update 1440
[ -e "$lists/sources.list" ] || cannot "the lists of Debian's packages cannot be fetched"
# The package python3 needs that of its version, such as python3.13.
package=$(of_release "$release" apt-cache show --no-all-versions python3 2>/dev/null |
	  sed -n 's/^Depends:.*\(python3\.[0-9]*\) .*/\1/p' | head -n 1)
version=$([ -z "$package" ] || of_release "$release" apt-cache show --no-all-versions "$package" |
	  sed -n 's/^Version: //p' | head -n 1)
[ -n "$version" ] || cannot "Debian's $release has no python3"
out=$cache/$package-$version
if [ ! -d "$out" ]; then
	say "fetching $package $version (10 MB)"
	of_release "$release" apt-get -y -qq --download-only --no-install-recommends install "$package" >"$tmp/log" 2>&1 ||
		{ update 10; cannot "$(grep -E '^E:' "$tmp/log" | head -n 1)"; }
	for deb in "$tmp"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -C "$tmp/root" -x --exclude './usr/share/*' --exclude './usr/lib/*/gconv/*' \
			    --exclude './usr/sbin/*' --exclude './var/*' 2>"$tmp/log" ||
			{ tail -n 5 "$tmp/log" >&2; die "could not unpack $deb"; }
	done
	# As base-files has them.
	for link in bin sbin lib lib64; do
		[ -e "$tmp/root/$link" ] || { mkdir -p "$tmp/root/usr/$link"; ln -s "usr/$link" "$tmp/root/$link"; }
	done
	ln -sf "$package" "$tmp/root/usr/bin/python3"
	mkdir -p "$tmp/root/tmp"
	[ -x "$tmp/root/usr/bin/$package" ] || die "$package has no /usr/bin/$package"
	publish "$tmp/root" "$out"
fi
printf '%s\n' "$out"
