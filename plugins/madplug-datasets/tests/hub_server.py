"""A local hub: just enough of the hub's interface that `datasets` reads a data set from it."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

SHA = "0123456789abcdef0123456789abcdef01234567"


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


FILES = {
    "README.md": b"---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: test.jsonl\n"
                 b"  - split: train\n    path: train.jsonl\n---\n",
    "test.jsonl": jsonl({"question": f"{i}+1?", "answer": str(i + 1), "level": "ab"[i % 3 == 0]} for i in range(30)),
    "train.jsonl": jsonl({"question": f"{i}-1?", "answer": str(i - 1), "level": "a"} for i in range(5)),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def json(self, value):
        self.reply(200, json.dumps(value).encode(), Content_Type="application/json")

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if path.startswith(("/api/datasets/me/gated", "/datasets/me/gated")) and "token" not in str(
                self.headers.get("Authorization")):
            if path.startswith("/api"):
                return self.json({"id": "me/gated", "sha": SHA, "gated": "manual"})
            return self.reply(401, X_Error_Code="GatedRepo")
        if path.startswith("/api/datasets/me/sums"):
            rest = path.removeprefix("/api/datasets/me/sums")
            if rest in ("", "/revision/main", f"/revision/{SHA}"):
                return self.json({"id": "me/sums", "sha": SHA, "gated": False, "private": False, "tags": [],
                                  "downloads": 0, "likes": 0, "siblings": [{"rfilename": n} for n in FILES]})
            if rest.startswith("/tree/"):
                return self.json([entry(name) for name in FILES])
            return self.reply(404, X_Error_Code="RevisionNotFound")
        if path.startswith("/datasets/me/sums/resolve/"):
            _, _, name = path.removeprefix("/datasets/me/sums/resolve/").partition("/")
            if name not in FILES:
                return self.reply(404, X_Error_Code="EntryNotFound", X_Repo_Commit=SHA)
            body = FILES[name]
            headers = {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X_Repo_Commit": SHA, "Accept_Ranges": "bytes"}
            asked = self.headers.get("Range")
            if asked and self.command == "GET":
                first, _, last = asked.removeprefix("bytes=").partition("-")
                part = body[int(first):int(last) + 1 if last else None]
                return self.reply(206, part, Content_Range=f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}",
                                  **headers)
            return self.reply(200, body, **headers)
        return self.reply(401 if path.startswith("/api/datasets") else 404, X_Error_Code="RepoNotFound")


def entry(name):
    body = FILES[name]
    return {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}


class Hub:
    """Serves until it is left."""

    def __enter__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
