#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the archive of the source, or Debian's packages, from this tree.
#
#   scripts/package.sh dist|deb [DIRECTORY]      (default: build)
#
# Prints the paths of what was made. The same tree gives the same bytes: files have the date of the last
# commit, or SOURCE_DATE_EPOCH. An archive that was unpacked can be packed again, without git.
set -eu

say() { printf '%s\n' "package: $*" >&2; }
die() { say "$*"; exit 1; }

[ $# -ge 1 ] && [ $# -le 2 ] || { say "usage: package.sh dist|deb [DIRECTORY]"; exit 2; }
cd "$(dirname "$0")/.."
version=$(cat VERSION)
name=kvmprof-$version
mkdir -p "${2:-build}"
out=$(cd "${2:-build}" && pwd)

is_git() { [ -e .git ] && git rev-parse --git-dir >/dev/null 2>&1; }

# The tree of git's index; else all that an unpacked archive has, which is the same.
list() {
	if is_git; then
		git ls-files -z
	else
		find . -path ./build -prune -o \( -type f -o -type l \) -print0 | sed -z 's,^\./,,' | sort -z
	fi
}

epoch=${SOURCE_DATE_EPOCH:-}
if [ -z "$epoch" ]; then
	if is_git; then epoch=$(git log -1 --format=%ct); else epoch=$(stat -c %Y VERSION); fi
fi

dist() {
	list | tar --null -T - --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
		--mtime="@$epoch" --transform="flags=r;s,^,$name/," --format=gnu -cf - |
		gzip -9n >"$out/$name.tar.gz.tmp" || die "the archive could not be written"
	mv "$out/$name.tar.gz.tmp" "$out/$name.tar.gz"
}

deb() {
	for tool in dpkg-buildpackage dh; do
		command -v "$tool" >/dev/null || die "no $tool: install dpkg-dev and debhelper"
	done
	rm -rf "$out/deb"
	mkdir -p "$out/deb"
	tar -C "$out/deb" -xzf "$out/$name.tar.gz"
	cp -R configs/debian "$out/deb/$name/debian"
	cat >"$out/deb/$name/debian/changelog" <<END
kvmprof ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' configs/debian/control)  $(LC_ALL=C date -u -R -d "@$epoch")
END
	# Variables of the make that called this are not the package's.
	(unset BUILD CC CFLAGS MAKEFLAGS MFLAGS MAKELEVEL WERROR
		cd "$out/deb/$name" && dpkg-buildpackage -b -us -uc >"$out/deb.log" 2>&1) || {
		tail -n 30 "$out/deb.log" >&2
		die "dpkg-buildpackage failed; all that it said: $out/deb.log"
	}
	cp "$out/deb/kvmprof_${version}_amd64.deb" "$out/deb/kvmprof-exact_${version}_amd64.deb" "$out"
	rm -rf "$out/deb"
}

case $1 in
dist)
	dist
	printf '%s\n' "$out/$name.tar.gz"
	;;
deb)
	dist
	deb
	printf '%s\n' "$out/kvmprof-exact_${version}_amd64.deb" "$out/kvmprof_${version}_amd64.deb"
	;;
*)
	say "usage: package.sh dist|deb [DIRECTORY]"
	exit 2
	;;
esac
