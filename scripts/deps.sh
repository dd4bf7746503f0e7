#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installs what is missing for building or testing, through apt.
#
#   scripts/deps.sh [build|demo|test|all]      (default: build)
#
# Asks nothing. When all is there it says nothing and needs neither root nor a
# network. Where it cannot help it names what is missing and exits 1.
set -eu

die() { printf '%s\n' "deps: $*" >&2; exit 1; }

BUILD="gcc g++ clang make pkg-config libc6-dev linux-libc-dev libcapstone-dev zlib1g-dev liblzma-dev
	libzstd-dev liblz4-dev libbz2-dev libprotobuf-c-dev protobuf-c-compiler libelf-dev libbpf-dev
	libtomlplusplus-dev libdw-dev libdebuginfod-dev libcurl4-openssl-dev libiberty-dev libjansson-dev
	libncurses-dev libvirt-dev libxml2-dev libslirp-dev libblkid-dev libext2fs-dev comerr-dev libarchive-dev python3"
# perf is the reader that the demo's output is shown with.
DEMO="linux-perf"
# The unit tests' library; a second compiler; what a guest kernel is made of.
# The readers of exported profiles: a browser and npm (speedscope), protoc, callgrind_annotate.
TEST="libcmocka-dev acpica-tools perl git elfutils dwz chromium protobuf-compiler python3-protobuf
	python3-jsonschema python3-yaml tmux qemu-system-x86 libvirt-daemon
	libvirt-daemon-driver-qemu libvirt-clients valgrind groff man-db zsh zstd openssl
	busybox-static linux-source-6.1 dwarves bc bison flex cpio libssl-dev kmod xz-utils lz4
	fdisk e2fsprogs dosfstools mtools mmdebstrap"

# Debian's npm conflicts with node from elsewhere, whose npm will do.
command -v npm >/dev/null || TEST="$TEST npm"

case ${1:-build} in
build)    want="$BUILD" ;;
demo)     want="$BUILD $DEMO" ;;
test|all) want="$BUILD $DEMO $TEST" ;;
*)        die "usage: deps.sh [build|demo|test|all]" ;;
esac
[ $# -le 1 ] || die "usage: deps.sh [build|demo|test|all]"

# On a system without dpkg nothing can be known or done here.
command -v dpkg-query >/dev/null ||
	die "not a Debian system; install the counterparts of:" $want

# One query for all; unknown names are complained about on stderr only.
have=$(dpkg-query -W -f '${db:Status-Status}:${Package}\n' $want 2>/dev/null |
	sed -n 's/^installed://p' || :)
missing=
for package in $want; do
	case "
$have
" in
	*"
$package
"*)	;;
	*)	missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
		die "need root (or sudo without a password) to install:$missing"
	as_root="sudo -n"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1
}

printf '%s\n' "deps: installing$missing" >&2
# The lists are updated only when they turn out to be too old: it takes long.
if ! apt install --no-install-recommends $missing; then
	apt update || :
	if ! apt install --no-install-recommends $missing; then
		# apt's own reasons are its lines that begin with E:
		reason=$(sed -n 's/^E: //p' "$log" | tail -n 1)
		die "apt could not install$missing${reason:+: $reason}"
	fi
fi
