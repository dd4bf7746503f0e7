#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes tests/fuzz/corpus/fuzz_insn: instructions of each form that the decoder tells apart.

    tests/fuzz/make-corpus-insn.py
"""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
DIRECTORY = os.path.join(HERE, "corpus", "fuzz_insn")

GROUPS = {
    "frames": "55 4889e5 c9 c3 5d 4889ec 488d65f8 4154 415c 4883ec20 4881c400010000",
    "realign": "4c8d542408 4883e4f0 41ff72f8 498d62f8",
    "calls": "e800010000 ffd0 41ffd3 ff5018 ff1500000000 ff14c500000080 41ff942400010000",
    "jumps": "7405 0f84ffffff7f eb10 e9000100 00 ffe0 ff2500000000 e3fe",
    "fentry": "f30f1efa e800000000 55 4889e5 0f1f440000",
    "traps": "0f0b cc f4 48cf cf 0f05 480f07",
    "vector": "c5f877 c4e2791832 62f17c48100424 c5fc1145e0 0f3800c1 660f3a0fc108",
    "prefixes": "666666662e0f1f840000000000 f3a4 f048ff00 6489042528000000 67488d04",
    "immediates": "48b8efcdab8967452301 66b83412 c8100002 6a08 6800010000 a10102030405060708",
    "prologue32": "5589e583ec10 57565589e5",
    # A lea without SIB as the last bytes: there is nothing behind them to look at.
    "lea-last": "48 8d 00",
    "lea-cut": "4c8d5424",
}

os.makedirs(DIRECTORY, exist_ok=True)
for name, text in GROUPS.items():
    with open(os.path.join(DIRECTORY, name), "wb") as f:
        f.write(bytes.fromhex(text.replace(" ", "")))
