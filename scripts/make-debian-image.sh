#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes a disk image with a stock Debian 12: 2 GiB, one ext4 file system without a
# partition table, Debian's cloud kernel with the initrd that initramfs-tools makes by
# its defaults, sysvinit. Its inittab runs the start scripts, says "debian: up" on the
# console and powers off.
#
#   scripts/make-debian-image.sh
#
# Prints the image's path on stdout. Needs no root: mmdebstrap chooses a way that works
# for the user who calls it. Fetches packages from the mirrors that apt knows here.
#
# Cached in ${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}, by this script's
# sum; an image that exists there is complete.
set -eu

say() { printf '%s\n' "make-debian-image: $*" >&2; }
die() { say "$*"; exit 1; }

[ $# -eq 0 ] || die "usage: make-debian-image.sh"
PATH=$PATH:/sbin:/usr/sbin
for tool in mmdebstrap mke2fs apt-get; do
	command -v $tool >/dev/null || die "$tool is missing"
done

cache=${KVMPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmprof}
out=$cache/debian-image-$(sha256sum <"$0" | cut -c 1-12)
if [ -e "$out/debian.img" ]; then
	printf '%s\n' "$out/debian.img"
	exit 0
fi

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/debian-image.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$tmp"

cat >"$tmp/inittab" <<'END'
id:2:initdefault:
si::sysinit:/etc/init.d/rcS
up:2:wait:/bin/sh -c 'echo debian: up $(cat /proc/sys/kernel/osrelease) on $(findmnt -no SOURCE /) >/dev/console'
po:2:wait:/sbin/poweroff
l0:0:wait:/etc/init.d/rc 0
l6:6:wait:/etc/init.d/rc 6
END

uuid=6b766d70-726f-4600-8000-000000000001
cat >"$tmp/fstab" <<END
UUID=$uuid / ext4 errors=remount-ro 0 1
END

say "fetching and unpacking packages; this takes minutes"
mmdebstrap --quiet --variant=minbase \
	--include=linux-image-cloud-amd64,initramfs-tools,sysvinit-core,udev,zstd \
	--customize-hook="upload '$tmp/inittab' /etc/inittab" \
	--customize-hook="upload '$tmp/fstab' /etc/fstab" \
	--customize-hook='echo debian >"$1/etc/hostname"; rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' \
	bookworm "$tmp/tree.tar" 2>"$tmp/log" || {
	tail -n 5 "$tmp/log" >&2
	die "mmdebstrap could not make the tree"
}

# Owners in the tree are as they shall be in the image: for another user than root within a
# user namespace. The nodes in /dev nobody needs, devtmpfs has them.
cat >"$tmp/make" <<END
set -e
mkdir "$tmp/disk/tree"
tar -C "$tmp/disk/tree" -x --numeric-owner --exclude='./dev/*' -f "$tmp/tree.tar"
mke2fs -q -t ext4 -U $uuid -L debian -E root_owner=0:0,hash_seed=$uuid \
	-d "$tmp/disk/tree" "$tmp/disk/debian.img" 2G
rm -rf "$tmp/disk/tree"
chmod 644 "$tmp/disk/debian.img"
END
mkdir -m 777 "$tmp/disk"
if [ "$(id -u)" -eq 0 ]; then
	sh "$tmp/make"
else
	mmdebstrap --unshare-helper sh "$tmp/make"
fi >"$tmp/log" 2>&1 || {
	tail -n 5 "$tmp/log" >&2
	die "mke2fs could not make the image"
}
mkdir "$tmp/out"
mv "$tmp/disk/debian.img" "$tmp/out/"
# Of two that race, the first one's directory stays.
mv -T "$tmp/out" "$out" 2>/dev/null || [ -e "$out/debian.img" ] || die "$out: cannot create"
printf '%s\n' "$out/debian.img"
