#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches a QEMU for x86 guests of Debian 13 through apt, without installing it.
#
#   scripts/fetch-qemu.sh [trixie|trixie-backports]      (default: trixie)
#
# trixie has QEMU 10.0; trixie-backports has the newest release that Debian offers for it.
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

usage() { say "usage: fetch-qemu.sh [trixie|trixie-backports]"; exit 2; }

# The suffix is another number for each change of what mend-qemu.py does.
PACKAGE=qemu-system-x86 NAME=qemu SUFFIX=-1
. "$(dirname "$0")/debian-lists.sh"
. "$(dirname "$0")/debian-program.sh"
choose_release trixie "$@"
start_lists

unpack_more() {
	# 3: it is not as expected; it serves all the same.
	"$(dirname "$0")/mend-qemu.py" "$tmp/root/lib/qemu-system-x86_64" || [ $? = 3 ] ||
		die "could not mend $PACKAGE $version"
	mkdir -p "$tmp/root/share"
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
}

have_program qemu-system-x86_64 libglib
