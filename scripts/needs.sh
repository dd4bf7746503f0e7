#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Names the packages that a build lacks. Installs nothing.
#
#   scripts/needs.sh build|check      (check: what `make check` needs in addition)
#
# Looks for the programs and headers themselves, not for packages: a library that was built by
# hand is as good. $CC is the compiler (gcc). Names are Debian's; `make deps` knows those of
# Fedora and Arch. Exit status: 0 when all is there, else 1, with one line on stderr.
set -u

# PROGRAM PACKAGE
PROGRAMS='clang clang
pkg-config pkg-config
protoc-c protobuf-c-compiler
python3 python3
objcopy binutils'
# HEADER PACKAGE
HEADERS='stdio.h libc6-dev
linux/kvm.h linux-libc-dev
capstone/capstone.h libcapstone-dev
zlib.h zlib1g-dev
lzma.h liblzma-dev
zstd.h libzstd-dev
lz4.h liblz4-dev
bzlib.h libbz2-dev
protobuf-c/protobuf-c.h libprotobuf-c-dev
libelf.h libelf-dev
bpf/bpf.h libbpf-dev
elfutils/libdwfl.h libdw-dev
elfutils/debuginfod.h libdebuginfod-dev
libiberty/demangle.h libiberty-dev
jansson.h libjansson-dev
ncurses.h libncurses-dev
curl/curl.h libcurl4-openssl-dev
slirp/libslirp.h libslirp-dev
libvirt/libvirt.h libvirt-dev
libxml/parser.h libxml2-dev
blkid/blkid.h libblkid-dev
ext2fs/ext2fs.h libext2fs-dev
et/com_err.h comerr-dev
archive.h libarchive-dev
libnbd.h libnbd-dev
nettle/sha2.h nettle-dev'
CXX_HEADERS='toml++/toml.h libtomlplusplus-dev
vector g++'
CHECK_HEADERS='cmocka.h libcmocka-dev
seccomp.h libseccomp-dev'

say() { printf '%s\n' "needs: $*" >&2; }

case ${1:-} in
build) ;;
check) HEADERS="$HEADERS
$CHECK_HEADERS" ;;
*)     say "usage: needs.sh build|check"; exit 2 ;;
esac
CC=${CC:-gcc}

# Prints the packages of those headers in the list $2 that the compiler does not find; $1 is the language.
# One run of the preprocessor looks for all of them.
headers() {
	printf '%s\n' "$2" | while read -r header package; do
		printf '#if !__has_include(<%s>)\nkvmprof-lacks %s\n#endif\n' "$header" "$package"
	done | $CC -x "$1" -E -P -Ulinux -I/usr/include/libxml2 - 2>/dev/null | sed -n 's/^kvmprof-lacks //p'
}

lacks=
if command -v "${CC%% *}" >/dev/null; then
	lacks="$(headers c "$HEADERS") $(headers c++ "$CXX_HEADERS")"
	# A compiler that cannot preprocess C++ says nothing of its headers.
	printf '' | $CC -x c++ -E - >/dev/null 2>&1 || lacks="$lacks g++"
else
	lacks="gcc g++ $(printf '%s\n' "$HEADERS" "$CXX_HEADERS" | cut -d ' ' -f 2)"
fi
while read -r program package; do
	command -v "$program" >/dev/null || lacks="$lacks $package"
done <<END
$PROGRAMS
END

lacks=$(printf '%s\n' $lacks | sort -u | tr '\n' ' ')
lacks=${lacks% }
[ -n "$lacks" ] || exit 0
say "not installed: $lacks (\`scripts/deps.sh $1\` installs what is missing)"
exit 1
