"""Read models of secrets and variables: what a sandbox gets. Writes nothing."""

import base64

from controlplane.core.sealing import SealBroken, unseal_text
from controlplane.secrets.errors import SealedElsewhere
from controlplane.secrets.models import Named, Secret, Setting
from trainer.contracts.internal import SandboxValues

PLACEHOLDER = "not-set-in-checks"


def values_of(team_id: str, environment_id: str) -> SandboxValues:
    """What one team has set for one environment. The environment's own wins over a linked secret of that name."""
    own = list(Setting.objects.filter(team_id=team_id, environment_id=environment_id))
    taken = [row.name for row in own]
    linked = list(Secret.objects.filter(team_id=team_id, links__environment_id=environment_id).exclude(name__in=taken))
    secrets = [*(row for row in own if row.is_secret), *(row for row in linked if not row.is_file)]
    return SandboxValues(
        variables={row.name: _opened(row) for row in own if not row.is_secret},
        secrets={row.name: _opened(row) for row in secrets},
        files={row.name: _opened(row) for row in linked if row.is_file},
    )


def team_secret(team_id: str, name: str) -> str | None:
    """A secret of the team by its name, linked or not: for work of ours that uses it outside every sandbox."""
    found = Secret.objects.filter(team_id=team_id, name=name, is_file=False).first()
    return None if found is None else _opened(found)


def placeholders(values: SandboxValues) -> SandboxValues:
    """The same names without a secret behind them: anybody may read the log of a public release's check."""
    names = dict.fromkeys(values.secrets, PLACEHOLDER)
    content = base64.b64encode(PLACEHOLDER.encode()).decode()
    return SandboxValues(variables=values.variables | names, files=dict.fromkeys(values.files, content))


def _opened(row: Named) -> str:
    try:
        return unseal_text(row.sealed_value)
    except SealBroken:
        raise SealedElsewhere(row.name) from None
