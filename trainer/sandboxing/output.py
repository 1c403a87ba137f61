"""Bounded memory of what a box prints: its beginning and its end, whatever it prints in between.

Knows bytes. Refuses to know processes. Text is decoded late and leniently, since tenant output may be anything.
"""

from collections import deque


class LogBuffer:
    """Keeps the first and the last half of `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = max(1, limit_bytes // 2)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total_bytes = 0

    @property
    def is_over_limit(self) -> bool:
        return self.total_bytes > 2 * self._half

    def write(self, data: bytes) -> None:
        self.total_bytes += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._half:
            self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-self._half :]
        left_out = self.total_bytes - len(self._head) - len(tail)
        gap = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return (bytes(self._head) + gap + tail).decode("utf-8", errors="replace")
