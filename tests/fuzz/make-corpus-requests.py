#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_requests: totals with requests of disks and packets, good ones and broken ones."""

import json
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus", "fuzz_requests")
STAGES = ("notified_ns", "taken_ns", "begun_ns", "done_ns", "raised_ns", "handled_ns", "sign_ns")


def request(start, disk="vda", **more):
    r = dict({"disk": disk, "type": "R", "sector": 8, "bytes": 4096, "ok": True, "comm": "cat", "pid": 3, "tid": 3,
              "vcpu": 0}, **{name: start + 10 * i for i, name in enumerate(STAGES)})
    r.update(more)
    return r


def packet(start, way="sent", **more):
    p = dict({"card": "net0", "way": way, "bytes": 60, "ok": True, "comm": "ping", "pid": 3, "tid": 3, "vcpu": 0},
             notified_ns=start, taken_ns=start + 10, done_ns=start + 20, raised_ns=start + 30)
    p.update(more)
    return p


FILES = {
    "one": {"requests": [request(1000)], "requests_beyond": 0},
    "overlap": {"requests": [request(1000), request(1010), request(1005, "vdb"), request(5000)]},
    "unseen": {"requests": [request(1000, notified_ns=None, raised_ns=None, handled_ns=None, sign_ns=None)]},
    "backwards": {"requests": [request(1000, taken_ns=5, sign_ns=-4), request(900, done_ns=1 << 62)]},
    "kinds": {"requests": [1, None, {}, [], request(1, disk=4), request(2, type=""), request(3, pid="x", ok=0),
                           request(4, type="?", comm="\u0001\u00ff", disk="x" * 100)]},
    "same": {"requests": [request(7)] * 20},
    "object": {"requests": {"disk": "vda"}},
    "no-times": {"requests": [{"disk": "vda"}]},
    "none": {},
    "packets": {"packets": [packet(1000), packet(1005, "received"), packet(1005, "received"), packet(2000)],
                "packets_beyond": 4},
    "packets-kinds": {"packets": [1, None, {}, packet(3, 7), packet(4, card=None), packet(5, done_ns=None, ok=False),
                                  packet(6, taken_ns=-1, raised_ns="x", bytes=-1), packet(1 << 62), packet(9, notified_ns=None)],
                      "requests": [request(2)]},
}

os.makedirs(CORPUS, exist_ok=True)
for name, what in FILES.items():
    with open(os.path.join(CORPUS, name), "w") as f:
        json.dump(what, f)
with open(os.path.join(CORPUS, "no-json"), "w") as f:
    f.write('{"requests":[{"disk":"vda",')
