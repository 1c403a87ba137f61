"""An engine that speaks the contract over real HTTP and answers a fixed text, token by token, as slowly as a test wants.

Knows the shapes of trainer/contracts/generation.py. Holds no model: the n-th token of every answer is "w<n> ".
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BASE_DIGEST = "0" * 64
WAIT_S = 10.0


class FakeEngine:
    """`loaded` is digest by name. `hold_after` stops an answer after so many tokens until `go` is set."""

    def __init__(self, base_model: str) -> None:
        self.base_model = base_model
        self.loaded: dict[str, str] = {base_model: BASE_DIGEST}
        self.files: dict[str, str] = {}
        """Digest by path of what can be loaded; anything else is refused."""
        self.tokens_count = 5
        self.hold_after: int | None = None
        self.holding = threading.Event()
        self.go = threading.Event()
        self.aborted = threading.Event()
        self.break_after: int | None = None
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.claimed_digest: str | None = None
        self.requests: list[tuple[str, dict[str, Any], str]] = []
        self.url = ""

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for called, body, _ in self.requests if called == path]

    def restart(self) -> None:
        """What a new process holds: the base model alone."""
        self.loaded = {self.base_model: BASE_DIGEST}

    def identity(self, name: str) -> dict[str, Any]:
        digest = self.claimed_digest or self.loaded[name]
        return {"model": name, "system_fingerprint": digest, "adapter": {"name": name, "digest": digest}}


@contextmanager
def running_engine(base_model: str) -> Iterator[FakeEngine]:
    engine = FakeEngine(base_model)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"engine": engine}))
    server.daemon_threads = True
    engine.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        engine.go.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: FakeEngine

    def log_message(self, *args: object) -> None:
        """Silence: the default writes to stderr."""

    def do_GET(self) -> None:
        cards = [_card(name, digest) for name, digest in self.engine.loaded.items()]
        self._answer(200, {"object": "list", "data": cards})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.engine.requests.append((self.path, body, self.headers.get("Authorization", "")))
        handle = {
            "/v1/load_lora_adapter": self._load,
            "/v1/unload_lora_adapter": self._unload,
            "/v1/chat/completions": self._chat,
        }
        handle[self.path](body)

    def _load(self, body: dict[str, Any]) -> None:
        digest = self.engine.files.get(body["lora_path"])
        if digest is None or digest != body["digest"]:
            self._answer(404, _error("no such adapter files", "adapter_not_found"))
            return
        self.engine.loaded[body["lora_name"]] = digest
        self._answer(200, {"lora_name": body["lora_name"], "digest": digest, "load_s": 0.0, "requests_in_flight": 0})

    def _unload(self, body: dict[str, Any]) -> None:
        known = self.engine.loaded.pop(body["lora_name"], None)
        self._answer(200 if known else 404, {} if known else _error("not loaded", "model_not_found"))

    def _chat(self, body: dict[str, Any]) -> None:
        if self.engine.refusal is not None:
            self._answer(*self.engine.refusal)
        elif body["model"] not in self.engine.loaded:
            self._answer(404, _error(f"the model '{body['model']}' does not exist", "model_not_found"))
        elif body.get("stream"):
            self._stream(body)
        else:
            self._answer(200, self._whole(body))

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        self._pause(self.engine.hold_after or 0)
        text = "".join(f"w{index} " for index in range(self._count(body)))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": None}
        kind = {"id": "chatcmpl-engine", "object": "chat.completion", "created": 1}
        return kind | self.engine.identity(body["model"]) | {"choices": [choice], "usage": self._usage(body, self._count(body))}

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for index, event in enumerate(self._events(body)):
                self._pause(index - 1)
                self._chunk(event)
            self._chunk("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.engine.aborted.set()
            self.close_connection = True

    def _events(self, body: dict[str, Any]) -> Iterator[str]:
        head = {"id": "chatcmpl-engine", "object": "chat.completion.chunk", "created": 1} | self.engine.identity(body["model"])
        opening = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield json.dumps(head | {"choices": [opening], "prompt_token_ids": list(range(self._prompt_count(body)))})
        for index in range(self._count(body)):
            choice = {"index": 0, "delta": {"content": f"w{index} "}, "finish_reason": None, "token_ids": [index]}
            yield json.dumps(head | {"choices": [choice]})
        yield json.dumps(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield json.dumps(head | {"choices": [], "usage": self._usage(body, self._count(body))})

    def _pause(self, tokens_sent: int) -> None:
        if self.engine.break_after is not None and tokens_sent >= self.engine.break_after:
            self.close_connection = True
            self.connection.close()
            raise BrokenPipeError
        if self.engine.hold_after is not None and tokens_sent == self.engine.hold_after:
            self.engine.holding.set()
            self.engine.go.wait(WAIT_S)

    def _chunk(self, event: str) -> None:
        data = f"data: {event}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _count(self, body: dict[str, Any]) -> int:
        return min(self.engine.tokens_count, body.get("max_tokens") or self.engine.tokens_count)

    def _prompt_count(self, body: dict[str, Any]) -> int:
        return sum(len(str(message["content"])) for message in body["messages"])

    def _usage(self, body: dict[str, Any], count: int) -> dict[str, int]:
        prompt = self._prompt_count(body)
        return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _card(name: str, digest: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 1,
        "owned_by": "rootstock",
        "root": name,
        "max_model_len": 2048,
        "digest": digest,
    }


def _error(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": "model"}}
