#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: not svm, network
"""`kvmprof push` against a server that reads what arrives as Pyroscope and Parca would: the form or
the JSON taken apart by Python's libraries, the pprof in it decoded by protoc's code. Totals and
times are the profile's. Then what goes wrong: a refused connection, 401, 500, a redirection,
silence, a bad certificate, no HTTP at all; each is one line and status 1."""

import base64
import email
import email.policy
import gzip
import json
import os
import socket
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import e2e
import exported
from e2e import check

e2e.need_tool("openssl")
got = []    # requests as (method, path, query, headers, body)
answer = {"status": 200, "text": "", "headers": {}, "wait": 0.0}
done = threading.Event()


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        got.append((url.path, urllib.parse.parse_qs(url.query), self.headers, body))
        if answer["wait"]:
            done.wait(answer["wait"])
            self.close_connection = True
            return
        text = answer["text"].encode()
        self.send_response(answer["status"])
        for k, v in answer["headers"].items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(context=None):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, "%s://localhost:%d" % ("https" if context else "http", server.server_port)


def push(url, *argv, env=None, status=0):
    got.clear()
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    p = e2e.run(e2e.KVMPROF, "push", "-i", "plain.data", *argv, url, env=dict(clean, **(env or {})))
    check(p.status == status and not p.out and p.err.count("\n") == 1,
          "push %s: status %d, not %d: %s" % (" ".join(argv), p.status, status, p.err))
    return p


def judge_pprof(pb, data, p):
    prof = pb.Profile()
    prof.ParseFromString(gzip.decompress(data))
    check(sum(s.value[0] for s in prof.sample) == len(p.samples), "samples of the pprof")
    check(sum(s.value[1] for s in prof.sample) == p.weight, "weight of the pprof")
    check(abs(prof.duration_nanos - span(p)) < 2000, "duration_nanos %d, not %d" % (prof.duration_nanos, span(p)))
    ended = os.stat("plain.data/data" if os.path.isdir("plain.data") else "plain.data").st_mtime
    check(abs(prof.time_nanos + prof.duration_nanos - ended * 1e9) < 1e6, "time_nanos %d" % prof.time_nanos)
    names = {prof.string_table[f.name] for f in prof.function}
    check(names >= set(p.named(p.self_weight)), "functions of the pprof: %s" % names)


def span(p):
    times = [s.seconds for s in p.samples]
    return round((max(times) - min(times)) * 1e9)    # the script has microseconds


def pyroscope(pb, url, p):
    """The form, as Pyroscope's pkg/og/convert/pprof reads it."""
    push(url + "/", "--name", "demo kernel", "-l", "branch=main", "--label", "commit=a/b c")
    path, query, headers, body = got[0]
    check(path == "/ingest" and "format" not in query, "path %s, query %s" % (path, query))
    check(query["name"] == ["demo kernel{branch=main,commit=a/b c}"], "name: %s" % query["name"])
    check(int(query["until"][0]) > int(query["from"][0]) > 1e9, "from and until: %s" % query)
    check("Authorization" not in headers and headers["User-Agent"].startswith("kvmprof/"), str(headers))
    form = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body,
                                    policy=email.policy.HTTP)
    parts = {x.get_param("name", header="content-disposition"): x.get_payload(decode=True)
             for x in form.iter_parts()}
    check(sorted(parts) == ["profile", "sample_type_config"], "fields: %s" % sorted(parts))
    judge_pprof(pb, parts["profile"], p)
    types = json.loads(parts["sample_type_config"])
    check(types["samples"]["units"] == "samples" and types["wall"]["units"] == "nanoseconds", str(types))


def told_as_json(url):
    got.clear()
    p = e2e.run(e2e.KVMPROF, "push", "--json", "-i", "plain.data", url)
    facts = json.loads(p.out)
    check(p.status == 0 and not p.err and len(got) == 1 and facts["profile"] == "plain.data" and facts["samples"] > 0 and
          facts["bytes"] > 0 and facts["url"].startswith(url) and "?" not in facts["url"], "--json: %s%s" % (p.out, p.err))


def as_json(pb, url, p):
    for protocol, path in (("connect", "/push.v1.PusherService/Push"), ("parca", "/api/profiles/writeraw")):
        push(url + "/prefix", "--protocol", protocol, "--name", "demo", "-l", "quote=a'b\\c")
        at, query, headers, body = got[0]
        check(at == "/prefix" + path and not query, "%s: path %s" % (protocol, at))
        check(headers["Content-Type"] == "application/json", str(headers))
        series, = json.loads(body)["series"]
        labels = series["labels"]["labels"] if protocol == "parca" else series["labels"]
        labels = {x["name"]: x["value"] for x in labels}
        check(labels == {"__name__": "kvmprof", "job" if protocol == "parca" else "service_name": "demo",
                         "quote": "a'b\\c"}, "%s: labels %s" % (protocol, labels))
        sample, = series["samples"]
        judge_pprof(pb, base64.b64decode(sample["rawProfile"], validate=True), p)
    push(url, "--protocol", "parca", "--path", "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw")
    check(got[0][0].endswith("ProfileStoreService/WriteRaw"), "--path: " + got[0][0])


def access(url):
    with open("token", "w") as f:
        f.write("s3cret\nnot this\n")
    for argv, env, want in ((["--token-file", "token"], {}, "Bearer s3cret"),
                            ([], {"KVMPROF_PUSH_TOKEN": "t"}, "Bearer t"),
                            (["--token-file", "token"], {"KVMPROF_PUSH_TOKEN": "t"}, "Bearer s3cret"),
                            (["--user", "me", "--token-file", "token"], {},
                             "Basic " + base64.b64encode(b"me:s3cret").decode())):
        push(url, *argv, env=env)
        check(got[0][2]["Authorization"] == want, "%s %s: %s" % (argv, env, got[0][2]["Authorization"]))
    push(url, "--tenant", "team-1")
    check(got[0][2]["X-Scope-OrgID"] == "team-1", "--tenant: %s" % got[0][2])


def failures(url):
    for status, text, part in ((401, "", "401; see --token-file"), (500, "no room\nmore", "500: no room"),
                               (404, "", "--protocol"), (200, "", "pushed"), (503, "\033[31m", "?[31m"),
                               (302, "", "redirections are not followed"), (413, "", "too large")):
        answer.update(status=status, text=text, headers={"Location": url + "/there"} if status == 302 else {})
        p = push(url, status=0 if status == 200 else 1)
        check(part in p.err and len(got) == 1, "%d: %s" % (status, p.err))
    answer.update(status=200, text="", headers={}, wait=60.0)
    p = push(url, "--timeout", "1", status=1)
    check("timed out" in p.err and p.seconds < 30, "silence: %.1f s, %s" % (p.seconds, p.err))
    done.set()
    answer["wait"] = 0.0

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))    # nobody listens
        p = push("http://127.0.0.1:%d" % s.getsockname()[1], status=1)
        check("refused" in p.err, "nobody listens: " + p.err)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)

        def nonsense():
            c, _ = s.accept()
            with c:
                c.recv(65536)
                c.sendall(b"what?\r\n\r\n")
                c.shutdown(socket.SHUT_WR)
                while c.recv(65536):
                    pass
        threading.Thread(target=nonsense, daemon=True).start()
        p = push("http://127.0.0.1:%d" % s.getsockname()[1], status=1)
        check("cannot push" in p.err, "no HTTP: " + p.err)
    p = push("http://no-such-host.invalid", status=1)
    check("cannot push" in p.err, "no such host: " + p.err)


def tls():
    p = e2e.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                "-keyout", "key.pem", "-out", "cert.pem")
    check(p.status == 0, "openssl: " + p.err)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server, url = serve(context)
    p = push(url, status=1)
    check("certificate" in p.err.lower() and not got, "unknown certificate: " + p.err)
    push(url, "--cacert", "cert.pem")
    check(len(got) == 1, "nothing arrived with --cacert")
    p = push(url.replace("localhost", "127.0.0.1"), "--cacert", "cert.pem", status=1)
    check(not got, "another host's certificate was taken: " + p.err)
    push(url, "--cacert", "missing.pem", status=1)
    server.shutdown()


def wrong_usage(url):
    for argv in ((), ("ftp://x",), ("http://",), ("http://u:p@h",), ("http://h?a=b",), (url, "extra"),
                 ("-l", "novalue", url), ("-l", "1a=b", url), ("-l", "a=b{", url), ("-l", "job=x", url),
                 ("--name", "a,b", url), ("--protocol", "smtp", url), ("--timeout", "0", url),
                 ("--path", "x", url), ("--tenant", "a\nb", url), ("--no-such", url)):
        p = e2e.kvmprof("push", "-i", "plain.data", *argv)
        check(p.status == 2 and p.err.count("\n") == 1 and not p.out, "push %s: %d %s" % (argv, p.status, p.err))
    for argv in (("-i", "missing", url), ("--token-file", "missing", "-i", "plain.data", url)):
        p = e2e.kvmprof("push", *argv)
        check(p.status == 1 and p.err.count("\n") == 1, "push %s: %d %s" % (argv, p.status, p.err))


def main():
    p = exported.make_profiles()[0]
    pb, why = exported.pprof_decoder()
    if why:
        e2e.skip(why)
    server, url = serve()
    pyroscope(pb, url, p)
    told_as_json(url)
    as_json(pb, url, p)
    access(url)
    failures(url)
    tls()
    wrong_usage(url)
    server.shutdown()
    e2e.finish("%d samples pushed by three protocols" % len(p.samples))


main()
