# SPDX-License-Identifier: GPL-2.0-or-later
"""A web server with one page, for guests that have a network."""

import http.server
import threading


def serve(host, page):
    """The server; it runs until the test ends."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200, "fine")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
