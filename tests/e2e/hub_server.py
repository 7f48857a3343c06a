"""A hub and its CDN on two loopback ports, with the manners and the faults of the real ones.

The hub answers the API and HEAD/GET of files; large files redirect to the CDN, which is another origin. Every request is kept in
`log`, every body byte that was sent is counted in `served`. Faults are set per file (see File) or per repository.
"""
import hashlib
import json
import socket
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


@dataclass
class File:
    data: bytes
    lfs: bool = True
    etag: str = ""            # "": the right one
    size: int = -1            # what the hub announces; -1: the truth
    cut: list = field(default_factory=list)  # one entry per GET: bytes of the body after which the connection breaks
    always_cut: int = -1      # the same for every GET
    ranges: bool = True       # honours Range
    status: list = field(default_factory=list)  # one entry per GET: answer with this status instead
    pause: float = 0.0        # seconds before each 64 KiB
    loop: bool = False        # redirects to itself
    moved: bool = False       # redirects to another path of the same host first, as renamed repositories do

    def name(self):
        if self.etag:
            return self.etag
        if self.lfs:
            return hashlib.sha256(self.data).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()


@dataclass
class Repo:
    files: dict
    commit: str = "a" * 40
    revs: tuple = ("main",)
    token: str = ""           # needed to see it
    gated: bool = False
    listed: list = None       # names that the API lists; None: those of files
    answer: bytes = None      # what the API says instead


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *a):
        """A client that left is what half of the tests are about."""


class Hub:
    def __init__(self, tls=None):
        self.tls = tls            # (certificate, key): the hub speaks https, the CDN does not
        self.repos, self.log, self.served = {}, [], 0
        self.lock = threading.Lock()
        self.api_status = []
        self.hub = self._serve("hub")
        self.cdn = self._serve("cdn")

    def _serve(self, kind):
        owner = self

        class Handler(Answer):
            hub, role = owner, kind

        server = Server(("127.0.0.1", 0), Handler)
        if self.tls and kind == "hub":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def url(self, kind="hub"):
        scheme = "https" if self.tls and kind == "hub" else "http"
        return "%s://127.0.0.1:%d" % (scheme, getattr(self, kind).server_address[1])

    def close(self):
        for s in (self.hub, self.cdn):
            s.shutdown()
            s.server_close()

    def gets(self, kind="cdn"):
        return [r for r in self.log if r["role"] == kind and r["method"] == "GET"]


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        with self.hub.lock:
            self.hub.log.append({"role": self.role, "method": self.command, "path": self.path,
                                 "auth": self.headers.get("Authorization"), "range": self.headers.get("Range")})
        parts = [unquote(p) for p in urlsplit(self.path).path.split("/")[1:]]
        if self.role == "hub" and parts[:2] == ["api", "models"]:
            return self.api("/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main", body)
        if parts[0] == "moved":
            parts = parts[1:]
        if len(parts) < 5 or parts[2] != "resolve":
            return self.say(404, body)
        repo = self.hub.repos.get("/".join(parts[:2]))
        file = repo and repo.files.get("/".join(parts[4:]))
        if not file:
            return self.say(404, body, {"X-Error-Code": "EntryNotFound"})
        if self.role == "hub" and repo.token and self.headers.get("Authorization") != "Bearer " + repo.token:
            return self.say(401, body, {"X-Error-Code": "RepoNotFound"})
        if file.moved and not self.path.startswith("/moved/"):
            return self.say(307, body, {"Location": "/moved" + self.path})
        self.file(repo, file, body)

    def api(self, name, rev, body):
        repo = self.hub.repos.get(name)
        if self.hub.api_status:
            return self.say(self.hub.api_status.pop(0), body)
        if not repo:
            return self.say(404, body, {"X-Error-Code": "RepoNotFound"})
        if repo.gated:
            return self.say(403, body, {"X-Error-Code": "GatedRepo"})
        if repo.token and self.headers.get("Authorization") != "Bearer " + repo.token:
            return self.say(401, body, {"X-Error-Code": "RepoNotFound"})
        if rev not in repo.revs and rev != repo.commit:
            return self.say(404, body, {"X-Error-Code": "RevisionNotFound"})
        names = list(repo.files) if repo.listed is None else repo.listed
        text = json.dumps({"id": name, "sha": repo.commit, "siblings": [{"rfilename": n} for n in names]}).encode()
        self.say(200, body, {}, text if repo.answer is None else repo.answer)

    def say(self, status, body, headers={}, text=b""):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def file(self, repo, f, body):
        size = len(f.data) if f.size < 0 else f.size
        about = {"X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        if f.lfs and self.role == "hub":
            to = (self.hub.url() if f.loop else self.hub.url("cdn")) + self.path
            about.update({"X-Linked-Etag": '"%s"' % f.name(), "X-Linked-Size": str(size), "Location": to})
            if f.loop:
                about.pop("X-Linked-Etag")
            return self.say(302, body, about)
        about["ETag"] = '"%s"' % (hashlib.md5(f.data).hexdigest() if f.lfs else f.name())
        if not body:
            self.send_response(200)
            for k, v in about.items():
                self.send_header(k, v)
            self.send_header("Content-Length", str(size))
            return self.end_headers()
        if f.status:
            return self.say(f.status.pop(0), body)
        self.send_bytes(f, about)

    def send_bytes(self, f, about):
        start, status, want = 0, 200, self.headers.get("Range")
        if want and f.ranges:
            start, status = int(want[len("bytes="):].split("-")[0]), 206
            if start >= len(f.data):
                return self.say(416, True)
            about["Content-Range"] = "bytes %d-%d/%d" % (start, len(f.data) - 1, len(f.data))
        self.send_response(status)
        for k, v in about.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(f.data) - start))
        self.end_headers()
        with self.hub.lock:
            cut = f.cut.pop(0) if f.cut else f.always_cut
        part = f.data[start:] if cut < 0 else f.data[start:start + cut]
        for i in range(0, len(part), 65536):
            if f.pause:
                threading.Event().wait(f.pause)
            try:
                self.wfile.write(part[i:i + 65536])
            except OSError:
                self.close_connection = True
                return
            with self.hub.lock:
                self.hub.served += len(part[i:i + 65536])
        if cut >= 0:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True
