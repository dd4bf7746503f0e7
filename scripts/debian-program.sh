# SPDX-License-Identifier: GPL-2.0-or-later
#
# To be read in by scripts that take one program of Debian 13 out of its packages, after debian-lists.sh.
# It runs with the C library and all else of the release that it comes from, on every system.
#
# The caller sets PACKAGE, NAME and SUFFIX (in the cache: NAME-VERSION SUFFIX, without the space) and calls
# choose_release, start_lists and have_program. It defines usage; unpack_more, which puts what else the
# program needs into $tmp/root; and write_wrapper, which writes the script in $tmp/root/bin.

LOADER=usr/lib64/ld-linux-x86-64.so.2
LIBRARIES=usr/lib/x86_64-linux-gnu

# choose_release DEFAULT [ARGUMENT...]: sets RELEASE, and RELEASES with what backports need besides
choose_release() {
	[ $# -le 2 ] || usage
	RELEASE=${2:-$1}
	case $RELEASE in
	trixie)           RELEASES=trixie ;;
	trixie-backports) RELEASES='(trixie|trixie-backports)' ;;
	*)                usage ;;
	esac
}

# look MINUTES: sets version and out, by lists that are not older than that
look() {
	exec 9>"$cache/.lock-debian-apt"
	flock 9
	update "$1"
	version=
	[ ! -e "$lists/sources.list" ] || version=$(
		of_release "$RELEASE" apt-cache show --no-all-versions "$PACKAGE" 2>/dev/null |
		sed -n 's/^Version: //p' | head -n 1)
	exec 9>&-
	# The colon of an epoch would be trouble in search paths.
	out=$cache/$NAME-$(printf '%s' "$version" | tr ':' '_')$SUFFIX
	[ -n "$version" ]
}

# fetch: the package and all that it needs, as on a system that has nothing yet
fetch() {
	say "fetching $PACKAGE $version and its libraries"
	exec 9>"$cache/.lock-debian-apt"
	flock 9
	# apt takes a backport only where it is told to.
	of_release "$RELEASES" apt-get -t "$RELEASE" -y -qq --download-only --no-install-recommends install "$PACKAGE" \
		>"$tmp/log" 2>&1 && fetched=yes || fetched=
	exec 9>&-
	[ -n "$fetched" ] || say "$(grep -E '^E:' "$tmp/log" | head -n 1)"
	[ -n "$fetched" ]
}

# unpack PROGRAM LIBRARY: $tmp/root/lib with the program, its loader and its libraries, of which LIBRARY is one
unpack() {
	for deb in "$tmp"/debs/*.deb; do
		# A stream that breaks off makes tar fail, so half a package is noticed.
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$tmp/all" -x 2>"$tmp/log" ||
			{ tail -n 5 "$tmp/log" >&2; die "could not unpack $deb"; }
	done
	mkdir -p "$tmp/root/lib" "$tmp/root/bin"
	cp -L "$tmp/all/$LOADER" "$tmp/root/lib/"
	mv "$tmp/all/usr/bin/$1" "$tmp/root/lib/$1"
	"$tmp/all/$LOADER" --library-path "$tmp/all/$LIBRARIES" --list "$tmp/root/lib/$1" |
		sed -n "s|.* => \\($tmp/all/[^ ]*\\) .*|\\1|p" >"$tmp/needed"
	grep -q "$2" "$tmp/needed" || die "the libraries of $PACKAGE were not found"
	while read -r library; do
		cp -L "$library" "$tmp/root/lib/"
	done <"$tmp/needed"
}

# have_program PROGRAM LIBRARY: fetches it unless the cache has it, and prints its directory
have_program() {
	mkdir -p "$tmp/debs/partial" "$tmp/all"
	look 1440 || look 10 || cannot "Debian's $RELEASE has no $PACKAGE, or its lists cannot be fetched"
	if [ ! -d "$out" ]; then
		# Lists may name packages that were taken away.
		fetch || { look 10 && fetch; } || cannot "$PACKAGE $version cannot be fetched, or there is no network"
		unpack "$1" "$2"
		unpack_more
		write_wrapper
		chmod 755 "$tmp/root/bin/$1"
		"$tmp/root/bin/$1" --version >"$tmp/log" 2>&1 ||
			{ tail -n 5 "$tmp/log" >&2; die "$PACKAGE $version does not start"; }
		publish "$tmp/root" "$out"
	fi
	printf '%s\n' "$out"
}
