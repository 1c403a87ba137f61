"""One function per attempt; each answers whether it succeeded."""

import ctypes
import os
import socket
import stat
import sys


def reads(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def writes(path: str) -> bool:
    try:
        with open(path, "wb"):
            return True
    except OSError:
        return False


def lists(*paths: str) -> bool:
    return any(os.path.isdir(path) and os.listdir(path) for path in paths)


def connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def connects_unix(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            return True
    except OSError:
        return False


def opens_vsock() -> bool:
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
        return True
    except OSError:
        return False


def finds_socket(*roots: str) -> bool:
    """Any Unix socket besides the two of the runner's own folder."""
    ours = {"/run/rootstock/run.sock", "/run/rootstock/model.sock"}
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                if path not in ours and stat.S_ISSOCK(os.lstat(path).st_mode):
                    return True
    return False


def calls(name: str, *arguments: object) -> bool:
    return getattr(ctypes.CDLL(None), name)(*arguments) == 0


def base_site_packages() -> str:
    return next(path for path in sys.path if path.endswith("site-packages") and "/base/" in path)
