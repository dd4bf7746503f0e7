#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches Debian 13's QEMU for x86 guests through apt, without installing it.
#
#   scripts/fetch-qemu.sh
#
# Prints on stdout only the path of a directory with bin/qemu-system-x86_64. That is a script:
# QEMU runs with the C library and all else of the release that it comes from, so that it is
# the same program on every system, whatever this one has. (ps calls the process ld-linux-x86-64.)
# One defect is taken out of it, by which interrupts of guests of its guests come twice: mend-qemu.py.
#
# Exit status: 3 where it cannot be had here (no network, no such package, no Debian), 1 for
# what should not happen, 2 for wrong usage.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by package version; a
# directory that exists there is complete. 40 MB to fetch, 110 MB on disk.
set -eu

say() { printf '%s\n' "fetch-qemu: $*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "$*"; exit 3; }

[ $# = 0 ] || { say "usage: fetch-qemu.sh"; exit 2; }

RELEASE=trixie
PACKAGE=qemu-system-x86
LOADER=usr/lib64/ld-linux-x86-64.so.2
LIBRARIES=usr/lib/x86_64-linux-gnu
MENDED=1	# another number for each change of what mend-qemu.py does

. "$(dirname "$0")/debian-lists.sh"
start_lists

# look MINUTES: sets version, by lists that are not older than that
look() {
	exec 9>"$cache/.lock-debian-apt"
	flock 9
	update "$1"
	version=
	[ ! -e "$lists/sources.list" ] || version=$(
		of_release $RELEASE apt-cache show --no-all-versions $PACKAGE 2>/dev/null |
		sed -n 's/^Version: //p' | head -n 1)
	exec 9>&-
	# The colon of an epoch would be trouble in search paths.
	out=$cache/qemu-$(printf '%s' "$version" | tr ':' '_')-$MENDED
	[ -n "$version" ]
}

# fetch: the package and all that it needs, as on a system that has nothing yet
fetch() {
	say "fetching $PACKAGE $version and its libraries (40 MB)"
	exec 9>"$cache/.lock-debian-apt"
	flock 9
	of_release $RELEASE apt-get -y -qq --download-only --no-install-recommends install $PACKAGE \
		>"$tmp/log" 2>&1 && fetched=yes || fetched=
	exec 9>&-
	[ -n "$fetched" ] || say "$(grep -E '^E:' "$tmp/log" | head -n 1)"
	[ -n "$fetched" ]
}

# unpack: $tmp/root with what QEMU uses of it
unpack() {
	for deb in "$tmp"/debs/*.deb; do
		# A stream that breaks off makes tar fail, so half a package is noticed.
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$tmp/all" -x 2>"$tmp/log" ||
			{ tail -n 5 "$tmp/log" >&2; die "could not unpack $deb"; }
	done
	mkdir -p "$tmp/root/lib" "$tmp/root/bin" "$tmp/root/share"
	cp -L "$tmp/all/$LOADER" "$tmp/root/lib/"
	mv "$tmp/all/usr/bin/qemu-system-x86_64" "$tmp/root/lib/"
	# 3: it is not as expected; it serves all the same.
	"$(dirname "$0")/mend-qemu.py" "$tmp/root/lib/qemu-system-x86_64" || [ $? = 3 ] ||
		die "could not mend $PACKAGE $version"
	"$tmp/all/$LOADER" --library-path "$tmp/all/$LIBRARIES" --list "$tmp/root/lib/qemu-system-x86_64" |
		sed -n "s|.* => \\($tmp/all/[^ ]*\\) .*|\\1|p" >"$tmp/needed"
	grep -q libglib "$tmp/needed" || die "the libraries of $PACKAGE were not found"
	while read -r library; do
		cp -L "$library" "$tmp/root/lib/"
	done <"$tmp/needed"
	for data in share/qemu share/seabios lib/ipxe/qemu; do
		[ ! -d "$tmp/all/usr/$data" ] ||
			mv "$tmp/all/usr/$data" "$tmp/root/share/$(printf '%s' "$data" | tr / -)"
	done
}

# Data and libraries are found beside the script. Environment variables would be
# inherited by what QEMU starts.
write_wrapper() {
	cat >"$tmp/root/bin/qemu-system-x86_64" <<'EOF'
#!/bin/sh
top=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$top/lib/ld-linux-x86-64.so.2" --library-path "$top/lib" "$top/lib/qemu-system-x86_64" \
	-L "$top/share/share-seabios" -L "$top/share/share-qemu" -L "$top/share/lib-ipxe-qemu" "$@"
EOF
	chmod 755 "$tmp/root/bin/qemu-system-x86_64"
	"$tmp/root/bin/qemu-system-x86_64" --version >"$tmp/log" 2>&1 ||
		{ tail -n 5 "$tmp/log" >&2; die "$PACKAGE $version does not start"; }
}

mkdir -p "$tmp/debs/partial" "$tmp/all"
look 1440 || look 10 || cannot "Debian's $RELEASE has no $PACKAGE, or its lists cannot be fetched"
if [ ! -d "$out" ]; then
	# Lists may name packages that were taken away.
	fetch || { look 10 && fetch; } || cannot "$PACKAGE $version cannot be fetched, or there is no network"
	unpack
	write_wrapper
	publish "$tmp/root" "$out"
fi
printf '%s\n' "$out"
