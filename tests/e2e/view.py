#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 12 s
# tests: slow, at most 400 s: slow
# tests: not svm, files
"""The page of `kvmprof view` in headless Chromium: each interaction by real mouse and keyboard
events, what the address keeps, hostile names, profiles without samples, times or stacks."""

import json
import os
import re
import sys

import browser
import compiled
import e2e
import exported
from e2e import check

WAIT = 20


def write(out, *argv, status=0):
    p = e2e.kvmprof("view", "-o", out, *argv)
    check(p.status == status, "view -o %s %s: status %d: %s" % (out, argv, p.status, p.err))
    return p


def opened(b, path, address=""):
    """Opens a page anew: another address of the same file would not load it again."""
    b.call("Page.navigate", url="about:blank")
    b.messages, b.requests, b.dialogs = [], [], []
    b.call("Page.navigate", url="file://" + os.path.abspath(path) + address)
    b.until("document.body && document.body.dataset.ready")
    check(b.js("document.body.dataset.ready") == "yes", "%s: %s" % (path, b.js("document.body.textContent.slice(0, 300)")))
    quiet(b, path)


def quiet(b, path):
    check(not b.messages, "%s: the console says %s" % (path, b.messages))
    outside = [u for u in b.requests if not u.startswith("file://") and u != "about:blank"]
    check(not outside, "%s asks for %s" % (path, outside))
    check(not b.dialogs, "%s: a name was executed: %s" % (path, b.dialogs))


def text(b, id_):
    return b.js("document.getElementById('%s').textContent" % id_)


def state(b, key):
    return b.js("kvmprof.state.%s" % key)


def boxes(b, side=0):
    """{name: (x, y, width)} of the frames drawn, in the window; the widest of a name."""
    found = {}
    for name, x, y, w in b.js("""(function () { var f = kvmprof.flames[%d], r = f.canvas.getBoundingClientRect();
            return f.boxes.map(function (k) { return [f.name(k), r.x + k.x, r.y + f.y(k), k.w]; }); })()""" % side):
        if name not in found or w > found[name][2]:
            found[name] = (x, y, w)
    return found


def click_box(b, name):
    x, y, w = boxes(b)[name]
    b.click_at(x + w / 2, y + 8)


def lane(b, kind):
    """(left, width, middle) of the first row of a kind on the time line, in the window."""
    return b.js("""(function () { var t = kvmprof.timeline, r = t.canvas.getBoundingClientRect(),
        w = t.rows.find(function (k) { return k.kind === '%s'; });
        return [r.x + t.gutter, t.wide, r.y + w.y + w.h / 2]; })()""" % kind)


def near(got, want, what, slack=0.02):
    check(abs(got - want) <= slack * max(abs(want), 1e-9), "%s is %s, not %s" % (what, got, want))


def pick(b, id_, value):
    b.js("(function(){var e=document.getElementById('%s');e.value=%r;e.dispatchEvent(new Event('change',{bubbles:true}))})()" % (id_, value))


def row(b, name, table="functions"):
    """The cells of the row whose name is this; None without one."""
    rows = b.js("""Array.from(document.querySelectorAll('#%s tbody tr')).map(function (r) {
        return Array.from(r.cells).map(function (c) { return c.textContent; }); })""" % table)
    return next((r for r in rows if name in r), None)


def test_span(b):
    """1: a span of the time line, by mouse and by keyboard, is what all views show."""
    opened(b, "boot.html")
    check("500 samples of wall" in text(b, "facts") and "6.9.0-guest" in text(b, "facts"), "facts: " + text(b, "facts"))
    left, wide, y = lane(b, "cpu")
    # mkboot: 10 ms entry, 50 decompressor, 100 mm_init, 200 driver_init, 40 /init, 100 of others
    b.drag((left + wide * 0.14, y), (left + wide * 0.30, y))
    span = state(b, "span")
    near((span[1] - span[0]) / 1e6, 0.16 * 500, "the span in ms", 0.03)
    found = boxes(b)
    check("mm_init" in found and "driver_init" not in found, "the flame graph of the span has %s" % sorted(found))
    check("80 of 500 samples" in text(b, "facts") or "79 of" in text(b, "facts") or "81 of" in text(b, "facts"), "facts: " + text(b, "facts"))
    b.key("2")
    check(row(b, "mm_init") and row(b, "mm_init")[0] == "100.00 %" and not row(b, "driver_init"), "functions of the span: %s" % row(b, "mm_init"))
    check("span=" in b.js("location.hash"), "the address does not have the span")
    b.key("Escape")
    check(state(b, "span") is None and row(b, "driver_init"), "Esc does not end the span")
    # A click on a phase selects it.
    left, wide, y = lane(b, "phases")
    b.click_at(left + wide * 0.5, y)
    check(row(b, "driver_init")[0] == "100.00 %" and not row(b, "mm_init"), "a click on a phase selects %s" % state(b, "span"))
    b.click("#span-clear")
    b.js("document.getElementById('time-canvas').focus()")
    b.key("Home")
    for _ in range(12):
        b.key("ArrowRight", 8)
    span = state(b, "span")
    near(span[1] - span[0], 0.12 * 500e6, "the span of twelve arrows", 0.05)
    b.key("Escape")
    b.js("(function(){var e=document.getElementById('span-from');e.value='0.2';e.dispatchEvent(new Event('change'));"
         "e=document.getElementById('span-to');e.value='0.3';e.dispatchEvent(new Event('change'))})()")
    near(state(b, "span")[1], 0.3e9, "the typed end of the span")
    b.click("#span-clear")


def test_window(b):
    """2: wheel and drag on the ruler zoom and move the time line."""
    opened(b, "boot.html")
    left, wide, y = lane(b, "cpu")
    b.wheel(left + wide / 2, y, -400)
    first = state(b, "window")
    check(first is not None and first[1] - first[0] < 400e6, "the wheel does not zoom: %s" % first)
    near((first[0] + first[1]) / 2, 250e6, "the moment under the pointer", 0.1)
    b.wheel(left + wide / 2, y, 200, 8)
    second = state(b, "window")
    near(second[1] - second[0], first[1] - first[0], "the width after Shift+wheel")
    check(second[0] > first[0], "Shift+wheel does not move the window")
    ruler = b.js("kvmprof.timeline.canvas.getBoundingClientRect().y + 8")
    b.drag((left + wide / 2, ruler), (left + wide / 2 + 100, ruler))
    third = state(b, "window")
    near(second[0] - third[0], 100 / wide * (third[1] - third[0]), "the move by a drag on the ruler", 0.05)
    check(state(b, "span") is None, "a drag on the ruler selects")
    b.js("document.getElementById('time-canvas').focus()")
    b.key("0")
    check(state(b, "window") is None, "0 does not show all")


def test_flame(b):
    """3 and 4: icicle and flame graph, zoom, breadcrumbs, callers first, search."""
    opened(b, "known.html")
    found, whole = boxes(b), boxes(b)["all"][2]
    near(found["guest_idle"][2] / whole, 0.4, "guest_idle's share of the width")
    check(found["all"][1] < found["guest_tick"][1], "the icicle's root is not at the top")
    b.click("#flame-up")
    found = boxes(b)
    check(found["all"][1] > found["guest_tick"][1], "the flame graph's root is not at the bottom")
    b.click("#flame-down")
    click_box(b, "guest_tick")
    near(boxes(b)["guest_tick"][2], whole, "guest_tick after a click")
    check("guest_idle" not in boxes(b), "guest_idle is there after a click on guest_tick")
    crumbs = b.js("Array.from(document.querySelectorAll('#crumbs button')).map(function(x){return x.textContent})")
    check(crumbs[0] == "all" and crumbs[-1] == "guest_tick", "breadcrumbs: %s" % crumbs)
    zoomed = b.js("location.hash")
    b.click("#crumbs button")
    near(boxes(b)["guest_idle"][2] / whole, 0.4, "guest_idle after the first breadcrumb")
    opened(b, "known.html", zoomed)
    near(boxes(b)["guest_tick"][2], whole, "guest_tick at the kept address")
    b.js("document.activeElement.blur()")
    b.key("Escape")
    b.js("kvmprof.flames[0].canvas.focus()")
    b.key("ArrowDown")
    b.key("Enter")
    check(len(state(b, "zoom")) == 1, "Enter does not zoom: %s" % state(b, "zoom"))
    b.key("Backspace")
    check(state(b, "zoom") == [], "Backspace does not undo the zoom")
    b.click("#flame-callers")
    found = boxes(b)
    near(found["guest_idle"][2] / whole, 0.4, "callers first: guest_idle")
    check(abs(found["guest_idle"][1] - found["all"][1] - 19) < 2, "callers first: guest_idle is not at the root")
    b.click("#flame-callees")
    b.key("/")
    check(b.js("document.activeElement.id") == "search", "/ does not go to the search")
    b.type("guest_recurse")
    b.until("/15.00 %/.test(document.getElementById('matched').textContent)")
    check(text(b, "matched").startswith("1 name, 15.00 %"), "search: " + text(b, "matched"))
    b.key("2")    # typed into the field, not a view's key
    check(state(b, "tab") == "flame", "a key in the search field chose a view")
    b.key("Escape")
    b.type_into("#search", "/^guest_(tick|irq_entry)$/")
    b.until("/20.00 %/.test(document.getElementById('matched').textContent)")
    check(text(b, "matched").startswith("2 names, 20.00 %"), "search: " + text(b, "matched"))
    b.type_into("#search", "/(/")
    b.until("/regular/.test(document.getElementById('matched').textContent)")
    b.type_into("#search", "")


def test_tables(b):
    """5, 6 and 7: functions, sandwich, filters, instructions."""
    opened(b, "known.html")
    b.key("2")
    idle, recurse = row(b, "guest_idle"), row(b, "guest_recurse")
    check(idle[:2] == ["40.00 %", "40.00 %"] and recurse[0] == "15.00 %", "functions: %s %s" % (idle, recurse))
    b.click("#functions thead button")
    check(b.js("document.querySelector('#functions th').getAttribute('aria-sort')") == "descending", "a click does not sort by Total")
    top = b.js("document.querySelector('#functions tbody tr').textContent")
    check(top.startswith("45.00 %"), "sorted by Total: " + top)
    b.js("document.querySelector('#functions tbody tr').focus()")
    b.key("ArrowDown")
    name = b.js("document.activeElement.querySelector('.name').textContent")
    b.key("Enter")
    check(state(b, "tab") == "sandwich" and b.js("document.querySelector('#sandwich h3').textContent") == name, "Enter does not show " + name)
    b.js("kvmprof.chooseFunction(kvmprof.model.name.indexOf('guest_tick'), 'sandwich')")
    got = row(b, "guest_irq_entry", "callers")
    check(got and got[0] == "100.00 %" and got[1] == "20.00 %", "callers of guest_tick: %s" % got)
    check(row(b, "guest_irq_entry", "callees") is None, "guest_tick calls its caller")
    b.key("4")
    code = b.js("Array.from(document.querySelectorAll('#instructions tbody tr')).map(function(r){return r.textContent})")
    check(any("pushq %rbp" in r for r in code) and any("100.00 %" in r for r in code), "instructions: %s" % code[:9])


def test_filters(b):
    opened(b, "view.html")
    b.key("2")
    pick(b, "pick-mode", "user")
    check("20 of 200 samples" in text(b, "facts"), "user mode: " + text(b, "facts"))
    b.click("#reset")
    check(state(b, "mode") == "" and "200 samples" in text(b, "facts"), "Reset does not reset")
    pick(b, "pick-cpu", "1")
    check("100 of 200 samples" in text(b, "facts"), "vCPU 1: " + text(b, "facts"))
    pick(b, "pick-task", "=worker")
    check("0 of 200 samples" in text(b, "facts") and "No sample is selected" in text(b, "notice"), "worker on vCPU 1: " + text(b, "facts"))
    b.js("document.activeElement.blur()")
    b.key("Escape")
    check("200 samples" in text(b, "facts") and not b.js("document.getElementById('notice').offsetHeight"), "Esc ends filters: " + text(b, "facts"))
    for by, want in (("cpu", "vCPU 1"), ("task", "worker"), ("mode", "kernel"), ("dso", "[kernel.kallsyms]")):
        pick(b, "group-by", by)
        check(row(b, want), "summed up by %s there is no %s" % (by, want))
    pick(b, "group-by", "cpu")
    b.js("Array.from(document.querySelectorAll('#functions tbody tr')).find(function(r){return /vCPU 0/.test(r.textContent)}).click()")
    check(state(b, "cpu") == "0", "a row of a vCPU does not filter: %s" % state(b, "cpu"))
    b.click("#reset")


def test_where(b):
    """8 and 9: where vCPUs' time went; requests, packets, markers."""
    opened(b, "view.html")
    b.key("5")
    got = row(b, "1", "where")
    check(got and got[2:8] == ["40.00 %", "10.00 %", "10.00 %", "20.00 %", "10.00 %", "10.00 %"], "vCPU 1: %s" % got)
    check(row(b, "kvm", "where")[1:] == ["40.000 ms", "25.00 %"], "the whole run: %s" % row(b, "kvm", "where"))
    b.key("6")
    page = text(b, "devices")
    check("Requests of devices: 3" in page and "4 KiB" in page and "write, failed" in page, "requests: " + page[:300])
    left, wide, y = lane(b, "device")
    b.click_at(left + wide * 0.13, y - 4)
    span = state(b, "span")
    check(span and abs(span[1] - span[0] - 5e6) < 1e5, "a click on a request selects %s" % span)
    b.js("document.activeElement.blur()")
    b.key("Escape")
    b.js("document.querySelector('#devices tbody tr').click()")
    check(state(b, "span"), "a row of a request does not select its span")
    left, wide, y = lane(b, "markers")
    b.click_at(left + wide * 0.9, y)
    near(state(b, "span")[0], 50e6, "the slice of a marker", 0.03)


def test_hostile(b, path):
    opened(b, path)
    for tab in "123456":
        b.key(tab)
        quiet(b, path)
        if tab != "1":
            check(b.js("document.querySelectorAll('img,svg,iframe,main b b,body script').length") <= 2, "%s, view %s: a name became an element" % (path, tab))
    unseen = b.js(r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(document.getElementById('main').innerText)")
    check(not unseen, path + ": control or bidi characters are in the page")
    policy = b.js("document.querySelector('meta[http-equiv]').content")
    check("default-src 'none'" in policy and "unsafe" not in policy, "policy: " + policy)
    # What a name could do at worst: the policy stops a script, and a request.
    b.js("(function(){var s=document.createElement('script');s.textContent='window.ran=1';document.body.append(s);})()")
    check(b.js("window.ran") is None, path + ": a script that was added runs")
    b.messages = []


def test_diff(b):
    """10: two profiles side by side."""
    opened(b, "diff.html")
    check("base: " in text(b, "facts"), "facts: " + text(b, "facts"))
    head, base = boxes(b, 0), boxes(b, 1)
    near(head["mm_init"][2] / head["all"][2], 300 / 700, "mm_init")
    near(base["mm_init"][2] / base["all"][2], 100 / 500, "mm_init of the base")
    check(base["all"][0] < head["all"][0], "the base is not on the left")
    color = "(function(n){var f=kvmprof.flames[0];return f.color(f.boxes.find(function(k){return f.name(k)===n}))})('%s')"
    grew, shrank, same = (int(re.search(r"\d+", b.js(color % n)).group()) for n in ("mm_init", "driver_init", "all"))
    check(grew < 20 and 200 < shrank < 230 and same == 220, "hues: %d %d %d" % (grew, shrank, same))
    b.key("2")
    got = row(b, "mm_init")
    check(got[:3] == ["42.86 %", "20.00 %", "+22.86"], "mm_init in the table: %s" % got)
    b.js("kvmprof.chooseFunction(kvmprof.model.name.indexOf('mm_init'), 'sandwich')")
    check("base 20.00 %, +22.86" in text(b, "sandwich"), "sandwich: " + text(b, "sandwich")[:300])
    rows = b.js("kvmprof.timeline.rows.map(function(r){return r.kind + r.side})")
    check(rows.count("cpu0") == 1 and rows.count("cpu1") == 1, "time lines: %s" % rows)


def test_odd(b):
    for name, options, want in (("none", ["-n", "0"], "no samples"), ("one", ["-n", "1"], ""), ("flat", ["-s"], "no stacks"), ("timeless", ["-t"], "no times")):
        made = e2e.run("./mkview", *options, name + ".data")
        check(made.status == 0, "mkview %s: %s" % (options, made.err))
        write(name + ".html", name + ".data")
        opened(b, name + ".html")
        got = text(b, "notice")
        check(want in got, "%s: the page says: %s" % (name, got))
        for tab in "123456" if name != "none" else "":
            b.key(tab)
        quiet(b, name)


def test_files():
    write("again.html", "known.data")
    with open("again.html", "rb") as f, open("known.html", "rb") as g:
        check(f.read() == g.read(), "equal profiles give unequal pages")
    p = e2e.kvmprof("view", "known.data", "-o", "-")
    check(p.status == 0 and p.out.endswith("</html>\n"), "-o - writes no page")
    for argv, want in ((["nowhere.data"], "nowhere.data"), (["known.data", "nowhere.data"], "nowhere.data"), (["known.data", "--event", "nothing"], "nothing")):
        p = write("x.html", *argv, status=1)
        check(want in p.err and p.err.count("\n") == 1 and not os.path.exists("x.html"), "%s: %s" % (argv, p.err))
    p = write("nodir/x.html", "known.data", status=1)
    check("nodir" in p.err and p.err.count("\n") == 1, "nodir: " + p.err)
    with open("kept.html", "w") as f:
        f.write("old")
    write("kept.html", "known.data")
    check(os.path.getsize("kept.html") > 1000, "an existing file is not replaced")
    if os.path.exists("/dev/full"):
        p = write("/dev/full", "known.data", status=1)
        check("/dev/full" in p.err and p.err.count("\n") == 1, "/dev/full: " + p.err)
    for bad in (["--functions", "x"], ["a", "b", "c"], ["--nope"], ["known.data", "--phase", "x", "--time", "1,2"], ["known.data", "-o", "-", "--open"]):
        p = e2e.kvmprof("view", *bad)
        check(p.status == 2 and p.err.count("\n") == 1, "%s: status %d: %s" % (bad, p.status, p.err))


# -- slow: what axe finds, sizes of windows, paper, and the pages of run --view --------------------

AXE = "4.10.3"
RUN_AXE = """axe.run(document, {resultTypes: ['violations']}).then(function (r) { return JSON.stringify(r.violations.map(
    function (v) { return v.id + ': ' + v.nodes.slice(0, 3).map(function (n) { return n.html.slice(0, 200); }).join(' | '); })); })"""


def shape(b, width, height=1000, scheme="light", media=""):
    b.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    b.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])


def views(b):
    """Shows each view in turn."""
    b.js("kvmprof.chooseFunction(1)")
    for tab in ("flame", "functions", "sandwich", "code", "where", "devices"):
        b.js("kvmprof.set({tab: '%s'})" % tab)
        yield tab


def test_axe(b):
    package, why = exported.npm_package("axe-core", AXE)
    if not package:
        e2e.skip(why)
    with open(os.path.join(package, "package", "axe.min.js"), encoding="utf-8") as f:
        axe = f.read()
    for name in ("boot", "view", "diff", "none", "real"):
        for scheme in ("light", "dark"):
            for width in (400, 1300):
                shape(b, width, scheme=scheme)
                opened(b, name + ".html")
                b.call("Runtime.evaluate", expression=axe)
                for tab in views(b) if name != "none" else ("none",):
                    r = b.call("Runtime.evaluate", expression=RUN_AXE, awaitPromise=True, returnByValue=True)
                    found = json.loads(r["result"]["value"])
                    check(not found, "%s, %s, %d px, %s: axe finds %s" % (name, scheme, width, tab, found))


def test_sizes(b):
    for name in ("boot", "view", "diff", "real"):
        for width in (400, 700, 1000, 1500, 2500):
            shape(b, width)
            opened(b, name + ".html")
            for tab in views(b):
                wide = b.js("document.documentElement.scrollWidth")
                check(wide <= width, "%s, %d px, %s: the page is %d px wide" % (name, width, tab, wide))
                keep = os.environ.get("VIEW_KEEP")
                if keep and width in (400, 1500, 2500):
                    b.screenshot(os.path.join(keep, "%s-%s-%d.png" % (name, tab, width)))
    shape(b, 1300)
    opened(b, "boot.html")
    pdf = b.call("Page.printToPDF")["data"]
    check(len(pdf) > 10000, "the page prints %d bytes" % len(pdf))
    b.js("window.dispatchEvent(new Event('beforeprint'))")
    shown = b.js("document.querySelectorAll('.panels > section:not([hidden])').length")
    check(shown == 6, "%d views are printed" % shown)
    b.js("window.dispatchEvent(new Event('afterprint'))")
    shown = b.js("document.querySelectorAll('.panels > section:not([hidden])').length")
    check(shown == 1, "%d views are there after printing" % shown)


def test_run(b):
    """The page of a run: its functions have what report says, and their code."""
    p = e2e.kvmprof("run", "-o", "real.data", "--view=real.html", "--append", "seconds=2", "--duration", "60", timeout=200)
    check(p.status == 0 and "wrote real.html" in p.err, "run --view: status %d: %s" % (p.status, p.err))
    opened(b, "real.html")
    b.key("2")
    got = row(b, "left_leaf")
    report = e2e.kvmprof("report", "--no-children", "-i", "real.data").out
    m = re.search(r"^ *([\d.]+)%.* left_leaf ", report, re.M)
    check(got and m and abs(float(got[1].split()[0]) - float(m[1])) < 0.011, "left_leaf: %s, and in report %s" % (got, m and m[0]))
    b.js("kvmprof.chooseFunction(kvmprof.model.name.indexOf('left_leaf'), 'code')")
    check(len(b.js("Array.from(document.querySelectorAll('#instructions tbody tr')).map(function(r){return r.textContent})")) > 10, "left_leaf has no code")
    os.rename("real.data", "gone.data")
    p = e2e.kvmprof("run", "-o", "real.data", "--view=real2.html", "--initrd", "nowhere", "--append", "seconds=1", timeout=200)
    check(p.status != 0 and not os.path.exists("real2.html"), "a run that fails makes a page: %s" % p.err)
    for bad in (["-o", "-"], ["--no-output"]):
        p = e2e.kvmprof("run", "--view", *bad)
        check(p.status == 2 and "--view" in p.err and p.err.count("\n") == 1, "run --view %s: %s" % (bad, p.err))


if not browser.program():
    e2e.skip("chromium is not installed")
for argv in ([compiled.tool("e2e/mkprofile.c"), "-n", "10000", "known.data"], [compiled.tool("e2e/mkboot.c"), "boot.data"],
             ["./mkboot", "-g", "grown.data"], [compiled.tool("e2e/mkview.c"), "view.data"]):
    made = e2e.run(*argv)
    check(made.status == 0, "%s: status %d: %s" % (argv, made.status, made.err))
for name in ("known", "boot", "view"):
    write(name + ".html", name + ".data")
write("diff.html", "grown.data", "boot.data")
test_files()
with browser.Browser() as b:
    test_span(b)
    test_window(b)
    test_flame(b)
    test_tables(b)
    test_filters(b)
    test_where(b)
    test_diff(b)
    test_hostile(b, "boot.html")
    test_hostile(b, "view.html")
    test_odd(b)
    if "slow" in sys.argv:
        test_run(b)
        test_sizes(b)
        test_axe(b)
e2e.finish()
