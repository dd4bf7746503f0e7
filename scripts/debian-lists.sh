# SPDX-License-Identifier: GPL-2.0-or-later
#
# To be read in by the scripts that fetch Debian's packages without installing them.
# The lists of packages are our own, in the cache, and the system's apt, its
# sources and lists stay as they are. The mirror is the one that the system's sources
# name. say MESSAGE and cannot MESSAGE (exit 3) are the caller's.
#
# After start_lists: $cache, $lists, and $tmp, a directory in the cache that is removed at exit.

start_lists() {
	for tool in apt-cache apt-get dpkg-deb flock; do
		command -v $tool >/dev/null || cannot "$tool is missing: this script needs Debian"
	done
	cache=${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
	lists=$cache/debian-apt
	mkdir -p "$lists/lists/partial" "$lists/archives/partial"
	tmp=$(mktemp -d "$cache/.fetch.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
}

# apt TOOL ARGUMENT...: apt with our lists only. As root it would download as
# another user, who cannot write here.
apt() {
	apt_tool=$1
	shift
	$apt_tool -q -o APT::Sandbox::User="$(id -un)" -o APT::Architecture=amd64 \
		-o APT::Architectures=amd64 -o Acquire::Languages=none -o Acquire::Retries=2 \
		-o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o Dir::State::lists="$lists/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$lists" -o Dir::Cache::pkgcache=pkgcache.bin \
		-o Dir::Cache::srcpkgcache=srcpkgcache.bin "$@"
}

# of_release RELEASE TOOL ARGUMENT...: apt, with the lists of this one release, and its packages in $tmp/debs
of_release() {
	release_of=$1
	release_tool=$2
	shift 2
	grep -E "/? $release_of(-security)? main\$" "$lists/sources.list" >"$tmp/sources.list"
	apt "$release_tool" -o Dir::Etc::sourcelist="$tmp/sources.list" -o Dir::Cache::pkgcache= \
		-o Dir::Cache::srcpkgcache= -o Dir::Cache::archives="$tmp/debs" "$@"
}

# mirror NAME: the system's source whose address ends so, else Debian's own.
mirror() {
	system=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		 grep -E "^https?://.*/$1/?\$" | head -n 1)
	printf '%s\n' "${system:-http://deb.debian.org/$1}"
}

write_sources() {
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$keys" ] || cannot "$keys is missing: install debian-archive-keyring"
	debian=$(mirror debian)
	security=$(mirror debian-security)
	for suite in bullseye bookworm bookworm-backports trixie trixie-backports sid; do
		printf '%s\n' "deb [signed-by=$keys] $debian $suite main"
	done >"$lists/sources.list"
	for suite in bullseye bookworm trixie; do
		printf '%s\n' "deb [signed-by=$keys] $security $suite-security main"
	done >>"$lists/sources.list"
}

# update MINUTES: fetches the lists, if they are older than that. A suite that is
# gone does no harm to the others.
update() {
	[ -z "$(find "$lists/stamp" -mmin "-$1" 2>/dev/null)" ] || return 0
	say "fetching the lists of Debian's packages (40 MB)"
	write_sources
	apt apt-get update >"$tmp/update" 2>&1 || say "$(grep -E '^[EW]:' "$tmp/update" | head -n 1)"
	# Without a network there is nothing but errors, and the old lists stay.
	if grep -qE '^(Get|Hit):' "$tmp/update"; then
		rm -f "$lists/gone"
		: >"$lists/stamp"
	fi
}

# publish DIR TARGET: of two that race, the first one's directory stays.
publish() {
	chmod 755 "$1"
	mv -T "$1" "$2" 2>/dev/null || [ -d "$2" ] || { say "cannot create $2"; exit 1; }
}
