#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_domain_xml: https://libvirt.org/formatdomain.html."""

import os

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "fuzz_domain_xml")

FULL = """<?xml version='1.0' encoding='UTF-8'?>
<!-- WARNING: made by virsh edit -->
<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>web &amp; co</name><uuid>e6729530-29b9-4dbb-bd96-ad873684b2c9</uuid>
  <metadata><x:y xmlns:x='urn:x'>text</x:y></metadata>
  <memory unit='MiB'>512</memory><currentMemory unit='MiB'>256</currentMemory>
  <vcpu placement='static' current='2'>4</vcpu>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type><loader type='pflash'>/OVMF.fd</loader>
    <kernel>/boot/vmlinuz</kernel><initrd>/boot/initrd.img</initrd>
    <cmdline><![CDATA[root=/dev/vda1 quiet]]></cmdline><boot dev='hd'/></os>
  <features><acpi/><apic/></features><cpu mode='host-model'/>
  <clock offset='utc'><timer name='rtc'/></clock>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot>
  <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'><source file='/x.qcow2'/><target dev='vda' bus='virtio'/></disk>
    <interface type='network'><source network='default'/></interface>
    <serial type='pty'><target port='0'/></serial><console type='pty'/>
    <memballoon model='none'/></devices>
  <qemu:commandline><qemu:arg value='-s'/></qemu:commandline>
</domain>
"""


def domain(inside):
    return "<domain type='kvm'>%s</domain>" % inside


files = {
    "full": FULL,
    "empty": "",
    "bare": "<domain/>",
    "cut": FULL[:700],
    "other-root": "<network><name>default</name></network>",
    "container": domain("<os><type>exe</type><init>/bin/sh</init></os>"),
    "arm": domain("<os><type arch='aarch64'>hvm</type></os>"),
    "memory-huge": domain("<memory unit='TiB'>18446744073709551615</memory>"),
    "memory-unit": domain("<memory unit='parsecs'>1</memory>"),
    "memory-negative": domain("<memory>-1</memory>"),
    "vcpu-none": domain("<vcpu/>"),
    "vcpu-huge": domain("<vcpu>99999999999</vcpu>"),
    "entities": "<!DOCTYPE d [<!ENTITY a 'x'><!ENTITY b '&a;&a;&a;'>]>" + domain("<name>&b;</name>"),
    "entity-file": "<!DOCTYPE d [<!ENTITY f SYSTEM 'file:///etc/passwd'>]>" + domain("<name>&f;</name>"),
    "undeclared": domain("<name>&nothing;</name>"),
    "references": domain("<name>&#27;[31m&#x7f;&lt;</name><x type='&#27;[2J&#10;'/>"),
    "deep": domain("<a>" * 300 + "</a>" * 300),
    "many": domain("<devices>" + "<disk type='file'/>" * 600 + "</devices>"),
    "long": domain("<os><cmdline>%s</cmdline></os>" % ("x " * 40000)),
    "cdata-empty": domain("<name><![CDATA[]]></name><os><cmdline><![CDATA[]]> x</cmdline></os>"),
    "nul": domain("<name>a\0b</name>"),
}
os.makedirs(OUT, exist_ok=True)
for name, text in files.items():
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(text.encode())
with open(os.path.join(OUT, "utf16"), "wb") as f:
    f.write(("<?xml version='1.0' encoding='UTF-16'?>" + files["entities"]).encode("utf-16"))
with open(os.path.join(OUT, "utf7"), "wb") as f:
    f.write(b"<?xml version='1.0' encoding='UTF-7'?>+ADwAIQ-DOCTYPE d+AD4-" + files["bare"].encode())
