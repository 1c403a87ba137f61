"""The essential operations of the public client's wire, one a line: what a Lab must answer, whoever asks.

Knows methods and address shapes. A row is shown when an unmodified client asked for it and was answered as it has to be.
"""

import re
from dataclasses import dataclass
from functools import cached_property

DEFERRED = frozenset({"sandbox", "sandbox gateway"})
"""Areas that come later: counted, never shown."""

TABLE = """
auth             POST   /api/v1/auth_challenge/generate
auth             GET    /api/v1/auth_challenge/status
user             GET    /api/v1/user/whoami
user             PATCH  /api/v1/user/slug
teams            GET    /api/v1/user/teams
teams            GET    /api/v1/teams/{team}/members
env hub          GET    /api/v1/environmentshub/
env hub          POST   /api/v1/environmentshub/resolve
env hub          POST   /api/v1/environmentshub/lookup
env hub          POST   /api/v1/environmentshub/{env}/wheels
env hub          PUT    /objects/hub/{key*}
env hub          POST   /api/v1/environmentshub/{env}/wheels/{wheel}/finalize
env hub          POST   /api/v1/environmentshub/{env}/versions
env hub          POST   /api/v1/environmentshub/{env}/versions/{version}/finalize
env hub          GET    /api/v1/environmentshub/{owner}/{name}/@{version}
env hub          GET    /api/v1/environmentshub/{owner}/{name}/@{version}/inspect
env hub          GET    /api/v1/environmentshub/{owner}/{name}/status
env hub          GET    /api/v1/environmentshub/{owner}/{name}/versions
env hub          DELETE /api/v1/environmentshub/{env}
env hub          GET    /hub/{index*}/simple/{project}/
env hub          GET    /api/v1/environmentshub/{owner}/{name}/@{version}/source
env secrets      GET    /api/v1/environmentshub/{env}/secrets
env secrets      POST   /api/v1/environmentshub/{env}/secrets
env secrets      PATCH  /api/v1/environmentshub/{env}/secrets/{secret}
env secrets      DELETE /api/v1/environmentshub/{env}/secrets/{secret}
env secrets      POST   /api/v1/environmentshub/{env}/secrets/link/{secret}
env secrets      DELETE /api/v1/environmentshub/{env}/secrets/link/{secret}
env variables    GET    /api/v1/environmentshub/{env}/variables
env variables    POST   /api/v1/environmentshub/{env}/variables
env variables    PATCH  /api/v1/environmentshub/{env}/variables/{variable}
env variables    DELETE /api/v1/environmentshub/{env}/variables/{variable}
global secrets   GET    /api/v1/secrets/
global secrets   POST   /api/v1/secrets/
global secrets   GET    /api/v1/secrets/{secret}
global secrets   PATCH  /api/v1/secrets/{secret}
global secrets   DELETE /api/v1/secrets/{secret}
evals            GET    /api/v1/evaluations/
evals            POST   /api/v1/evaluations/
evals            POST   /api/v1/evaluations/{evaluation}/samples
evals            POST   /api/v1/evaluations/{evaluation}/finalize
evals            GET    /api/v1/evaluations/{evaluation}
evals            PUT    /api/v1/evaluations/{evaluation}
evals            GET    /api/v1/evaluations/{evaluation}/samples
hosted evals     POST   /api/v1/hosted-evaluations
hosted evals     GET    /api/v1/hosted-evaluations/{evaluation}/logs
hosted evals     PATCH  /api/v1/hosted-evaluations/{evaluation}/cancel
rl               GET    /api/v1/rft/models
rl               POST   /api/v1/rft/runs
rl               GET    /api/v1/rft/runs
rl               GET    /api/v1/rft/runs/{run}
rl               PUT    /api/v1/rft/runs/{run}/stop
rl               PUT    /api/v1/rft/runs/{run}/restart
rl               DELETE /api/v1/rft/runs/{run}
rl               GET    /api/v1/rft/runs/{run}/logs
rl               GET    /api/v1/rft/runs/{run}/env-server-logs
rl               GET    /api/v1/rft/runs/{run}/env-servers
rl               GET    /api/v1/rft/runs/{run}/metrics
rl               GET    /api/v1/rft/runs/{run}/samples
rl               GET    /api/v1/rft/runs/{run}/progress
rl               GET    /api/v1/rft/runs/{run}/distributions
rl               GET    /api/v1/rft/runs/{run}/checkpoints
training         POST   /api/v1/training/runs/prepare
training         POST   /api/v1/training/runs
training         GET    /api/v1/training/available-fft-models
run ingest       POST   /api/v1/rft/external-runs
run ingest       POST   /api/v1/rft/metrics
run ingest       POST   /api/v1/rft/samples/presign
run ingest       PUT    /objects/ingest/{key*}
run ingest       POST   /api/v1/rft/samples/confirm
run ingest       POST   /api/v1/rft/finalize
run ingest       PUT    /api/v1/rft/external-runs/{run}/status
adapters         GET    /api/v1/rft/adapters
adapters         GET    /api/v1/rft/adapters/{adapter}
adapters         POST   /api/v1/rft/adapters/{adapter}/deploy
adapters         POST   /api/v1/rft/checkpoints/{checkpoint}/deploy
adapters         POST   /api/v1/rft/adapters/{adapter}/unload
adapters         GET    /api/v1/rft/deployable-models
inference        GET    /api/inference/v1/models
inference        GET    /api/inference/v1/models/{model}
inference        POST   /api/inference/v1/chat/completions
sandbox          POST   /api/v1/sandbox
sandbox          GET    /api/v1/sandbox
sandbox          GET    /api/v1/sandbox/{sandbox}
sandbox          DELETE /api/v1/sandbox/{sandbox}
sandbox          DELETE /api/v1/sandbox
sandbox          POST   /api/v1/sandbox/status:batchGet
sandbox          POST   /api/v1/sandbox/{sandbox}/auth
sandbox          GET    /api/v1/sandbox/{sandbox}/error-context
sandbox          GET    /api/v1/sandbox/{sandbox}/logs
sandbox gateway  POST   {gateway}/command_session.CommandSession/Start
sandbox gateway  POST   {gateway}/exec
sandbox gateway  POST   {gateway}/upload
sandbox gateway  GET    {gateway}/download
sandbox gateway  GET    {gateway}/read-file
billing          GET    /api/v1/billing/wallet
billing          GET    /api/v1/billing/runs/{run}/usage
"""

PENDING: frozenset[str] = frozenset()
"""Rows that nothing answers yet. One that is answered must leave this list."""

SUCCESS = frozenset(range(200, 300))
OTHERWISE = {
    "POST /api/v1/training/runs/prepare": frozenset({404, 405}),
    "GET /api/v1/environmentshub/{owner}/{name}/@{version}/source": SUCCESS | {302},
}
"""Rows that are answered rightly in another way: where the server has no such thing the client goes on without it, and a
download may be sent on to a signed address."""


@dataclass(frozen=True)
class Row:
    area: str
    method: str
    path: str

    @property
    def is_deferred(self) -> bool:
        return self.area in DEFERRED

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """`{name}` is one segment of an address, `{name*}` one or more."""
        parts = re.split(r"(\{\w+\*?\})", self.path.rstrip("/"))
        spelled = (("[^?]+" if part.endswith("*}") else "[^/?]+") if part.startswith("{") else re.escape(part) for part in parts)
        return re.compile("".join(spelled) + r"/?(\?.*)?")

    def is_shown_by(self, method: str, address: str, status: int) -> bool:
        wanted = OTHERWISE.get(str(self), SUCCESS)
        return method == self.method and status in wanted and self._pattern.fullmatch(address) is not None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def rows() -> list[Row]:
    return [Row(line[:16].strip(), *line[16:].split()) for line in TABLE.strip().splitlines()]
