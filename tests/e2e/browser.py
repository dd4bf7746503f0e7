# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through its DevTools protocol over a WebSocket (RFC 6455).

    with Browser() as b:
        b.open(path)
        b.js("document.title")
        b.click("#reset")
        b.screenshot("out.png")

b.messages has what pages wrote to the console and threw; b.requests each URL that they asked for.
"""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome")
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def program():
    return next((p for p in map(shutil.which, NAMES) if p), None)


class WebSocket:
    def __init__(self, url, timeout):
        host, path = url[len("ws://"):].split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout)
        self.data = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(("GET /%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n" % (path, host, key)).encode())
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise OSError("no WebSocket: %r" % head)

    def more(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise OSError("the browser closed the connection")
        self.data += part

    def take(self, n):
        while len(self.data) < n:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part

    def send(self, text, kind=TEXT):
        data = text.encode()
        mask = os.urandom(4)
        n = len(data)
        if n < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | n)
        elif n < 65536:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, n)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, n)
        self.socket.sendall(head + mask + bytes(c ^ mask[i & 3] for i, c in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, n = self.take(2)
            n &= 0x7f
            if n == 126:
                n, = struct.unpack(">H", self.take(2))
            elif n == 127:
                n, = struct.unpack(">Q", self.take(8))
            part, kind = self.take(n), first & 15
            if kind == PING:
                self.send(part.decode(errors="replace"), PONG)
            elif kind == CLOSE:
                raise OSError("the browser closed the connection")
            elif kind != PONG:
                text += part
                if first & 0x80:
                    return text.decode()


class Browser:
    def __init__(self, width=1220, height=1000, timeout=60):
        self.messages, self.requests, self.dialogs = [], [], []
        self.number, self.timeout = 0, timeout
        self.profile = tempfile.mkdtemp(prefix="chromium.")
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
             "--remote-debugging-port=0", "--user-data-dir=" + self.profile,
             "--window-size=%d,%d" % (width, height), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.socket = WebSocket(self.page_url(), timeout)
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def page_url(self):
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            try:
                with open(os.path.join(self.profile, "DevToolsActivePort")) as f:
                    port = int(f.readline())
                with urllib.request.urlopen("http://127.0.0.1:%d/json" % port, timeout=10) as r:
                    pages = [t for t in json.load(r) if t["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            except (OSError, ValueError):
                pass
            if self.process.poll() is not None:
                raise OSError("the browser ended with status %d" % self.process.returncode)
            time.sleep(0.1)
        raise OSError("the browser does not answer")

    def event(self, m):
        method, p = m.get("method"), m.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(a.get("value")) for a in p["args"]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(p["exceptionDetails"].get("exception", {}).get("description") or
                                 p["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.messages.append(p["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(p["message"])
            self.number += 1
            self.socket.send(json.dumps({"id": self.number, "method": "Page.handleJavaScriptDialog",
                                         "params": {"accept": False}}))
        return method

    def call(self, method, **params):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            m = json.loads(self.socket.receive())
            if m.get("id") == number:
                if "error" in m:
                    raise OSError("%s: %s" % (method, m["error"]["message"]))
                return m["result"]
            self.event(m)

    def open(self, path):
        """Loads a file, and waits until it is complete."""
        self.messages, self.requests, self.dialogs = [], [], []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        end = time.monotonic() + self.timeout
        while self.js("document.readyState + location.href") != "completefile://" + \
                os.path.abspath(path):
            if time.monotonic() > end:
                raise OSError(path + " does not load")
            time.sleep(0.05)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in r:
            raise OSError("%s: %s" % (expression, r["exceptionDetails"]))
        return r["result"].get("value")

    def click_at(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                      button="none" if kind == "mouseMoved" else "left",
                      clickCount=0 if kind == "mouseMoved" else 1)

    def middle(self, selector):
        r = self.js("(function(){var e=document.querySelector(%s);if(!e)return null;"
                    "var r=e.getBoundingClientRect();return [r.x+r.width/2,r.y+r.height/2]})()"
                    % json.dumps(selector))
        if not r:
            raise OSError("no such element: " + selector)
        return r

    def move(self, selector):
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="none")

    def click(self, selector):
        self.click_at(*self.middle(selector))

    def key(self, key, modifiers=0):
        """modifiers: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift."""
        codes = {"Enter": 13, "Escape": 27, "Backspace": 8, "Tab": 9, "End": 35, "Home": 36,
                 "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = codes[key] if len(key) > 1 else ord(key.upper())
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                      windowsVirtualKeyCode=code)

    def drag(self, a, z):
        """Moves the pressed mouse from one point to another, by way of their middle."""
        between = ((a[0] + z[0]) / 2, (a[1] + z[1]) / 2)
        for kind, at in (("mouseMoved", a), ("mousePressed", a), ("mouseMoved", between), ("mouseMoved", z), ("mouseReleased", z)):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1],
                      button="none" if (kind, at) == ("mouseMoved", a) else "left",
                      buttons=0 if (kind, at) == ("mouseMoved", a) or kind == "mouseReleased" else 1,
                      clickCount=0 if kind == "mouseMoved" else 1)

    def wheel(self, x, y, delta, modifiers=0):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta,
                  modifiers=modifiers)

    def until(self, expression):
        """Waits until an expression is true."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                if self.js(expression):
                    return
            except OSError:    # between two pages there is nothing to evaluate it in
                pass
            if time.monotonic() > end:
                raise OSError("never true: " + expression)
            time.sleep(0.02)

    def type_into(self, selector, text):
        """Replaces what an input field has."""
        self.js("(function(){var e=document.querySelector(%s);e.focus();e.select();e.value='';"
                "e.dispatchEvent(new Event('input',{bubbles:true}))})()" % json.dumps(selector))
        if text:
            self.type(text)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
