"""One team's journey: account, wallet, environment, evaluation, run, deployment, call, bill."""

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

from openai import OpenAI
from plan import Plan, TeamPlan
from prime import DemoError, Prime

EXAMPLES = Path(__file__).resolve().parents[1]
TOP_UP_USD = 5
FAILED_SHARE_MAX = 0.1
PAGE = 1000


@dataclass
class Team:
    """`plan.environment` is what this team pays its model for."""

    plan: TeamPlan
    demo: Plan
    prime: Prime
    owner: str = ""
    run_id: str = ""
    adapter: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    _rollouts: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def environment(self) -> str:
        return f"{self.owner}/{self.plan.package}"

    @property
    def served_name(self) -> str:
        return f"{self.adapter['baseModel']}:{self.adapter['id']}"

    def settle(self) -> "Team":
        self.arrive()
        self.push()
        return self

    def arrive(self) -> None:
        """Sign up, or come back with the key that the home folder holds."""
        key_file = self.prime.home / "demo-key"
        if not key_file.exists():
            email = f"{self.name}-{secrets.token_hex(3)}@demo.example"
            made = self.prime("sign-up", "--email", email, "--name", f"Team {self.name}")
            key_file.touch(mode=0o600)
            key_file.write_text(made["api_key"])
        self.prime.key = key_file.read_text()
        self.owner = self.prime("whoami")["data"]["slug"]
        if self.prime("wallet")["balance_usd"] < 1:
            self.prime("wallet", "top-up", str(TOP_UP_USD))

    def push(self) -> None:
        """Pushing what the hub has already is not an error here: a second demo reuses the release."""
        known = self.prime.get("/environmentshub/", owner=self.owner, limit=100)["data"]
        if not any(row["name"] == self.plan.package and row["badge"] == "GREEN" for row in known):
            # A copy: pushing leaves a wheel and a note of where it went in the folder, and the checkout stays clean.
            source = self.prime.home / self.plan.environment
            ignored = shutil.ignore_patterns(".prime", "dist")
            shutil.copytree(EXAMPLES / "environments" / source.name, source, dirs_exist_ok=True, ignore=ignored)
            self.prime("push", str(source), "--visibility", "PUBLIC")

    def start_eval(self, model: str, environment: str) -> Popen[str]:
        counts = ["-n", str(self.demo.rollouts), "-r", "1", "--max-tokens", str(self.demo.reply_tokens)]
        return self.prime.start("eval", "run", environment, "-m", model, *counts, "--follow")

    def finish_eval(self, process: Popen[str]) -> float:
        """The mean reward. An evaluation of which many rollouts failed says nothing of the model."""
        result = self.prime.finish(process)
        mean, failed = result["avg_score"], result["metrics"]["failed"]
        if mean is None or failed > FAILED_SHARE_MAX * self.demo.rollouts:
            raise DemoError(f"team {self.name}: {failed:.0f} of {self.demo.rollouts} rollouts of an evaluation failed: {result}")
        return float(mean)

    def train(self, seed: int) -> None:
        config = EXAMPLES / "configs" / self.plan.config
        overrides = ["--env.0.id", self.environment, "--max_steps", str(self.demo.steps), "--seed", str(seed)]
        reply = self.prime("train", str(config), *overrides, "-y")
        self.run_id = reply.get("run", reply)["id"]

    def metrics(self, *, after: int = 0) -> list[dict[str, Any]]:
        """One row per committed step later than `after`."""
        rows: list[dict[str, Any]] = self.prime.get(f"/rft/runs/{self.run_id}/metrics", min_step=after + 1)["metrics"]
        return rows

    def rollouts(self, run_id: str) -> list[dict[str, Any]]:
        """Every rollout record of a run that has ended, read once."""
        if run_id not in self._rollouts:
            path = f"/rft/runs/{run_id}"
            steps = self.prime.get(f"{path}/progress")["stepsWithSamples"]
            self._rollouts[run_id] = [row for step in steps for row in self.samples(f"{path}/samples", step=step)]
        return self._rollouts[run_id]

    def samples(self, path: str, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page = 1
        while len(rows := self.prime.get(path, page=page, limit=PAGE, **query)["samples"]) == PAGE:
            found += rows
            page += 1
        return found + rows

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.prime.get(f"/rft/runs/{self.run_id}")["run"]
        return found

    def deploy(self) -> None:
        """Deploy the run's last version and wait until an engine serves it."""
        versions = self.prime("deployments", "list", "--run", self.run_id)["adapters"]
        newest = max(versions, key=lambda row: row["step"])
        self.adapter = self.prime("deployments", "create", newest["id"])["adapter"]

    def ask(self, model: str) -> str:
        reply = self._openai().chat.completions.create(
            model=model, messages=self._messages(), max_tokens=self.demo.reply_tokens, temperature=0
        )
        return reply.choices[0].message.content or ""

    def call_deployment(self) -> None:
        """The official SDK, plain and streamed. Both answers must name the digest that was deployed."""
        client = self._openai()
        settings: dict[str, Any] = {"model": self.served_name, "messages": self._messages(), "temperature": 0}
        settings["max_tokens"] = self.demo.reply_tokens
        plain = client.chat.completions.create(**settings)
        text = plain.choices[0].message.content or ""
        streamed, digest = "", ""
        for chunk in client.chat.completions.create(**settings, stream=True):
            streamed += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            digest = chunk.system_fingerprint or digest
        self.figures |= {
            "openai_call_ok": bool(text) and text == streamed and digest == plain.system_fingerprint,
            "response_digest": plain.system_fingerprint,
            "deployed_digest": self.adapter["deployedDigest"],
            "answer_before": self.ask(self.adapter["baseModel"]),
            "answer_after": text,
        }

    def _messages(self) -> list[Any]:
        system = [{"role": "system", "content": self.demo.instruction}] if self.demo.instruction else []
        return [*system, {"role": "user", "content": self.demo.question}]

    def _openai(self) -> OpenAI:
        return OpenAI(base_url=f"{self.prime.origin}/api/inference/v1", api_key=self.prime.key, max_retries=0, timeout=60)
