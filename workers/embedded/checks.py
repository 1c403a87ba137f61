"""Whether a service works: what is asked, and how long an answer may take. Knows no service by name."""

import urllib.error
import urllib.request
from functools import partial

from celery import Celery
from kombu.exceptions import OperationalError

HEALTH_TIMEOUT_S = 5.0
PING_TIMEOUT_S = 1.0


class FirstThenAlive:
    """A check that is too dear to repeat: once it has passed, only the process itself is watched."""

    def __init__(self, check: partial[bool]) -> None:
        self.check = check
        self.passed = False

    def __call__(self) -> bool:
        self.passed = self.passed or self.check()
        return self.passed


def answers(url: str) -> bool:
    """True when the URL answers 200 in time; the loopback address is never asked through a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HEALTH_TIMEOUT_S) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def worker_answers(broker_url: str, name: str) -> bool:
    """True when the Celery worker of that name answers a ping through the broker."""
    with Celery("probe", broker=broker_url) as probe:
        try:
            return bool(probe.control.ping([name], timeout=PING_TIMEOUT_S))
        except OperationalError:
            return False
