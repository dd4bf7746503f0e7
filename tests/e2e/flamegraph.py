#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 14 s
# tests: not svm, files
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

WIDTH = 1200   # of the whole: the browser's window less the margins


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
    check(int(idle[4][1:]) // 4 == 7 and int(tick[4][1:]) // 4 == 0, "colours: %s %s" % (idle[4], tick[4]))
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
    check("no sample has the command name" in p.err and p.err.count("\n") == 1, p.err)
    check(not os.path.exists("none.svg"), "an empty picture was written")
    draw("none.svg", "-i", "nowhere.data", status=1)
    draw("nodir/x.svg", "-i", "known.data", status=1)
    for bad in (["--width", "3"], ["--time", "3,1"], ["--by", "x"], ["--min-width", "nan"], ["--nope"],
                ["--chart", "--reverse"], ["--pid", "-1"], ["extra", "more"]):
        p = draw("none.svg", *bad, status=2)
        check(p.err.count("\n") == 1, "%s: %s" % (bad, p.err))


# Measures the contrast of each text that is shown with what lies below its middle, as WCAG 2 defines it. Boxes are
# those of the picture alone, dimmed ones over the ground.
CONTRAST = r"""(function () {
    function rgb(css) { return (css.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number); }
    function lum(c) {
        var l = c.map(function (v) { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); });
        return .2126 * l[0] + .7152 * l[1] + .0722 * l[2];
    }
    var ground = rgb(getComputedStyle(document.getElementById("ground")).fill);
    var rects = Array.from(document.querySelectorAll("svg rect")).map(function (r) {
        return [r.getBoundingClientRect(), getComputedStyle(r)]; });
    var found = [];
    document.querySelectorAll("svg text").forEach(function (e) {
        var style = getComputedStyle(e), box = e.getBoundingClientRect();
        if (!e.textContent.trim() || style.visibility == "hidden") return;
        var x = box.left + Math.min(4, box.width / 2), y = box.top + box.height / 2, below = ground;
        rects.forEach(function (r) {
            if (x < r[0].left || x > r[0].right || y < r[0].top || y > r[0].bottom) return;
            var a = +r[1].opacity, c = rgb(r[1].fill);
            below = c.map(function (v, i) { return a * v + (1 - a) * below[i]; });
        });
        var a = lum(rgb(style.fill)), b = lum(below);
        found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.textContent]);
    });
    return found;
})()"""
# Texts that leave the window or lie over one another, boxes that leave it, and whether it scrolls sideways.
CUT = r"""(function () {
    var wide = innerWidth, found = [], texts = [];
    document.querySelectorAll("svg text, #frames rect, #bands rect").forEach(function (e) {
        var b = e.getBoundingClientRect(), style = getComputedStyle(e);
        if (style.visibility == "hidden" || (e.tagName == "text" && !e.textContent.trim())) return;
        if (b.left < -0.5 || b.right > wide + 0.5) found.push("outside: " + (e.textContent || e.outerHTML));
        if (e.tagName == "text") texts.push([b, e.textContent]);
    });
    texts.forEach(function (a, i) {
        texts.slice(0, i).forEach(function (b) {
            if (Math.min(a[0].right, b[0].right) - Math.max(a[0].left, b[0].left) > 1 &&
                Math.min(a[0].bottom, b[0].bottom) - Math.max(a[0].top, b[0].top) > 5)
                found.push("over one another: " + a[1] + " | " + b[1]);
        });
    });
    if (document.documentElement.scrollWidth > wide) found.push("scrolls to " + document.documentElement.scrollWidth);
    return found;
})()"""


def window(b, width, height=1000):
    b.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def scheme(b, name):
    b.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])


def corner(b):
    """The colour of the window's last pixel, as one number for each channel."""
    import base64
    import struct
    import zlib
    size = b.js("[innerWidth, innerHeight]")
    png = base64.b64decode(b.call("Page.captureScreenshot", format="png", clip={
        "x": size[0] - 1, "y": b.js("scrollY") + size[1] - 1, "width": 1, "height": 1, "scale": 1})["data"])
    at, data, kind = 8, b"", 2
    while at < len(png):
        n, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IHDR":
            kind = png[at + 17]
        data += png[at + 8:at + 8 + n] if name == b"IDAT" else b""
        at += 12 + n
    return tuple(zlib.decompress(data)[1:4]) if kind in (2, 6) else None


def look(b, path, how):
    """In both schemes and several widths: each text can be read, none is cut, and the ground fills the window."""
    for name, ground in (("light", (255, 255, 255)), ("dark", (27, 30, 35))):
        scheme(b, name)
        for width in (700, 1000, 1220, 1920):
            window(b, width)
            opened(b, path)
            where = "%s, %s, %d px, " % (path, name, width)
            for state in how:
                if state == "hover":
                    b.js("document.querySelectorAll('#frames rect')[1].dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))")
                elif state == "zoom":
                    b.js("document.querySelectorAll('#frames rect')[%d].dispatchEvent(new MouseEvent('click', {bubbles: true}))" %
                         b.js("document.querySelectorAll('#frames rect').length - 1"))
                elif state == "search":
                    search(b, ".")
                elif state == "wrong":
                    search(b, "(")
                bad = [x for x in b.js(CONTRAST) if x[0] < 4.5]
                check(not bad, where + state + ": contrast " + ", ".join("%.1f of %r" % tuple(x) for x in bad[:5]))
                bad = b.js(CUT)
                check(not bad, where + state + ": " + "; ".join(bad[:5]))
                whole = b.js("document.getElementById('ground').getBoundingClientRect().width")
                check(whole == width, where + "the picture is %d wide" % whole)
            got = corner(b)
            check(got == ground, where + "the corner of the window is %s" % (got,))
            if os.environ.get("FLAMEGRAPH_KEEP"):
                b.screenshot(os.path.join(os.environ["FLAMEGRAPH_KEEP"], "%s-%s-%d.png" % (path, name, width)))
    scheme(b, "light")
    window(b, 1220)


def test_looks(b):
    every = ("plain", "hover", "zoom", "search", "wrong")
    draw("chart.html", "-i", "boot.data", "--chart", "--lanes", "thread")
    draw("long.svg", "-i", "known.data", "--title", "A title of many words, " * 12)
    for path in ("known.svg", "known.html", "chart.svg", "chart.html", "diff.html", "long.svg"):
        look(b, path, every)
    # A window that becomes another one.
    opened(b, "known.svg")
    window(b, 800)
    b.js("window.dispatchEvent(new Event('resize'))")
    near(one(boxes(b), "all")[3], 780, "the whole in a window of 800 px")
    window(b, 1220)
    # A width that was asked for stays.
    draw("fixed.svg", "-i", "known.data", "--width", "900")
    opened(b, "fixed.svg")
    near(one(boxes(b), "all")[3], 880, "the whole with --width 900")


def test_roots(b):
    """A graph that is taller than the window opens at its roots, and the search is in sight there."""
    window(b, 1000, 150)
    for path in ("known.svg", "known.html"):
        opened(b, path)
        b.js("window.dispatchEvent(new Event('load'))")
        seen = b.js("document.querySelector('#frames rect').getBoundingClientRect().bottom")
        check(0 < seen <= 150, "%s: the root is at %d of 150 px" % (path, seen))
        b.key("f", 2)
        at = b.js("document.getElementById('pattern').getBoundingClientRect().top")
        check(0 <= at < 130, "%s: the search is at %d of 150 px" % (path, at))
    opened(b, "icicle.svg")
    check(b.js("scrollY") == 0, "an icicle's roots are at its top: it must not scroll")
    window(b, 1220)


def legend(b):
    return b.js("Array.from(document.querySelectorAll('#legend text')).map(function(t){return t.textContent})")


def test_kinds(b):
    """What the legend says of frames that are no module's: the VMM's, the host's, a task's state."""
    made = e2e.run("./mkboot", "-k", "kinds.data")
    check(made.status == 0, "mkboot -k: %s" % made.err)
    draw("kinds.svg", "-i", "kinds.data", "--by", "none")
    opened(b, "kinds.svg")
    got = {x.split(" ")[0]: x for x in legend(b)}
    check(set(got) == {"kernel", "module", "host", "waiting"}, "the legend has %s" % sorted(got.values()))
    found = boxes(b)
    for name, kind in (("[vmm] serial", 5), ("[runnable]", 5), ("[S]", 6), ("make", 5), ("on_kick", 5), ("[exit: hlt]", 5), ("kvm_vcpu_run", 5), ("ext4_read", 1), ("decompressor", 0)):
        check(int(one(found, name)[4][1:] or 99) // 4 == kind, "%s is of the class %s" % (name, one(found, name)[4]))


def test_endings():
    for name in ("x.png", "x.pdf", "x.svgz", "a.svg/../x.jpeg", "x.SVG.gz"):
        p = draw(name, "-i", "known.data", status=2)
        check(".svg or .html" in p.err and p.err.count("\n") == 1, "%s: %s" % (name, p.err))
        check(not os.path.exists(name), name + " was written")
        p = e2e.kvmprof("gate", "--base", "known.data", "--head", "known.data", "--flamegraph", name)
        check(p.status == 2 and ".svg or .html" in p.err, "gate --flamegraph %s: %d %s" % (name, p.status, p.err))
    os.mkdir("dir.png")
    for name in ("X.SVG", "x.HTM", "noending", "dir.png/noending"):
        draw(name, "-i", "known.data")


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
    test_looks(b)
    test_roots(b)
    test_kinds(b)
    test_endings()
    test_files()
    if os.environ.get("FLAMEGRAPH_KEEP"):
        for name in ("known.svg", "chart.svg", "diff.html", "hostile.svg"):
            b.open(name)
            b.screenshot(os.path.join(os.environ["FLAMEGRAPH_KEEP"], os.path.splitext(name)[0] + ".png"))
e2e.finish()
