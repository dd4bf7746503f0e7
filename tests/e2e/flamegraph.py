#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Flame graphs and charts in headless Chromium: they render, zoom on a click and back, search
tells the matched share, hostile names stay text, boots have their phases, a difference its
colours. Screenshots stay in SCRATCH when FLAMEGRAPH_KEEP is set."""

import os
import re
import xml.dom.minidom

import browser
import compiled
import e2e
from e2e import check, say

WIDTH = 1180   # of the whole: 1200 less the margins


def draw(out, *argv, status=0):
    p = e2e.kvmprof("flamegraph", "-o", out, *argv)
    check(p.status == status, "flamegraph -o %s %s: status %d: %s" % (out, argv, p.status, p.err))
    return p


def opened(b, path):
    b.open(path)
    check(not b.messages, "%s: the console says %s" % (path, b.messages))
    outside = [u for u in b.requests if not u.startswith("file://" + os.path.abspath(path))]
    check(not outside, "%s asks for %s" % (path, outside))


def boxes(b):
    """(name, DSO, x, y, width, class) of each box drawn, through the tooltips."""
    return b.js("""Array.from(document.querySelectorAll('#frames rect')).map(function (r) {
        r.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
        function n(k) { return +r.getAttribute(k); }
        return [r.querySelector('title').textContent, n('x'), n('y'), n('width'),
                r.getAttribute('class'), n('data-i')]; })""")


def named(found, name):
    return [f for f in found if f[0] == name or f[0].startswith((name + " (", name + ": "))]


def one(found, name):
    f = named(found, name)
    check(len(f) == 1, "%d boxes of %s" % (len(f), name))
    return f[0] if f else ["", 0, 0, 0, "", 0]


def near(got, want, what):
    check(abs(got - want) <= 1.5, "%s is %.1f wide, not %.1f" % (what, got, want))


def click_box(b, box):
    b.click('#frames rect[data-i="%d"]' % box[5])


def hidden(b, button):
    return b.js("document.getElementById('%s').classList.contains('off')" % button)


def search(b, pattern):
    b.key("f", 2)
    b.type(pattern)
    b.key("Enter")
    return b.js("document.getElementById('matched').textContent")


def test_graph(b, path):
    opened(b, path)
    found = boxes(b)
    say("%s: %d boxes" % (path, len(found)))
    near(one(found, "all")[3], WIDTH, "the whole")
    # mkprofile: 40 % idle, 20 % tick, 15 % recursion, 25 % of system calls
    idle, tick = one(found, "guest_idle"), one(found, "guest_tick")
    near(idle[3], 0.40 * WIDTH, "guest_idle")
    near(tick[3], 0.20 * WIDTH, "guest_tick")
    check("40.00 %" in idle[0] and "self 40.00 %" in idle[0], "tooltip: " + idle[0])
    check(int(idle[4][1:]) // 4 == 5 and int(tick[4][1:]) // 4 == 0, "colours: %s %s" % (idle[4], tick[4]))
    check(len(named(found, "guest_recurse")) == 4, "recursion is %d deep" % len(named(found, "guest_recurse")))
    check(one(found, "all")[2] > tick[2], "the root is not at the bottom")
    check(hidden(b, "reset") and hidden(b, "back"), "nothing to reset, but the button is there")

    b.move('#frames rect[data-i="%d"]' % tick[5])
    got = b.js("document.getElementById('details').textContent")
    check(got.startswith("guest_tick ([kernel.kallsyms]): 20.00 %, 2.000 s, 2000 samples"), "details: " + got)

    click_box(b, tick)
    zoomed = boxes(b)
    near(one(zoomed, "guest_tick")[3], WIDTH, "guest_tick after the click")
    check(not named(zoomed, "guest_idle"), "guest_idle is still there after the click")
    check("dim" in one(zoomed, "all")[4], "callers are not dimmed")
    click_box(b, one(zoomed, "all"))
    b.click("#back")
    near(one(boxes(b), "guest_tick")[3], WIDTH, "guest_tick after back")
    b.click("#reset")
    near(one(boxes(b), "guest_tick")[3], 0.20 * WIDTH, "guest_tick after the reset")
    check(hidden(b, "reset"), "the zoom is reset, but the button is there")

    check(search(b, "^guest_(tick|irq_entry)$") == "matched: 20.00 %", "search tells " +
          b.js("document.getElementById('matched').textContent"))
    hit = b.js("document.querySelectorAll('#frames .hit').length")
    check(hit == 2, "%d boxes are marked" % hit)
    b.click("#search")
    check(b.js("document.querySelectorAll('#frames .hit').length") == 0, "marks stay after the search")
    got = search(b, "guest_recurse")
    check(got == "matched: 15.00 %", "recursion counts more than once: " + got)
    check("not a regular" in search(b, "("), "a bad expression is not refused")


def test_shapes(b):
    draw("icicle.svg", "-i", "known.data", "--inverted", "--by", "none")
    opened(b, "icicle.svg")
    found = boxes(b)
    check(one(found, "all")[2] < one(found, "guest_tick")[2], "--inverted: the root is not at the top")
    draw("reverse.svg", "-i", "known.data", "--reverse", "--title", "<x>&")
    opened(b, "reverse.svg")
    check(b.js("document.querySelector('.t').textContent") == "<x>&", "--title is not there")
    found = boxes(b)
    root = one(found, "all")
    near(one(found, "guest_idle")[3], 0.40 * WIDTH, "reversed: guest_idle")
    check(one(found, "guest_idle")[2] == root[2] - 16, "reversed: guest_idle is not on the root")
    draw("narrow.svg", "-i", "known.data", "--by", "none", "--min-width", "200", "--width", "1200")
    opened(b, "narrow.svg")
    check("frames narrower than 200 px are merged" in b.js("document.getElementById('note').textContent"),
          "no note of merged frames")
    check(not named(boxes(b), "guest_recurse") and named(boxes(b), "guest_idle"), "--min-width merges nothing")


def test_hostile(b, path):
    opened(b, path)
    check(not b.dialogs, "a name was executed: %s" % b.dialogs)
    check(b.js("document.querySelectorAll('img,b,script').length") == 1, "a name became an element")
    found = boxes(b)
    for name in ("</script><script>alert(1)</script>", "\"><img/src=x/onerror=alert(2)>",
                 "]]></script><svg/onload=alert(3)>", "'+alert(4)+'\\\";alert(5)//",
                 "\u540d\u524d_\u00e4_\ufffd\ufffd", "ctl??[31m&lt;${alert(6)}`", "<b>&\"x'"):
        one(found, name)
    longest = [f for f in found if f[0].startswith("nnnn")]
    check(len(longest) == 1 and 4096 <= longest[0][0].count("n") < 4110, "the long name is not whole")
    click_box(b, one(found, "</script><script>alert(1)</script>"))
    got = search(b, re.escape("</script>"))
    check(got == "matched: 10.00 %", "hostile names: " + got)
    check(not b.dialogs and not b.messages, "a name was executed later: %s %s" % (b.dialogs, b.messages))


def test_chart(b):
    draw("chart.svg", "-i", "boot.data", "--chart")
    opened(b, "chart.svg")
    bands = b.js("""Array.from(document.querySelectorAll('#bands g')).map(function (g) {
        var r = g.querySelector('rect');
        return [g.querySelector('title').textContent, +r.getAttribute('x'), +r.getAttribute('width')]; })""")
    want = [("first instruction", 10), ("decompressor", 50), ("start_kernel", 100), ("initcalls", 200),
            ("/init", 40), ("user", 100)]
    check([x[0].split(":")[0] for x in bands] == [w[0] for w in want], "bands: %s" % bands)
    at = 10
    for (label, ms), (text, x, width) in zip(want, bands):
        near(width, WIDTH * ms / 500.0, "band " + label)
        check(abs(x - at) < 4, "band %s begins at %.1f" % (label, x))
        at = x + width
    found = boxes(b)
    mm, driver = one(found, "mm_init"), one(found, "driver_init")
    near(mm[3], WIDTH * 100 / 500.0, "mm_init in the chart")
    check(mm[1] < driver[1], "not in order of time")
    click_box(b, driver)
    near(one(boxes(b), "driver_init")[3], WIDTH, "driver_init after the click")
    check(not named(boxes(b), "mm_init"), "another time is still there")
    check(b.js("document.querySelectorAll('#bands g').length") == 1, "bands do not follow the zoom")
    check(b.js("document.querySelectorAll('#axis text').length") > 3, "no times on the axis")
    shown = b.js("document.querySelector('#axis text').textContent")
    check(shown != "0 s", "the axis does not follow the zoom")

    draw("lanes.svg", "-i", "boot.data", "--chart", "--lanes", "thread", "--inverted")
    with open("lanes.svg") as f:
        text = f.read()
    for lane in ("swapper 0/0", "swapper/0 1/1", "init 1/1", "&lt;b&gt;&amp;&quot;x&#39; 7/7"):
        check(">" + lane + "</text>" in text, "no lane " + lane)
    draw("part.svg", "-i", "boot.data", "--chart", "--time", "0.1,0.3", "--pid", "1")
    opened(b, "part.svg")
    found = b.js("Array.from(document.querySelectorAll('#bands title')).map(function(t){return t.textContent})")
    check([x.split(":")[0] for x in found] == ["initcalls"], "with filters the bands are %s" % found)


def test_diff(b):
    draw("diff.html", "-i", "grown.data", "--diff", "boot.data")
    opened(b, "diff.html")
    found = boxes(b)
    # start_kernel: 100 of 500, then 300 of 700; initcalls: 200 of 500, then 200 of 700
    grew, shrank, same = one(found, "mm_init"), one(found, "driver_init"), one(found, "all")
    check("+22.86 points (was 20.00 %)" in grew[0], grew[0])
    check("-11.43 points (was 40.00 %)" in shrank[0], shrank[0])
    def red_blue(box):
        return [int(c) for c in re.findall(r"\d+", b.js(
            "getComputedStyle(document.querySelector('#frames rect[data-i=\"%d\"]')).fill" % box[5]))]
    g, s, n = red_blue(grew), red_blue(shrank), red_blue(same)
    check(g[0] > g[2] + 40, "grew is not red: %s" % g)
    check(s[2] > s[0] + 40, "shrank is not blue: %s" % s)
    check(abs(n[0] - n[2]) < 5, "what is the same is not grey: %s" % n)
    draw("same.svg", "-i", "boot.data", "--diff", "boot.data")
    opened(b, "same.svg")
    check(len({f[4] for f in boxes(b) if "too narrow" not in f[0]}) == 1, "a profile differs from itself")


def test_files():
    draw("again.svg", "-i", "known.data", "--by", "none")
    with open("again.svg", "rb") as f, open("known.svg", "rb") as g:
        check(f.read() == g.read(), "the same input gives another file")
    for name in ("known.svg", "hostile.svg", "chart.svg", "lanes.svg", "icicle.svg"):
        try:
            xml.dom.minidom.parse(name)
        except Exception as e:
            check(False, "%s is no XML: %s" % (name, e))
    p = e2e.kvmprof("flamegraph", "-i", "known.data", "-o", "-")
    check(p.out.rstrip().endswith("</svg>"), "-o - writes no SVG")
    p = draw("none.svg", "-i", "known.data", "--comm", "nobody", status=1)
    check("no samples are left" in p.err and p.err.count("\n") == 1, p.err)
    check(not os.path.exists("none.svg"), "an empty picture was written")
    draw("none.svg", "-i", "nowhere.data", status=1)
    draw("nodir/x.svg", "-i", "known.data", status=1)
    for bad in (["--width", "3"], ["--time", "3,1"], ["--by", "x"], ["--min-width", "nan"], ["--nope"],
                ["--chart", "--reverse"], ["--pid", "-1"], ["extra"]):
        p = draw("none.svg", *bad, status=2)
        check(p.err.count("\n") == 1, "%s: %s" % (bad, p.err))


if not browser.program():
    e2e.skip("chromium is not installed")
for argv in ([compiled.tool("e2e/mkprofile.c"), "-n", "10000", "known.data"], [compiled.tool("e2e/mkboot.c"), "boot.data"],
             ["./mkboot", "-g", "grown.data"]):
    made = e2e.run(*argv)
    check(made.status == 0, "%s: status %d: %s" % (argv, made.status, made.err))
for out in ("known.svg", "known.html"):
    draw(out, "-i", "known.data", "--by", "none")
for out in ("hostile.svg", "hostile.html"):
    draw(out, "-i", "boot.data")
with browser.Browser() as b:
    for out in ("known.svg", "known.html"):
        test_graph(b, out)
    for out in ("hostile.svg", "hostile.html"):
        test_hostile(b, out)
    test_shapes(b)
    test_chart(b)
    test_diff(b)
    test_files()
    if os.environ.get("FLAMEGRAPH_KEEP"):
        for name in ("known.svg", "chart.svg", "diff.html", "hostile.svg"):
            b.open(name)
            b.screenshot(os.path.join(os.environ["FLAMEGRAPH_KEEP"], os.path.splitext(name)[0] + ".png"))
e2e.finish()
