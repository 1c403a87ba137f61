"""What is typed, by which client, and what must hold: data for the contract's test. `{name}` stands for something known by then.

The commands are those of the public client's own documentation. Lanes do not depend on one another; steps of a lane do.
"""

from dataclasses import dataclass, field

LAB, LORA, OLD = "prime-0.18.0", "prime-0.12.0", "prime-0.7.7"
EVALS, TRAINER = "prime-evals-0.2.4", "prime-runs-0.1.4"
OURS = "ours"
"""The repository's own command, for what no public client does: waiting for a run, making a team."""


@dataclass(frozen=True)
class Step:
    """`holds` are regular expressions that the output has; `saves` names what a group of one of them finds."""

    client: str
    command: str
    holds: tuple[str, ...] = ()
    saves: dict[str, str] = field(default_factory=dict)
    exits: tuple[int, ...] = (0,)


ID = r"\bc[a-z0-9]{24}\b"
NO_SUCH_THING = r"404|There is nothing at this address|[Nn]ot found"

LOGIN = Step(LAB, "prime login --headless")
"""Typed first, by somebody without a key; the test approves its code on the page."""

ACCOUNT = [
    Step(LAB, "prime whoami", ("{email}",)),
    Step(LAB, "python {scripts}/rename_owner.py {renamed}", ("{renamed}",)),
    Step(OURS, "prime teams create Shared --slug {team} -o json", saves={"team_id": rf'"id": "({ID})"'}),
    Step(LAB, "prime teams list", ("{team}",)),
    Step(LAB, "prime switch {team}", ("(?i)shared|{team}",)),
    Step(LAB, "prime teams members", ("{email}",)),
    Step(LAB, "prime switch personal", ("(?i)personal",)),
    Step(LAB, "prime wallet", (r"5\.00",)),
]

HUB = [
    Step(OLD, "prime env init demo-env --path ."),
    Step(OURS, "cat demo_env/pyproject.toml", ("demo-env",)),
    Step(LAB, "prime env push --path {digits} --visibility PUBLIC", ("{renamed}/digit-sum",)),
    Step(OLD, "prime env push --path {open_pack} --visibility PUBLIC", ("{renamed}/open-pack",)),
    Step(LORA, "prime env push --path {shut_pack} --visibility PRIVATE", ("{renamed}/shut-pack",)),
    Step(
        OURS,
        "prime info {renamed}/shut-pack -o json",
        saves={"shut_id": rf'"id": "({ID})"', "shut_hash": r'"content_hash": "(\w+)"'},
    ),
    Step(OURS, "prime info {renamed}/open-pack -o json", saves={"open_id": rf'"id": "({ID})"'}),
    Step(LAB, "prime env list --mine", ("digit-sum", "open-pack", "shut-pack")),
    Step(LAB, "prime env info {renamed}/open-pack", ("open-pack",)),
    Step(LAB, "prime env status {renamed}/open-pack", (r"0\.1\.0",)),
    Step(LAB, "prime env inspect {renamed}/open-pack", (r"pyproject\.toml",)),
    Step(LAB, "prime env version list {renamed}/open-pack", (r"0\.1\.0",)),
    Step(LAB, "prime env pull {renamed}/shut-pack --target pulled", ("(?i)pulled|success|extract",)),
    Step(LAB, "python {scripts}/is_ahead.py shut-pack pulled", ("{renamed}/shut-pack: in step with the hub",)),
    Step(LAB, "prime env install {renamed}/open-pack@0.1.0", ("(?i)install",)),
    Step(LAB, "prime env install {renamed}/open-pack --with pip", ("(?i)install",)),
    Step(LAB, "prime env install {renamed}/shut-pack", ("(?i)install",)),
    Step(OURS, "venv/bin/python -c 'import open_pack as a, shut_pack as b; print(a.NAME, b.NAME)'", ("open_pack shut_pack",)),
    Step(LAB, "prime env secret create {renamed}/open-pack -n JUDGE_KEY -v s3cret-value-1 -o json", saves={"secret": f"({ID})"}),
    Step(LAB, "prime env secret list {renamed}/open-pack", ("JUDGE_KEY",)),
    Step(LAB, "prime env secret update {renamed}/open-pack --id {secret} -v s3cret-value-2", ("(?i)updated",)),
    Step(LAB, "prime env secret delete {renamed}/open-pack --id {secret} -y", ("(?i)deleted",)),
    Step(LAB, "prime secret create -n SHARED_KEY -v s3cret-value-3 -o json", saves={"shared": f"({ID})"}),
    Step(LAB, "prime secret list", ("SHARED_KEY",)),
    Step(LAB, "prime secret get {shared}", ("SHARED_KEY",)),
    Step(LAB, "prime secret update {shared} -v s3cret-value-4", ("(?i)updated",)),
    Step(LAB, "prime env secret link {shared} {renamed}/open-pack", ("(?i)linked",)),
    Step(LAB, "prime env secret unlink {shared} {renamed}/open-pack -y", ("(?i)unlinked",)),
    Step(LAB, "prime secret delete {shared} -y", ("(?i)deleted",)),
    Step(LAB, "prime env var create {renamed}/open-pack -n LEVEL -v 3 -o json", saves={"variable": f"({ID})"}),
    Step(LAB, "prime env var list {renamed}/open-pack", ("LEVEL",)),
    Step(LAB, "prime env var update {variable} {renamed}/open-pack -v 4", ("(?i)updated",)),
    Step(LAB, "prime env var delete {variable} {renamed}/open-pack -y", ("(?i)deleted",)),
    Step(EVALS, "python {scripts}/evaluate.py {open_id} {renamed}/open-pack", ("samples: 2", "renamed", "COMPLETED")),
    Step(LAB, "prime eval push {results} --env {renamed}/open-pack -o json", saves={"pushed": f"({ID})"}),
    Step(LAB, "prime eval list", ("open-pack",)),
    Step(LAB, "prime eval get {pushed}", ("COMPLETED",)),
    Step(LAB, "prime eval samples {pushed}", ("completion",)),
    Step(LAB, "prime env version delete {renamed}/shut-pack {shut_hash} --force", ("(?i)deleted",)),
    Step(LAB, "prime env delete {shut_id} --force", ("(?i)deleted",)),
]

TRAINING = [
    Step(LORA, "prime train models", ("tiny",)),
    Step(LAB, "prime train models", ("tiny",)),
    Step(OURS, "prime init sums --path sums"),
    Step(OURS, "prime push sums -o json", ("GREEN",)),
    Step(LORA, "prime train {lora_toml} -y -o json", saves={"run": rf'"id": "({ID})"'}),
    Step(LAB, "prime eval run {renamed}/sums --hosted -m tiny -n 2 -r 1", saves={"hosted": f"({ID})"}),
    Step(LAB, "prime train {whole_toml} -y -o json", saves={"second": rf'"runId": "({ID})"'}),
    Step(LAB, "prime train list", ("{run}", "{second}")),
    Step(LAB, "prime train stop {second} --force", ("(?i)stop",)),
    Step(LAB, "prime train restart {second} --force", ("(?i)restart",)),
    Step(LAB, "prime train stop {second} --force", ("(?i)stop",)),
    Step(LAB, "prime train delete {second} --force", ("(?i)delete",)),
    Step(OURS, "prime train logs {run} -f", ("COMPLETED",)),
    Step(LAB, "prime train get {run} -o json", ("COMPLETED",)),
    Step(LAB, "prime train logs {run}", ("(?i)step 2",)),
    Step(LAB, "prime train logs {run} --env sums/0"),
    Step(LAB, "prime train components {run}", ("sums",)),
    Step(LAB, "prime train metrics {run}", ('"reward"', '"step": 2')),
    Step(LAB, "prime train rollouts {run} --step 1", ('"reward"',)),
    Step(LAB, "prime train progress {run}", ("(?i)latest",)),
    Step(LAB, "prime train distributions {run} --type reward", ("bins",)),
    Step(LAB, "prime train checkpoints {run} -o json", saves={"checkpoint": rf'"id": "({ID})"'}),
    Step(LAB, "prime train usage {run}", (r"\d",)),
    Step(LORA, "prime deployments list -o json", saves={"adapter": rf'"id": "({ID})"'}),
    Step(LORA, "prime deployments create {adapter} -y", ("(?i)deploy",)),
    Step(LORA, "prime deployments create --checkpoint-id {checkpoint} -y", ("(?i)deploy",)),
    Step(OURS, "prime deploy {adapter}", ("DEPLOYED",)),
    Step(LAB, "prime inference models", ("tiny",)),
    Step(LAB, "prime inference chat tiny:{adapter} '3+4?'", ()),
    Step(LAB, "prime inference chat tiny '3+4?' --stream", ()),
    Step(OLD, "prime env init demo-env --path ."),
    Step(OLD, "prime eval run demo-env -m tiny -n 1 -r 1 --skip-upload", exits=(0, 1)),
    Step(LORA, "prime deployments delete {adapter}", ("(?i)unload|delet",)),
    Step(OLD, "prime rl run {lora_toml} -y -o json", saves={"third": rf'"id": "({ID})"'}),
    Step(OURS, "prime train stop {third} -y", ()),
    Step(LAB, "prime eval logs {hosted}", ()),
    Step(LAB, "prime eval run {renamed}/sums --hosted -m tiny -n 64 -r 8", saves={"stopped": f"({ID})"}),
    Step(LAB, "prime eval stop {stopped}", ("(?i)cancel|stop",)),
    Step(TRAINER, "python {scripts}/train_elsewhere.py {team_id}", ("finished",)),
    Step(
        OURS,
        "env PRIME_TEAM_ID={team_id} prime train list -o json",
        (r'"kind": "EXTERNAL"', '"status": "COMPLETED"', '"status": "FAILED"'),
    ),
]

ABSENT = [
    Step(LAB, "prime tunnel list", ("No active tunnels",)),
    Step(LAB, "prime images list", (NO_SUCH_THING,), exits=(1,)),
    Step(LAB, "prime traces list", (NO_SUCH_THING,), exits=(1,)),
    Step(LAB, "prime pods list", (NO_SUCH_THING,), exits=(1,)),
]
"""Areas that a Lab need not have: the client says so in its own words, and nothing breaks."""

LANES = {"hub": HUB + ABSENT, "training": TRAINING}
