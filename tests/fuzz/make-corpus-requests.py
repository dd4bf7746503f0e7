#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_requests: totals with requests of disks, good ones and broken ones."""

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
}

os.makedirs(CORPUS, exist_ok=True)
for name, what in FILES.items():
    with open(os.path.join(CORPUS, name), "w") as f:
        json.dump(what, f)
with open(os.path.join(CORPUS, "no-json"), "w") as f:
    f.write('{"requests":[{"disk":"vda",')
