#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: slow, at most 120 s: mkconfig
# tests: not svm, files
"""disk_images.py KVMPROF SCRATCH [mkconfig]: what `kvmprof inspect` finds on disks, made here, with each kind
of boot entry, and what it says of files that are no disks. Needs no /dev/kvm. mkconfig: the menus are those that
Debian's grub-mkconfig makes."""

import json
import os
import re
import shutil
import subprocess

import disk_fixture as disk
import e2e
import uki_fixture as uki
from e2e import check, say

disk.need_tools()
ROOT = {"/sbin/init": "#!", "/etc/os-release": 'NAME=x\nPRETTY_NAME="Test OS 1"\n'}
XBOOTLDR = "bc13c2ff-59e6-4262-a352-b275fd6f7172"
# The embedded demo is an ELF64 kernel like any other.
with open(os.path.join(e2e.BUILD, "guest", "demo.elf"), "rb") as f:
    KERNEL = f.read()


def inspect(image, status=0):
    p = e2e.kvmprof("inspect", "--json", image)
    if not check(p.status == status, "inspect %s: status %d: %s" % (image, p.status, p.err)):
        e2e.finish()
    facts = json.loads(p.out)
    text = e2e.kvmprof("inspect", image)
    check(text.status == status and (status or text.out), "inspect %s as text" % image)
    return facts


def expect(name, image, source, kernel, cmdline, initrd=(), partition=None):
    facts = inspect(image)
    boots = facts["disk"]["boots"]
    got = (boots["source"], boots["kernel"]["path"], boots["cmdline"],
           [i["path"] for i in boots["initrd"]])
    check(got == (source, kernel, cmdline, list(initrd)), "%s: %r" % (name, got))
    check(partition is None or boots["kernel"]["partition"] == partition,
          "%s: partition %r" % (name, boots["kernel"]))
    check(facts["kernel"]["names"] > 10, "%s: no names" % name)
    return facts


def whole(files, mib=8):
    """A file system without a partition table."""
    with open("disk.img", "wb") as f:
        f.truncate(mib * disk.MIB)
    disk.ext4("disk.img", dict(ROOT, **files), 1, mib)
    return "disk.img"


def bls():
    """Entries on a FAT boot partition; the root is another one."""
    entry = "title T %s\nversion %s\nlinux /vmlinuz-%s\ninitrd /ucode\ninitrd /initrd-%s\n" \
            "options root=UUID=" + disk.uuid(1) + " quiet\n"
    for bits, fat_mib in ((16, 8), (32, 40)):
        a, b = disk.disk("disk.img", 52, "gpt", [(fat_mib, "uefi", "esp"), (8, "linux", "root")])
        files = {"/loader/loader.conf": "timeout 3\n", "/ucode": b"u" * 5}
        for v in ("6.1.9", "6.1.10", "6.0.99"):
            files["/loader/entries/test-%s.conf" % v] = entry % (v, v, v, v)
            files["/vmlinuz-" + v] = KERNEL if v != "6.0.99" else b"\x7fELF"
            files["/initrd-" + v] = b"initrd " + v.encode()
        disk.vfat("disk.img", files, fat_mib, a)
        disk.ext4("disk.img", ROOT, 1, 8, b)
        facts = expect("bls fat%d" % bits, "disk.img", "bls", "/vmlinuz-6.1.10",
                       "root=UUID=%s quiet" % disk.uuid(1), ["/ucode", "/initrd-6.1.10"], 1)
        parts = facts["disk"]["partitions"]
        check([p["file_system"] for p in parts] == ["vfat", "ext4"], "file systems: %r" % parts)
        check(parts[1]["partition_uuid"] == disk.uuid(0x102) and parts[1]["os"] == "Test OS 1" and
              parts[1]["init"] and parts[1]["name"] == "root" and parts[1]["uuid"] == disk.uuid(1),
              "the root: %r" % parts[1])
    # The newest one's kernel is gone, then loader.conf wishes for another.
    del files["/vmlinuz-6.1.10"]
    disk.vfat("disk.img", files, 40, a)
    facts = expect("bls missing", "disk.img", "bls", "/vmlinuz-6.1.9",
                   "root=UUID=%s quiet" % disk.uuid(1), ["/ucode", "/initrd-6.1.9"])
    check("/vmlinuz-6.1.10" in " ".join(facts["disk"]["notes"]), "no note: %r" %
          facts["disk"]["notes"])
    files["/vmlinuz-6.0.99"] = KERNEL
    files["/loader/loader.conf"] = "default test-6.0*\n"
    disk.vfat("disk.img", files, 40, a)
    expect("bls default", "disk.img", "bls", "/vmlinuz-6.0.99",
           "root=UUID=%s quiet" % disk.uuid(1), ["/ucode", "/initrd-6.0.99"])


def bls_variables():
    """As Red Hat's: options out of GRUB's environment block, no initrd that is a variable."""
    expect("kernelopts", whole({
        "/boot/loader/entries/a.conf": "linux /boot/vmlinuz\noptions $kernelopts $tuned\n"
                                       "initrd /boot/i $tuned_initrd\n",
        "/boot/grub2/grubenv": "# GRUB\nkernelopts=root=/dev/vda ro\n#####",
        "/boot/vmlinuz": KERNEL, "/boot/i": b"i"}),
        "bls", "/boot/vmlinuz", "root=/dev/vda ro", ["/boot/i"])


def grub():
    """A menu; /boot is a file system of its own; MBR; names of another disk; saved default."""
    a, b = disk.disk("disk.img", 24, "dos", [(8, "83", ""), (8, "83", "")])
    menu = ("set default=\"0\"\nload_env\nset default=\"${saved_entry}\"\n"
            "search --no-floppy --fs-uuid --set=root %s\n"
            "menuentry 'new' --id new {\nlinux /vmlinuz-2 root=/dev/sda2 ro\n}\n"
            "submenu 'more' --id more {\nmenuentry 'old' --id old {\n"
            "linux /vmlinuz-1 root=UUID=%s single\n}\n}\n" % (disk.uuid(7), disk.uuid(1)))
    files = {"/grub/grub.cfg": menu, "/vmlinuz-1": KERNEL, "/vmlinuz-2": KERNEL}
    disk.ext4("disk.img", files, 7, 8, a, "boot")
    disk.ext4("disk.img", ROOT, 1, 8, b)
    facts = expect("grub", "disk.img", "grub", "/vmlinuz-2", "ro root=PARTUUID=6b766d70-02", (), 1)
    check("/dev/sda2" in facts["disk"]["boots"]["cmdline_note"], "no note about root=")
    files["/grub/grubenv"] = "saved_entry=more>old\n"
    disk.ext4("disk.img", files, 7, 8, a, "boot")
    expect("grub saved", "disk.img", "grub", "/vmlinuz-1", "single root=PARTUUID=6b766d70-02")


FEDORA = """if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
else
   set default="${saved_entry}"
fi
insmod blscfg
blscfg
menuentry 'UEFI Firmware Settings' --id 'uefi-firmware' {
	fwsetup
}
"""


def blscfg():
    """Fedora's and Red Hat's: entries are files of their own, GRUB's menu and environment choose among them."""
    options = "root=/dev/vda ro"
    entry = ("title Fedora Linux (%s)\nversion %s\nlinux /boot/vmlinuz-%s\n"
             "initrd /boot/initramfs-%s.img $tuned_initrd\noptions $kernelopts $tuned_params\n")
    files = {"/boot/grub2/grub.cfg": FEDORA, "/boot/extra": b"x", "/boot/loader/loader.conf": "default *6.11.5*\n"}
    for v in ("6.11.5", "6.11.4", "0-rescue"):
        files["/boot/loader/entries/0ab-%s.conf" % v] = entry % (v, v, v, v)
        files["/boot/vmlinuz-" + v] = KERNEL
        files["/boot/initramfs-%s.img" % v] = b"initrd"

    def chosen(env, version, more=(), args=options, by="saved_entry"):
        files["/boot/grub2/grubenv"] = "# GRUB Environment Block\nkernelopts=%s\n%s\n######" % (options, env)
        facts = expect("blscfg, " + env, whole(files), "bls", "/boot/vmlinuz-" + version, args,
                       ["/boot/initramfs-%s.img" % version] + list(more))
        menu = facts["disk"]["grub"]
        check(menu["booted"] and menu["chosen_by"] == by and version in menu["title"], "%s: GRUB: %r" % (env, menu))
    chosen("saved_entry=0ab-6.11.4", "6.11.4")
    chosen("saved_entry=Fedora Linux (6.11.4)", "6.11.4")
    chosen("saved_entry=1", "6.11.4")
    chosen("saved_entry=2", "0-rescue")
    chosen("saved_entry=0ab-0-rescue\nnext_entry=0ab-6.11.4", "6.11.4", by="next_entry")
    chosen("saved_entry=no-longer-there", "6.11.5")
    chosen("saved_entry=0ab-6.11.4\ntuned_initrd=/boot/extra\ntuned_params=a=b c", "6.11.4", ["/boot/extra"],
           options + " a=b c")
    # What it would boot cannot be booted here: no Linux, or a file that is gone.
    files["/boot/grub2/grubenv"] = "kernelopts=%s\nsaved_entry=uefi-firmware\n" % options
    facts = expect("blscfg, firmware", whole(files), "bls", "/boot/vmlinuz-6.11.5", options, ["/boot/initramfs-6.11.5.img"])
    check(not facts["disk"]["grub"]["booted"] and "fwsetup" in facts["disk"]["grub"]["not_booted_because"],
          "firmware: %r" % facts["disk"]["grub"])
    del files["/boot/vmlinuz-6.11.4"]
    files["/boot/grub2/grubenv"] = "kernelopts=%s\nsaved_entry=1\n" % options
    facts = expect("blscfg, gone", whole(files), "bls", "/boot/vmlinuz-6.11.5", options, ["/boot/initramfs-6.11.5.img"])
    check("vmlinuz-6.11.4" in facts["disk"]["grub"]["not_booted_because"] and
          "not the default" in facts["disk"]["boots"]["because"], "gone: %r" % facts["disk"])


def grub_says():
    """What GRUB would boot is said, and why it is not what kvmprof boots."""
    linux = "menuentry 'Linux' --id l {\nlinux /boot/vmlinuz root=/dev/vda\n}\n"
    xen = "menuentry 'Xen' --id x {\nmultiboot2 /boot/xen.gz placeholder\nmodule2 /boot/vmlinuz placeholder\n}\n"
    files = {"/boot/vmlinuz": KERNEL, "/boot/grub/grub.cfg": "set default=x\n" + linux + xen}
    image = whole(files)
    facts = expect("Xen", image, "grub", "/boot/vmlinuz", "root=/dev/vda")
    menu = facts["disk"]["grub"]
    check(menu["title"] == "Xen" and menu["entry"] == "1" and "Xen, by multiboot" in menu["not_booted_because"],
          "Xen: %r" % menu)
    text = e2e.kvmprof("inspect", image).out
    check(re.search(r'^GRUB +would boot entry 1 "Xen" \(default=x\) of /boot/grub/grub.cfg\n +\(kvmprof boots another: ',
                    text, re.M), "inspect does not say what GRUB would boot:\n" + text)
    # The id of an entry in a submenu is nothing without the submenu's.
    files["/boot/vmlinuz-old"] = KERNEL
    files["/boot/grub/grub.cfg"] = ("set default=old\n" + linux + "submenu 'more' --id m {\nmenuentry 'old' --id old {\n"
                                    "linux /boot/vmlinuz-old root=/dev/vda\n}\n}\n")
    facts = expect("a bare nested id", whole(files), "grub", "/boot/vmlinuz", "root=/dev/vda")
    check(facts["disk"]["grub"]["booted"] and facts["disk"]["grub"]["entry"] == "0", "nested: %r" % facts["disk"]["grub"])
    files["/boot/grub/grub.cfg"] = files["/boot/grub/grub.cfg"].replace("default=old", "default='m>old'")
    expect("a nested id", whole(files), "grub", "/boot/vmlinuz-old", "root=/dev/vda")
    # Entries of systemd-boot beside a menu that does not read them.
    files["/boot/loader/entries/a.conf"] = "linux /boot/vmlinuz\noptions root=/dev/vda\n"
    facts = expect("both", whole(files), "bls", "/boot/vmlinuz", "root=/dev/vda")
    check("no blscfg" in facts["disk"]["grub"]["not_booted_because"], "both: %r" % facts["disk"]["grub"])


PROBE = """#!/bin/sh
# In place of grub-probe, which wants to see real devices.
for a; do
	case $a in --target=*) t=${a#--target=} ;; esac
	case $p in -t) t=$a ;; esac
	p=$a
done
case $t in
device) echo /dev/vda1 ;;
fs_uuid) echo %s ;;
fs) echo ext2 ;;
partmap) echo gpt ;;
partuuid) echo 0 ;;
compatibility_hint) echo hd0,gpt1 ;;
hints_string) echo --hint-bios=hd0,gpt1 ;;
abstraction) ;;
*) exit 1 ;;
esac
"""
XEN = "xen-4.17-amd64.gz"


def debian_grub(root):
    """Unpacks Debian's grub-mkconfig below root and has it look there alone; False without apt."""
    work = root + ".debs"
    os.makedirs(work)
    if not shutil.which("apt-get"):
        return False
    for name in ("grub-common", "grub2-common"):
        p = subprocess.run(["apt-get", "download", name], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        debs = [f for f in os.listdir(work) if f.startswith(name + "_")]
        if p.returncode or not debs:
            return False
        subprocess.run(["dpkg-deb", "-x", os.path.join(work, debs[0]), root], check=True)
    # Colours, by the background picture of the system.
    os.remove(os.path.join(root, "etc/grub.d/05_debian_theme"))
    scripts = [os.path.join(root, "usr/sbin/grub-mkconfig"), os.path.join(root, "usr/share/grub/grub-mkconfig_lib")]
    scripts += [os.path.join(root, "etc/grub.d", f) for f in os.listdir(os.path.join(root, "etc/grub.d"))]
    for path in scripts:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        text = re.sub(r'="/(usr|etc)', r'="%s/\1' % root, text)
        text = re.sub(r" /((?:boot/)?(?:vmlinu|kernel-|xen))", r" %s/\1" % root, text)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    for name, text in (("sbin/grub-probe", PROBE % disk.uuid(1)), ("bin/grub-mkrelpath", "#!/bin/sh\necho \"${1#%s}\"\n" % root),
                       ("bin/grub-script-check", "#!/bin/sh\n")):
        path = os.path.join(root, "usr", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)
    os.makedirs(os.path.join(root, "boot", "grub"))
    return True


def mkconfig():
    """Menus that Debian's own grub-mkconfig makes, of two kernels, without and with Xen."""
    root = os.path.abspath("debian-grub")
    if not debian_grub(root):
        e2e.left_out("Debian's packages of GRUB cannot be fetched")
        return
    files = {}
    for v in ("6.1.0-20-amd64", "6.1.0-18-amd64"):
        files["/boot/vmlinuz-" + v] = KERNEL
        files["/boot/initrd.img-" + v] = b"initrd"
        files["/boot/config-" + v] = b"CONFIG_XEN=y\nCONFIG_XEN_DOM0=y\n"
    for name, content in files.items():
        with open(root + name, "wb") as f:
            f.write(content)

    def menu(defaults):
        with open(os.path.join(root, "etc", "default", "grub"), "w", encoding="utf-8") as f:
            f.write('GRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_TIMEOUT=5\n' + defaults)
        p = e2e.run("sh", os.path.join(root, "usr/sbin/grub-mkconfig"))
        check(p.status == 0 and "menuentry" in p.out, "grub-mkconfig: %d %s" % (p.status, p.err))
        return p.out

    def boots(what, defaults, env, version, index, booted=True, by="default", mode=" ro quiet"):
        files["/boot/grub/grub.cfg"] = menu(defaults)
        files["/boot/grub/grubenv"] = "# GRUB Environment Block\n%s\n####" % env
        facts = expect(what, whole(files), "grub", "/boot/vmlinuz-" + version, "root=/dev/vda1" + mode,
                       ["/boot/initrd.img-" + version])
        got = facts["disk"]["grub"]
        check((got["entry"], got["booted"], got["chosen_by"]) == (index, booted, by), "%s: %r" % (what, got))
        return got
    new, old = "6.1.0-20-amd64", "6.1.0-18-amd64"
    advanced = "gnulinux-advanced-%s>gnulinux-%s-%%s-%s" % (disk.uuid(1), old, disk.uuid(1))
    boots("the first", "GRUB_DEFAULT=0\n", "", new, "0")
    boots("a place in the submenu", 'GRUB_DEFAULT="1>2"\n', "", old, "1>2")
    boots("saved", "GRUB_DEFAULT=saved\n", "saved_entry=" + advanced % "advanced", old, "1>2", by="saved_entry")
    boots("once", "GRUB_DEFAULT=saved\n", "saved_entry=0\nnext_entry=" + advanced % "recovery", old, "1>3", by="next_entry",
          mode=" ro single")
    boots("a bare id", "GRUB_DEFAULT=saved\n", "saved_entry=" + (advanced % "advanced").split(">")[1], new, "0", by="saved_entry")
    with open(os.path.join(root, "boot", XEN), "wb") as f:
        f.write(b"xen")
    got = boots("Xen", "GRUB_DEFAULT=2\n", "", new, "2", booted=False)
    check("with Xen hypervisor" in got["title"] and "multiboot" in got["not_booted_because"], "Xen: %r" % got)


def links():
    """Debian's links without a menu, the second from one file system into another."""
    expect("links", whole({
        "/vmlinuz": ("link", "boot/vmlinuz-5"), "/initrd.img": ("link", "boot/initrd.img-5"),
        "/boot/vmlinuz-5": KERNEL, "/boot/vmlinuz-6": b"\x7fELF", "/boot/initrd.img-5": b"i"}),
        "link", "/boot/vmlinuz-5", "root=UUID=%s ro" % disk.uuid(1), ["/boot/initrd.img-5"])
    a, b = disk.disk("disk.img", 24, "gpt", [(8, "linux", "boot"), (8, "linux", "root")])
    disk.ext4("disk.img", {"/vmlinuz-5": KERNEL, "/initrd.img-5": b"i"}, 7, 8, a, "boot")
    disk.ext4("disk.img", dict(ROOT, **{"/boot": None, "/vmlinuz": ("link", "boot/vmlinuz-5"),
                                        "/initrd.img": ("link", "/boot/initrd.img-5")}), 1, 8, b)
    expect("links across", "disk.img", "link", "/vmlinuz-5", "root=UUID=%s ro" % disk.uuid(1),
           ["/initrd.img-5"], 1)


def newest():
    expect("newest", whole({"/boot/vmlinuz-6.1.0-9-a": KERNEL, "/boot/vmlinuz-6.1.0-18-a": KERNEL,
                            "/boot/vmlinuz-0-rescue-ff": KERNEL,
                            "/boot/initramfs-6.1.0-18-a.img": b"i"}),
           "newest", "/boot/vmlinuz-6.1.0-18-a", "root=UUID=%s ro" % disk.uuid(1),
           ["/boot/initramfs-6.1.0-18-a.img"])
    expect("no initrd", whole({"/boot/vmlinuz-6": KERNEL}), "newest", "/boot/vmlinuz-6",
           "root=/dev/vda ro")


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)
    return name


def osrel(ident, version):
    return 'PRETTY_NAME="OS %s %s"\nID=%s\nVERSION_ID="%s"\n' % (ident, version, ident, version)


def unified():
    """A unified kernel image as a file."""
    facts = inspect(put("x.efi", uki.uki(KERNEL, b"i" * 5000, "root=/dev/sda2\tquiet \n",
                                         osrel("test", 12), "6.1.0-test\n", b"070701")))
    want = {"os": "OS test 12", "release": "6.1.0-test", "cmdline": "root=/dev/sda2 quiet",
            "kernel_bytes": len(KERNEL), "initrd_bytes": 5000, "microcode_bytes": 6, "profiles": 0}
    check(facts["what"] == "a unified kernel image" and facts["uki"] == want and
          facts["kernel"]["names"] > 10 and facts["disk"] is None, "x.efi: %r" % facts["uki"])
    text = e2e.kvmprof("inspect", "x.efi").out
    for line in ("image        x.efi: a unified kernel image", "unified      OS test 12, Linux 6.1.0-test",
                 "             initrd: 4.9 KiB", "command line root=/dev/sda2 quiet"):
        check(line + "\n" in text, "not there: %s in %s" % (line, text))
    facts = inspect(put("bare.efi", uki.uki(KERNEL)))
    check(facts["uki"]["os"] is None and facts["uki"]["cmdline"] is None and
          facts["uki"]["initrd_bytes"] == 0, "bare.efi: %r" % facts["uki"])
    check("initrd       none\ncommand line none\n" in e2e.kvmprof("inspect", "bare.efi").out, "bare")
    facts = inspect(put("profiles.efi", uki.image([
        (".linux", KERNEL), (".cmdline", b"base"), (".profile", b"ID=a\n"), (".cmdline", b"of a"),
        (".profile", b"ID=b\n"), (".cmdline", b"of b"), (".initrd", b"of b")])))
    check(facts["uki"]["profiles"] == 2 and facts["uki"]["cmdline"] == "of a" and
          facts["uki"]["initrd_bytes"] == 0, "profiles.efi: %r" % facts["uki"])
    check(e2e.kvmprof("symbols", "x.efi").out == e2e.kvmprof("symbols", put("elf", KERNEL)).out,
          "other symbols than the kernel's")


def unified_disks():
    """Unified kernel images on a disk, in one list with the other entries."""
    good = uki.uki(KERNEL, b"initrd", "quiet", osrel("test", 12))
    root = "quiet root=UUID=%s ro" % disk.uuid(1)

    def esp(name, more, kernel, cmdline=root, source="uki", initrd=(), partition=1):
        files = {"/EFI/BOOT/BOOTX64.EFI": b"MZ", "/EFI/Linux/Test-6.9.efi": good,
                 "/EFI/Linux/test-6.10.EFI": good, "/EFI/Linux/auto-x.efi": good,
                 "/EFI/Linux/test-7+0-3.efi": good}
        files.update(more)
        disk.vfat("disk.img", {k: v for k, v in files.items() if v}, 8, a)
        return expect(name, "disk.img", source, kernel, cmdline, initrd, partition)

    a, b, c = disk.disk("disk.img", 30, "gpt", [(8, "uefi", "esp"), (8, "linux", "root"),
                                                (8, XBOOTLDR, "boot")])
    disk.ext4("disk.img", ROOT, 1, 8, b)
    facts = esp("newest", {}, "/EFI/Linux/test-6.10.EFI")
    check(facts["disk"]["boots"]["title"] == "OS test 12" and facts["uki"]["initrd_bytes"] == 6,
          "uki: %r" % facts)
    check("default of 3" in facts["disk"]["boots"]["because"], facts["disk"]["boots"]["because"])
    text = e2e.kvmprof("inspect", "disk.img").out
    check("initrd       in the unified kernel image\n" in text, text)
    loader = "/loader/loader.conf"
    esp("default", {loader: "default test-6.9.efi\n"}, "/EFI/Linux/Test-6.9.efi")
    esp("default is tried out", {loader: "default test-7.*\n"}, "/EFI/Linux/test-7+0-3.efi")
    esp("no default", {loader: "default test-6.9.conf\n"}, "/EFI/Linux/test-6.10.EFI")
    first = {"/loader/entries/z.conf": "sort-key test\nversion 13\nlinux /k\noptions single\n",
             "/k": KERNEL}
    single = root.replace("quiet", "single").replace("UUID=" + disk.uuid(1),
                                                     "PARTUUID=" + disk.uuid(0x102))
    esp("type 1 first", first, "/k", single, "bls")
    esp("type 2 by default", dict(first, **{loader: "default Test*.efi\n"}), "/EFI/Linux/test-6.10.EFI")
    esp("type 1 off", dict(first, **{"/loader/entries.srel": "other\n"}), "/EFI/Linux/test-6.10.EFI")
    esp("type 1 is older", {"/loader/entries/z.conf": first["/loader/entries/z.conf"].replace("13", "11"),
                            "/k": KERNEL}, "/EFI/Linux/test-6.10.EFI")
    for key in ("uki", "linux"):
        for options, cmdline in (("options single\n", root.replace("quiet", "single")), ("", root)):
            esp("type 1, " + key, {"/loader/entries/z.conf": "sort-key a\n%s /x.efi\n%s" % (key, options),
                                   "/x.efi": good}, "/x.efi", cmdline, "bls")
    # The extended boot loader partition's are in the same list.
    files = {"/EFI/Linux/test-8.efi": good, "/EFI/Linux/readme.txt": "x"}
    disk.ext4("disk.img", files, 7, 8, c, "boot")
    esp("xbootldr", {}, "/EFI/Linux/test-8.efi", partition=3)
    for bad, note in ((uki.uki(KERNEL, machine=0xAA64), "another machine (arm64"),
                      (uki.image([(".osrel", b"ID=x")]), "not a unified kernel image"),
                      (good[:3000], "truncated unified kernel image"),
                      (good[:0x180], "its table of 5 sections ends")):
        facts = esp(note, {"/EFI/Linux/test-9.efi": bad}, "/EFI/Linux/test-8.efi", partition=3)
        check("/EFI/Linux/test-9.efi: " in facts["disk"]["notes"][0] and
              note in facts["disk"]["notes"][0], "%s: %r" % (note, facts["disk"]["notes"]))
    # A kernel that is none is seen when it is read.
    disk.ext4("disk.img", {"/EFI/Linux/test-8.efi": uki.uki(b"text\n" * 99, osrel=osrel("test", 13))}, 7, 8, c, "boot")
    facts = inspect("disk.img", 1)
    check("/EFI/Linux/test-8.efi: section .linux: this is a text file" in facts["error"], facts["error"])
    expect("below /boot", whole({"/boot/EFI/Linux/a.efi": uki.uki(KERNEL, b"i", "root=/dev/sda2 x")}),
           "uki", "/boot/EFI/Linux/a.efi", "x root=UUID=%s" % disk.uuid(1))


def circles():
    """Links that lead to themselves, entries that name nothing, menus that are broken."""
    facts = inspect(whole({"/vmlinuz": ("link", "vmlinuz2"), "/vmlinuz2": ("link", "vmlinuz"),
                           "/boot/grub/grub.cfg": "menuentry 'x {\n",
                           "/boot/loader/entries/a.conf": "linux /../../etc/passwd\n"}), 1)
    check(facts["disk"]["boots"] is None and "without a kernel" in facts["error"],
          "circles: %r" % facts["error"])
    check("a quote without its end" in " ".join(facts["disk"]["notes"]), "no note of the menu")


def refused():
    """What is no image, and what is said of it: one line."""
    os.mkdir("directory")
    cpio = b"070701" + b"0" * 200
    rows = [
        (put("empty", b""), "empty"),
        ("directory", "is a directory"),
        ("missing", "No such file"),
        ("/dev/null", "regular file"),
        (put("a.qcow2", b"QFI\xfb\0\0\0\3" + bytes(600)), "a.qcow2: "),
        (put("a.vmdk", b"KDMV" + bytes(600)), "a.vmdk: this vmdk image is not complete: "),
        (put("a.iso", bytes(0x8001) + b"CD001" + bytes(2048)), "CD image"),
        (put("initrd", cpio), "--initrd"),
        (put("a.gz", b"\x1f\x8b\x08" + bytes(200)), "compressed with gzip"),
        (put("text", b"hello\n" * 100), "a text file"),
        (put("zeros", bytes(1 << 20)), "all zero"),
        (put("shell.efi", uki.image([(".text", b"x")])), "program without a Linux kernel in it"),
        (put("arm.efi", uki.uki(KERNEL, machine=0xAA64)), "another machine (arm64, 0xaa64)"),
        (put("cut.efi", uki.uki(KERNEL)[:5000]), "cut.efi: truncated unified kernel image: section .linux"),
        (put("table.efi", uki.uki(KERNEL)[:0x1A0]), "table.efi: truncated EFI program"),
        (put("head.efi", uki.uki(KERNEL)[:0x70]), "program without a Linux kernel in it"),
        (put("text.efi", uki.uki(b"hello\n" * 100)), "text.efi: section .linux: this is a text file"),
        (put("in.efi", uki.uki(uki.uki(KERNEL))), "section .linux: this is another EFI program"),
        (put("twice.efi", uki.image([(".linux", KERNEL), (".linux", KERNEL)])), "two sections .linux"),
    ]
    with open("mbr", "wb") as f:
        f.truncate(8 * disk.MIB)
    disk.call("sfdisk", "-q", "mbr", input="label: dos\nstart=2048, size=2048, type=83\n")
    rows.append(("mbr", "without a kernel to boot"))
    for name, expected in rows:
        for argv in (["inspect", name], ["run", name]):
            p = e2e.kvmprof(*argv)
            lines = p.err.strip().split("\n")
            check(p.status == 1 and expected in p.err and len(lines) == 1,
                  "%s: status %d: %s" % (" ".join(argv), p.status, p.err))
    for argv, expected in ((["run", os.path.join(e2e.BUILD, "guest", "demo.elf"), "--root", "/dev/vda1"], "--root goes with a disk image"),
                           (["run", os.path.join(e2e.BUILD, "guest", "demo.elf"), "--kernel", "x"],
                            "this is not a disk"),
                           (["run", "--kernel", "mbr"], "give it as IMAGE")):
        p = e2e.kvmprof(*argv)
        check(p.status == 1 and expected in p.err, "%s: %s" % (" ".join(argv), p.err))
    for argv in (["inspect"], ["inspect", "a", "b"], ["inspect", "--bad"]):
        check(e2e.kvmprof(*argv).status == 2, "%s is no wrong usage" % " ".join(argv))


def ways():
    """How kernels are entered, by what --boot=auto would take and by what else there is."""
    with open("elf", "wb") as f:
        f.write(KERNEL)
    for name, way, ways in (("elf", "pvh", ["vmlinux", "pvh"]),
                            (os.path.join(e2e.BUILD, "guest", "mb.elf"), "multiboot",
                             ["linux32", "multiboot", "pvh", "multiboot2"]),
                            (os.path.join(e2e.BUILD, "guest", "mb.bin"), "multiboot",
                             ["multiboot"])):
        k = inspect(name)["kernel"]
        check(k["boot"] == way and k["boot_ways"] == ways, "%s: %s of %s" %
              (name, k["boot"], k["boot_ways"]))
        entry = int(k["entry"], 16)
        check(any(int(s["start"], 16) <= entry < int(s["end"], 16) for s in k["segments"]),
              "%s: its entry %#x lies outside of it" % (name, entry))
        text = e2e.kvmprof("inspect", name).out
        check("\nboots by     %s: in 32-bit mode" % way in text, text)
        # No way but these: `run` says so in one line, before anything is set up.
        p = e2e.kvmprof("run", "--boot", "bzimage", name)
        check(p.status == 1 and p.err.count("\n") == 1 and ", ".join(ways) in p.err, p.err)


def damaged():
    """Bytes of file systems changed at random: no crash, whatever is said."""
    import random
    rng = random.Random(6)
    a, b = disk.disk("disk.img", 24, "gpt", [(8, "uefi", "esp"), (8, "linux", "root")])
    disk.vfat("disk.img", {"/loader/entries/a.conf": "linux /k\n", "/k": KERNEL}, 8, a)
    disk.ext4("disk.img", dict(ROOT, **{"/boot/vmlinuz-1": KERNEL}), 1, 8, b)
    with open("disk.img", "rb") as f:
        good = f.read()
    # What is not zero is what matters.
    places = [i for i in range(0, len(good), 512) if any(good[i:i + 512])]
    for n in range(40):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 4, 30))):
            at = rng.choice(places) + rng.randrange(512)
            bad[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        put = "bad.img"
        with open(put, "wb") as f:
            f.write(bad)
        p = e2e.kvmprof("inspect", put)
        if not check(p.status in (0, 1), "damaged disk %d: status %d: %s" % (n, p.status, p.err)):
            os.rename(put, "bad-%d.img" % n)


if e2e.EXTRA[:1] == ["mkconfig"]:
    mkconfig()
    e2e.finish()
for test in (bls, bls_variables, grub, blscfg, grub_says, links, newest, unified, unified_disks, circles, refused, ways, damaged):
    say(test.__name__)
    test()
e2e.finish()
