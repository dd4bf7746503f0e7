#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what is missing for building or testing, through apt.
#
#   scripts/deps.sh [build|check|kernel|test|all]      (default: build)
#
# check: what `make check` needs, so the build and its test library; kernel: what
# build-guest-kernel.sh needs for the small kernels (tiny, smp-fp, full); test and all: what all
# tests need.
# Asks nothing. When all is there it says nothing and needs neither root nor a network.
# A package that cannot be had: a required one ends this with status 1 and one line; an
# optional one costs the line that says what is lost without it. What apt could not give is
# not asked for again within a day (the list is in the cache of the scripts).
set -eu

say() { printf '%s\n' "deps: $*" >&2; }
die() { say "$*"; exit 1; }

# A|B: B where the system has no package A.
BUILD="gcc g++ clang make pkg-config libc6-dev linux-libc-dev libcapstone-dev zlib1g-dev liblzma-dev
	libzstd-dev liblz4-dev libbz2-dev libprotobuf-c-dev protobuf-c-compiler libelf-dev libbpf-dev
	libtomlplusplus-dev libdw-dev libdebuginfod-dev libcurl4-openssl-dev libiberty-dev libjansson-dev
	libncurses-dev libvirt-dev libxml2-dev libslirp-dev libblkid-dev libext2fs-dev comerr-dev libarchive-dev libnbd-dev nettle-dev python3"
# What the build needs is called so by Debian, Fedora and Arch; -: it comes with another one. The last two
# by their package lists: nothing is installed there.
COUNTERPARTS='gcc gcc gcc
g++ gcc-c++ -
clang clang clang
make make make
pkg-config pkgconf-pkg-config pkgconf
libc6-dev glibc-devel glibc
linux-libc-dev kernel-headers linux-api-headers
libcapstone-dev capstone-devel capstone
zlib1g-dev zlib-devel zlib
liblzma-dev xz-devel xz
libzstd-dev libzstd-devel zstd
liblz4-dev lz4-devel lz4
libbz2-dev bzip2-devel bzip2
libprotobuf-c-dev protobuf-c-devel protobuf-c
protobuf-c-compiler protobuf-c-compiler -
libelf-dev elfutils-libelf-devel libelf
libbpf-dev libbpf-devel libbpf
libtomlplusplus-dev tomlplusplus-devel tomlplusplus
libdw-dev elfutils-devel -
libdebuginfod-dev elfutils-debuginfod-client-devel debuginfod
libcurl4-openssl-dev libcurl-devel curl
libiberty-dev binutils-devel binutils
libjansson-dev jansson-devel jansson
libncurses-dev ncurses-devel ncurses
libvirt-dev libvirt-devel libvirt
libxml2-dev libxml2-devel libxml2
libslirp-dev libslirp-devel libslirp
libblkid-dev libblkid-devel util-linux-libs
libext2fs-dev e2fsprogs-devel e2fsprogs
comerr-dev libcom_err-devel -
libarchive-dev libarchive-devel libarchive
libnbd-dev libnbd-devel libnbd
nettle-dev nettle-devel nettle
python3 python3 python'
# The unit tests' libraries, and what makes and reads the tests' files.
TEST="libcmocka-dev libseccomp-dev acpica-tools perl git elfutils dwz protobuf-compiler python3-protobuf
	python3-jsonschema python3-yaml openssl cpio kmod xz-utils zstd lz4 fdisk e2fsprogs dosfstools mtools"
CHECK="libcmocka-dev libseccomp-dev"
# What one of the small guest kernels is built of and with; nothing of the program's own build.
KERNEL="linux-source-6.1|linux-source gcc make libc6-dev libelf-dev libssl-dev bc bison flex dwarves
	python3 perl cpio xz-utils lz4"
# Package names, a colon, and what is lost without them.
OPTIONAL='linux-perf|linux-tools-generic: profiles are not read with stock perf, those tests are skipped
linux-source-6.1|linux-source bc bison flex libssl-dev dwarves: no guest kernel can be built, tests that boot one are skipped
clang-16|clang-19 lld-16|lld-19 llvm-16|llvm-19: kernels with LTO and kCFI are not looked into
linux-source-6.12: a kernel with FineIBT is not looked into
gcc-14-plugin-dev|gcc-12-plugin-dev: a kernel with shuffled structures is not looked into
qemu-system-x86: tests that attach to QEMU are skipped
qemu-utils: disk images that are not raw are not read in tests
libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients: tests with libvirt are skipped
chromium: tests that show pictures in a browser are skipped
npm: the tests with speedscope and with Perfetto are skipped
tmux: tests of what a terminal shows are skipped
valgrind: exports are not read with callgrind_annotate
lcov: exports of lines are not read with genhtml
groff man-db: tests of the manual pages are skipped
zsh: completion in zsh is not tested
gdb: the sandbox is not tested from within
golang-go: exports for pprof are not read with go tool pprof, and Go programs not unwound
rustc: Rust programs are not unwound
nodejs: code that node makes is not unwound, and no trace is read with Perfetto
openjdk-17-jdk-headless|openjdk-21-jdk-headless: Java programs are not unwound
strace: which system calls threads use is not compared with their lists
busybox-static: tests that run a shell in the guest are skipped
mmdebstrap: tests that make a Debian are skipped'
DAY=1440    # minutes

usage="usage: deps.sh [build|check|kernel|test|all]"
[ $# -le 1 ] || die "$usage"
case ${1:-build} in
build)    required=$BUILD optional= ;;
check)    required="$BUILD $CHECK" optional= ;;
kernel)   required=$KERNEL optional= ;;
test|all) required="$BUILD $TEST" optional=$OPTIONAL ;;
*)        die "$usage" ;;
esac
# Debian's npm conflicts with node from elsewhere, whose npm will do.
! command -v npm >/dev/null || optional=$(printf '%s\n' "$optional" | sed '/^npm:/d')
# rustup's compiler is as good as Debian's.
! command -v rustc >/dev/null || optional=$(printf '%s\n' "$optional" | sed '/^rustc:/d')
wanted=$(printf '%s\n' "$optional" | sed 's/:.*//')

# The names of column $1 of COUNTERPARTS.
counterparts() { printf '%s\n' "$COUNTERPARTS" | cut -d ' ' -f "$1" | grep -v '^-$'; }

# On a system without dpkg nothing can be known or done here.
if ! command -v dpkg-query >/dev/null; then
	if command -v dnf >/dev/null; then
		say "not a Debian system; for the build:" dnf install $(counterparts 2)
	elif command -v pacman >/dev/null; then
		say "not a Debian system; for the build:" pacman -S --needed $(counterparts 3)
	else
		die "not a Debian system; install the counterparts of:" $required
	fi
	case ${1:-build} in
	build)  ;;
	check)  say "for \`make check\`, the counterparts of:" $CHECK ;;
	kernel) say "for a kernel, the counterparts of:" $KERNEL ;;
	*)      say "for the tests, the counterparts of:" $TEST ;;
	esac
	exit 1
fi

# The first argument has a line that is the second one.
has_line() {
	case "
$1
" in
	*"
$2
"*)	return 0 ;;
	esac
	return 1
}

# Of packages with alternatives, the first name that the list $1 has; nothing: none.
first_of() {
	for name in $(printf '%s\n' "$2" | tr '|' ' '); do
		if has_line "$1" "$name"; then
			printf '%s\n' "$name"
			return
		fi
	done
}

# Of the packages given, those that are not installed; one query for all.
not_installed() {
	have=$(dpkg-query -W -f '${db:Status-Status}:${Package}\n' \
		$(printf '%s\n' "$*" | tr '|' ' ') 2>/dev/null | sed -n 's/^installed://p' || :)
	for package; do
		[ -n "$(first_of "$have" "$package")" ] || printf '%s\n' "$package"
	done
}

# One line for each group of optional packages of which one is missing.
tell_optional() {
	[ -n "$1" ] || return 0
	printf '%s\n' "$optional" | while IFS= read -r line; do
		names=
		for package in ${line%%:*}; do
			! has_line "$1" "$package" || names="$names ${package%%|*}"
		done
		[ -z "$names" ] || say "without$names:${line#*:}"
	done
}

missing=$(not_installed $required)
without=$(not_installed $wanted)
[ -n "$missing$without" ] || exit 0

cache=${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
noted=
if [ -n "$(find "$cache/deps-without" -mmin -$DAY -newer "$0" 2>/dev/null)" ]; then
	noted=$(cat "$cache/deps-without")
fi
ask=
for package in $without; do
	has_line "$noted" "$package" || ask="$ask $package"
done
if [ -z "$missing$ask" ]; then
	tell_optional "$without"
	exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
		[ -z "$missing" ] || die "need root (or sudo without a password) to install:" $missing
		tell_optional "$without"
		exit 0
	fi
	as_root="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1
}
install() { apt install --no-install-recommends "$@"; }
# apt's own reasons are its lines that begin with E:
reason() { sed -n 's/^E: //p' "$log" | tail -n 1; }

# What apt shall install, into $names, and what it does not know, into $unknown. Only names
# that exist as they are: apt takes another one with a '.' in it for a pattern, and installs
# all that matches.
resolve() {
	known=$(apt-cache pkgnames 2>/dev/null || :)
	names= unknown=
	for package in $missing $ask; do
		name=$(first_of "$known" "$package")
		if [ -n "$name" ]; then
			names="$names $name"
		else
			unknown="$unknown $package"
		fi
	done
}

# The lists are updated only when they turn out to be too old: it takes long.
updated=
update() {
	[ -z "$updated" ] || return 0
	updated=yes
	apt update || say "apt cannot update its lists: $(reason)"
	resolve
}

resolve
[ -z "$unknown" ] || update
for package in $unknown; do
	! has_line "$missing" "$package" ||
		die "apt knows no package $package, which the ${1:-build} needs: see its sources"
done

why=
if [ -n "$names" ]; then
	say "installing$names"
	if ! install $names; then
		update
		# One that cannot be installed keeps all others from it.
		if ! install $names; then
			for name in $names; do
				install "$name" || ! has_line "$missing" "$name" || why=$(reason)
			done
		fi
	fi
fi

missing=$(not_installed $missing)
[ -z "$missing" ] || die "apt could not install" $missing"${why:+: $why}"
without=$(not_installed $wanted)
if [ -n "$without" ] && mkdir -p "$cache" && printf '%s\n' "$without" >"$cache/deps-without.$$"; then
	mv "$cache/deps-without.$$" "$cache/deps-without"
	say "apt is asked for these again in a day, or once $cache/deps-without is removed:"
fi
tell_optional "$without"
