#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fetches a perf of Debian 13 through apt, without installing it.
#
#   scripts/fetch-perf.sh [trixie|trixie-backports]      (default: trixie-backports)
#
# trixie has perf 6.12; trixie-backports has the newest release that Debian offers for it.
# Prints on stdout only the path of a directory with bin/perf. That is a script: perf runs with
# the C library and all else of the release that it comes from, on every system.
#
# Exit status: 3 where it cannot be had here (no network, no such package, no Debian), 1 for
# what should not happen, 2 for wrong usage.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by package version; a
# directory that exists there is complete.
set -eu

say() { printf '%s\n' "fetch-perf: $*" >&2; }
die() { say "$*"; exit 1; }
cannot() { say "$*"; exit 3; }

usage() { say "usage: fetch-perf.sh [trixie|trixie-backports]"; exit 2; }

PACKAGE=linux-perf NAME=perf SUFFIX=
. "$(dirname "$0")/debian-lists.sh"
. "$(dirname "$0")/debian-program.sh"
choose_release trixie-backports "$@"
start_lists

unpack_more() { :; }

write_wrapper() {
	cat >"$tmp/root/bin/perf" <<'END'
#!/bin/sh
top=$(dirname "$(dirname "$(readlink -f "$0")")")
exec "$top/lib/ld-linux-x86-64.so.2" --library-path "$top/lib" "$top/lib/perf" "$@"
END
}

have_program perf libelf
