# SPDX-License-Identifier: GPL-2.0-or-later
"""A root directory for a guest whose program is python_program.py."""
import os
import shutil
import subprocess

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_program.py")
# What it has loaded by its end, with what that is linked to.
LOADED = """
import runpy, sys
sys.argv = ["program", "0"]
runpy.run_path(%r)
for m in list(sys.modules.values()):
    for a in ("__file__", "__cached__"):
        if getattr(m, a, None): print("file", getattr(m, a))
print("file", sys.executable)
"""


def make_root(python, root):
    """A root directory with python, as far as the program needs it."""
    p = subprocess.run([python, "-c", LOADED % PROGRAM], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    files = {line[5:] for line in p.stdout.split("\n") if line.startswith("file ")}
    for name in [f for f in files if f.endswith(".so") or f == python]:
        out = subprocess.run(["ldd", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                             universal_newlines=True).stdout
        files |= {w for line in out.split("\n") for w in line.split() if w.startswith("/")}
    for name in filter(os.path.exists, files):
        to = root + name
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(name, to)
        # Debug information is not unpacked into the guest's memory.
        if os.path.getsize(to) > 5 << 20:
            subprocess.run(["strip", to], stderr=subprocess.DEVNULL, check=False)
    shutil.copy2(PROGRAM, root + "/program.py")
