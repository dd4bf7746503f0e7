#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes tests/fuzz/corpus/fuzz_gate_rules and fuzz_gate_history: good files and broken ones."""

import json
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus")
RULE = '[[rule]]\nmetric = "time"\nthreshold = "2 %"\n'

EVERY_KEY = """
gate = { error-rate = 0.05, power = 0.8, no-idle = true }
rule = [
  { metric = "time", from = "a", until = "b", threshold = "2 min", min-effect = "5 %", worse = "either" },
  { metric = "time", phase = "/init", threshold = "1 us", quantile = 0.5, strict = true, optional = true },
  { metric = "boot-time", threshold = "3 %", alpha = 0.001, power = 0.99, level = "warn", name = "boot" },
  { metric = "share", symbol = "f", threshold = "0.5 points", dso = "libc.so.6", worse = "less" },
  { metric = "share", subtree = "f", threshold = "0.5 points" },
  { metric = "function-time", regex = "^(a|b[[:digit:]]+)$", threshold = "5 ms" },
  { metric = "function-time", subtree-regex = "x*", threshold = "5 ns" },
  { metric = "symbols", measure = "time", children = true, min-share = "1 %", exclude = "idle", threshold = "5 %" },
  { metric = "new-symbols", threshold = "1 point" },
  { metric = "exits", exit = "IO", threshold = "100 /s" },
  { metric = "io-bytes", threshold = "1.5 MiB" },
  { metric = "counter", counter = "host.probe_ns", per-second = true, threshold = "3 /s" },
  { metric = "counter", counter = "lost", threshold = "3" },
]
"""

RULES = {
    "every-key": EVERY_KEY,
    "empty": "",
    "comment": "# nothing\n",
    "no-toml": "[[rule]\n",
    "no-end": '[[rule]]\nname = "',
    "deep": "x = " + "[" * 300 + "]" * 300,
    "deep-enough": "x = " + "[" * 40 + "]" * 40,
    "two-of-a-name": RULE + RULE,
    "unknown-key": RULE + "treshold = 1\n",
    "unknown-table": RULE + "[gates]\n",
    "kinds": '[gate]\nno-idle = 1\n' + RULE,
    "date": '[gate]\npower = 1979-05-27T07:32:00Z\n' + RULE,
    "nan": '[gate]\npower = nan\n' + RULE,
    "nul": '[[rule]]\nmetric = "time"\nname = "a\\u0000b"\nthreshold = "2 %"\n',
    "control": '[[rule]]\nmetric = "time"\nname = "a\\u001bb"\nthreshold = "2 %"\n',
    "no-unit": '[[rule]]\nmetric = "time"\nthreshold = "2"\n',
    "huge": '[[rule]]\nmetric = "time"\nthreshold = "1e999 s"\n',
    "overflow": '[[rule]]\nmetric = "time"\nthreshold = "1e308 s"\n',
    "negative": '[[rule]]\nmetric = "time"\nthreshold = "-1 s"\n',
    "bad-regex": '[[rule]]\nmetric = "share"\nregex = "a("\nthreshold = "1 points"\n',
    "two-selectors": '[[rule]]\nmetric = "share"\nregex = "a"\nsymbol = "b"\nthreshold = "1 points"\n',
    "two-metrics": '[[rule]]\nmetric = "share"\nregex = "a"\nphase = "init"\nthreshold = "1 points"\n',
    "table-not-array": '[rule]\nmetric = "time"\n',
    "array-of-numbers": "rule = [1, 2]\n",
    "gate-is-number": "gate = 3\n" + RULE,
    "bom": "\ufeff" + RULE,
}


def entry(**change):
    run = {"samples": 9, "metrics": {"time": 1.5e9, "exits": 10}, "functions":
           [["f", "[kernel.kallsyms]", "kernel", 0.25], ["main", "/bin/a", "user", 0.5]]}
    e = {"version": 1, "time": "2026-11-21T18:57:48Z", "label": "abc", "runs": [run, dict(run, functions=[])]}
    e.update(change)
    return json.dumps(e)


HISTORY = {
    "good": entry(),
    "empty": "",
    "list": "[]",
    "number": "1",
    "version": entry(version=2),
    "no-label": entry(label=None),
    "long-label": entry(label="x" * 200),
    "control-label": entry(label="a\x1bb"),
    "no-time": entry(time=3),
    "no-runs": entry(runs=[]),
    "runs-object": entry(runs={}),
    "run-number": entry(runs=[1]),
    "metrics-list": entry(runs=[{"metrics": []}]),
    "metric-text": entry(runs=[{"metrics": {"time": "x"}}]),
    "metric-huge": entry(runs=[{"metrics": {"time": 1e308}}] * 3),
    "function-short": entry(runs=[{"functions": [["f", "d", "kernel"]]}]),
    "function-kinds": entry(runs=[{"functions": [[1, 2, "kernel", 0.5]]}]),
    "twice": entry(runs=[{"functions": [["f", "d", "user", 0.5], ["f", "d", "user", 0.25]]}]),
    "bare": entry(runs=[{}]),
    "duplicate": '{"version":1,"version":1}',
    "cut": entry()[:60],
    "nul": '{"version":1,"label":"a\\u0000b"}',
    "deep": "[" * 3000,
}

for name, files in (("fuzz_gate_rules", RULES), ("fuzz_gate_history", HISTORY)):
    os.makedirs(os.path.join(CORPUS, name), exist_ok=True)
    for key, text in files.items():
        with open(os.path.join(CORPUS, name, key), "w", encoding="utf-8") as f:
            f.write(text)
with open(os.path.join(CORPUS, "fuzz_gate_rules", "not-utf8"), "wb") as f:
    f.write(b'[[rule]]\nname = "\xff\xfe"\n')
