"""Model calls to a server outside: any address that speaks OpenAI's chat completions, called from here with its key.

Knows the address, the key and how such servers spell a request. Refuses to let either into a sandbox, to repeat the key in any
text, and to call an address inside our own network unless the installation allows it: the address was written by a tenant.
What the server refuses for good (key, model, funds) is told once, by `refused`; what may be better later is tried again.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from trainer.contracts.addresses import PrivateAddress, checked_address
from trainer.contracts.internal import ExternalModel
from trainer.contracts.redaction import Redactor
from trainer.orchestrator.attempt.services import OnTrouble
from trainer.orchestrator.engines.gate import ERROR_BYTES_MAX, EngineAway, EngineGate, Trouble
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.transport.link import HEAD_BYTES_MAX, Answer, Connection, Link, LinkError

CHAT_PATH = "/chat/completions"
CALL_S = 600.0
"""From the request to the head of the answer."""
FINAL_STATUSES = frozenset({401, 402, 403, 404})
OURS_ALONE = ("cache_salt",)
"""Fields that only our engines know; others refuse what they do not know."""
RENAMED_AT = frozenset({"api.openai.com"})
"""Servers that have given `max_tokens` up for `max_completion_tokens`; all others know the former."""


@dataclass(slots=True)
class ExternalGate(EngineGate):
    """`refusal` says why no call can succeed; `refused` is set with it."""

    model: ExternalModel | None = None
    refusal: str = ""
    refused: asyncio.Event = field(default_factory=asyncio.Event)

    async def opened(self, path: str, content: bytes, policy: Policy) -> Answer:
        try:
            async with asyncio.timeout(CALL_S):
                # By name: a dataclass with slots is made twice, and `super()` would look for the first.
                answer = await EngineGate.opened(self, CHAT_PATH, spelled(content, self.link.host), policy)
        except TimeoutError:
            raise Trouble(f"{self.link.host} did not answer within {CALL_S:.0f} s") from None
        except Trouble as trouble:
            if _is_private(trouble):
                raise self._refuse(f"{self.link.host} is an address inside this installation's own network") from None
            raise
        if answer.status in FINAL_STATUSES:
            raise self._refuse(f"{self.link.host} answered {answer.status}: {await self._words(answer)}")
        return answer

    def _refuse(self, message: str) -> EngineAway:
        self.refusal = message
        self.refused.set()
        return EngineAway(message)

    async def _words(self, answer: Answer) -> str:
        """The beginning of an answer, without the key: some servers repeat it."""
        try:
            text = (await answer.read(ERROR_BYTES_MAX)).decode("utf-8", "replace")
        except LinkError as error:
            text = str(error)
        finally:
            answer.close()
        return Redactor([self.model.api_key] if self.model else []).text(text)[:300]


def external_gate(model: ExternalModel, on_trouble: OnTrouble) -> ExternalGate:
    return ExternalGate(_link_to(model), None, on_trouble, model=model)


def external_policy(model: ExternalModel) -> Policy:
    """Its weights are nobody's to check: a policy without a digest."""
    return Policy(model.model, "")


def spelled(content: bytes, host: str) -> bytes:
    """The pinned request as servers other than ours take it."""
    asked = {name: value for name, value in json.loads(content).items() if name not in OURS_ALONE}
    if host in RENAMED_AT and "max_tokens" in asked:
        asked["max_completion_tokens"] = asked.pop("max_tokens")
    return json.dumps(asked).encode()


def _link_to(model: ExternalModel) -> Link:
    parts = urlsplit(model.base_url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    secure = ssl.create_default_context() if parts.scheme == "https" else None

    async def connect() -> Connection:
        # What was checked is what is connected to: a second look-up could answer otherwise.
        address = await checked_address(host, port, may_be_private=model.may_be_private)
        name = host if secure else None
        return await asyncio.open_connection(address, port, ssl=secure, server_hostname=name, limit=HEAD_BYTES_MAX)

    headers = {"Authorization": f"Bearer {model.api_key}"} if model.api_key else {}
    return Link(connect, parts.netloc, headers, parts.path.rstrip("/"))


def _is_private(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, PrivateAddress):
            return True
        error = error.__cause__
    return False
