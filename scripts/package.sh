#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the archive of the source, Debian's packages, or an archive with the program and all libraries, from this tree.
#
#   scripts/package.sh dist|deb|release [DIRECTORY]      (default: build)
#
# What `release` makes runs on any x86-64 Linux with a shell, without installation: the program comes with the loader,
# the C library and all other libraries of the system that it was built on. bin/kvmprof is a script that starts it by
# that loader. The directory may lie anywhere and be moved.
#
# Prints the paths of what was made. The same tree gives the same bytes: files have the date of the last
# commit, or SOURCE_DATE_EPOCH. An archive that was unpacked can be packed again, without git.
set -eu

say() { printf '%s\n' "package: $*" >&2; }
die() { say "$*"; exit 1; }
usage() { say "usage: package.sh dist|deb|release [DIRECTORY]"; exit 2; }

[ $# -ge 1 ] && [ $# -le 2 ] || usage
cd "$(dirname "$0")/.."
given=${2:-build}
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

# -- the program with its libraries ----------------------------------------------------------------

binary=kvmprof-$version-linux-amd64

# The names of libraries that the program loads when it needs them: each is a string of it, which has its end, while
# its beginning may come right after other data.
loaded() {
	tr '\000' '\n' <"$1" | LC_ALL=C grep -aoE 'lib[a-z0-9-]+\.so\.[0-9]+$' | LC_ALL=C sort -u
}

# The path of a library of that name; nothing where there is none.
place_of() {
	PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n "s/^[[:space:]]*$1 (libc6,x86-64[^)]*) => //p" | head -n 1
}

# The libraries that these files need, and the loader, each as "NAME PATH".
needs() {
	ldd "$@" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) (.*/\1 \2/p; s/^[[:space:]]*\(\/[^ ]*\)\/\([^ /]*\) (.*/\2 \1\/\2/p' |
		LC_ALL=C sort -u
}

# One line for each library with its package and version, and the package's copyright file. Whoever asks for
# the sources of a library finds them under this version.
libraries() {
	while read -r name path; do
		real=$(readlink -f "$path")
		package=$(dpkg-query -S "$real" "${real#/usr}" "$path" 2>/dev/null | sed 's/[:,].*//; q' || :)
		[ -n "$package" ] || { printf '%s  (of no package)\n' "$name"; continue; }
		printf '%s  %s\n' "$name" "$(dpkg-query -W -f '${Package} ${Version} (source: ${source:Package} ${source:Version})' "$package")"
		cp -L "/usr/share/doc/$package/copyright" "$1/$package.copyright" || die "$package has no copyright file"
	done
}

release() {
	for tool in ldd ldconfig dpkg-query strip; do
		PATH=$PATH:/sbin:/usr/sbin command -v $tool >/dev/null || die "no $tool"
	done
	top=$out/release/$binary
	home=$top/lib/kvmprof
	rm -rf "$out/release"
	mkdir -p "$home/lib" "$top/share/doc/kvmprof/docs/pictures" "$top/share/doc/kvmprof/libraries"
	"${MAKE:-make}" -s BUILD="$given" DESTDIR="$top" PREFIX= install
	cp README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE "$top/share/doc/kvmprof"
	cp docs/*.md "$top/share/doc/kvmprof/docs"
	cp docs/pictures/*.svg "$top/share/doc/kvmprof/docs/pictures"
	mv "$top/bin/kvmprof" "$home/kvmprof"
	# Libraries that are loaded later come with what they need.
	for name in $(loaded "$home/kvmprof"); do
		path=$(place_of "$name")
		if [ -n "$path" ]; then
			printf '%s %s\n' "$name" "$path"
		else
			say "$name is not installed: the release goes without it"
		fi
	done >"$out/release/loaded"
	set -- "$home/kvmprof"
	while read -r name path; do
		set -- "$@" "$path"
	done <"$out/release/loaded"
	{ cat "$out/release/loaded"; needs "$@"; } | LC_ALL=C sort -u >"$out/release/libraries"
	while read -r name path; do
		case $name in
		ld-linux-x86-64.so.2) cp -L "$path" "$home/$name" ;;
		*) cp -L "$path" "$home/lib/$name" ;;
		esac
	done <"$out/release/libraries"
	[ -e "$home/ld-linux-x86-64.so.2" ] && [ -e "$home/lib/libc.so.6" ] || die "ldd names no loader or no C library"
	libraries "$top/share/doc/kvmprof/libraries" <"$out/release/libraries" >"$top/share/doc/kvmprof/libraries/VERSIONS"
	strip "$home/kvmprof"
	strip --strip-unneeded "$home/kvmprof-exact.so"
	cat >"$top/bin/kvmprof" <<'END'
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Starts kvmprof with the loader and the libraries beside it. No variable of the environment says so, as QEMU and
# other programs would inherit it.
top=$(readlink -f "$0") && top=${top%/bin/*} || exit 1
exec "$top/lib/kvmprof/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$top/lib/kvmprof/lib" \
	"$top/lib/kvmprof/kvmprof" "$@"
END
	chmod 755 "$top/bin/kvmprof" "$home/kvmprof" "$home/ld-linux-x86-64.so.2"
	"$top/bin/kvmprof" --version >/dev/null || die "$top/bin/kvmprof does not start"
	SOURCE_DATE_EPOCH=$epoch scripts/sbom.py "$top/share/doc/kvmprof/kvmprof.spdx.json" \
		"$home/kvmprof" "$home/kvmprof-exact.so" >/dev/null || die "no bill of materials"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime="@$epoch" --format=gnu \
		-C "$out/release" -cf "$out/release/tar" "$binary" || die "the archive could not be written"
	gzip -9n <"$out/release/tar" >"$out/$binary.tar.gz.tmp" || die "the archive could not be written"
	mv "$out/$binary.tar.gz.tmp" "$out/$binary.tar.gz"
	rm -rf "$out/release"
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
release)
	release
	printf '%s\n' "$out/$binary.tar.gz"
	;;
*)
	usage
	;;
esac
