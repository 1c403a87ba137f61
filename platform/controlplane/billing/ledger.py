"""Double entry. The only module that writes transfers and entries; knows accounts and balances, refuses to know what for.

Locks are taken in one order everywhere: meter events by id, charges by price, accounts by kind, hold. The accounts come late and
are held for a short time, because every payment of a team meets there.
"""

from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from controlplane.billing.models import Account, AccountKind, Charge, LedgerEntry, Transfer, TransferKind
from trainer.contracts.base import new_id


class Entry(NamedTuple):
    account: AccountKind
    amount_microusd: int
    charge_id: str | None = None


@dataclass(frozen=True)
class Accounts:
    """A team's accounts, locked until the transaction ends."""

    team_id: str
    by_kind: dict[str, Account]

    def balance_microusd(self, kind: AccountKind) -> int:
        return self.by_kind[kind].balance_microusd


def open_accounts(team_id: str) -> None:
    """Create what is missing of the team's four accounts. Repeatable."""
    kinds = [kind.value for kind in AccountKind]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO billing_account (id, team_id, kind, balance_microusd)
            SELECT fresh.id, %s, fresh.kind, 0 FROM unnest(%s::text[], %s::text[]) AS fresh (id, kind)
            ON CONFLICT (team_id, kind) DO NOTHING
            """,
            [team_id, [new_id() for _ in kinds], kinds],
        )


def lock_accounts(team_id: str) -> Accounts:
    """The team's accounts under row locks, created where missing. Must run inside a transaction."""
    locked = _locked(team_id)
    if len(locked) < len(AccountKind):
        open_accounts(team_id)
        locked = _locked(team_id)
    return Accounts(team_id, locked)


def post_transfer(accounts: Accounts, *, kind: TransferKind, key: str, entries: list[Entry]) -> Transfer:
    """Post one balanced transfer. `key` names the intent; a second transfer of that name is an IntegrityError.

    The database moves the balances, and refuses at commit what does not sum to zero.
    """
    if sum(entry.amount_microusd for entry in entries) != 0:
        raise ValueError(f"transfer {key} does not balance: {entries}")
    transfer = Transfer.objects.create(team_id=accounts.team_id, kind=kind, key=key)
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            team_id=accounts.team_id,
            transfer=transfer,
            account=accounts.by_kind[entry.account],
            charge_id=entry.charge_id,
            amount_microusd=entry.amount_microusd,
        )
        for entry in entries
        if entry.amount_microusd
    )
    return transfer


def _locked(team_id: str) -> dict[str, Account]:
    return {account.kind: account for account in Account.objects.select_for_update().filter(team_id=team_id).order_by("kind")}


def charge_entries(charge: Charge, *, due_microusd: int, from_held_microusd: int) -> list[Entry]:
    """Entries that move `due_microusd` to revenue, as far as possible out of what is held for the subject."""
    held = min(due_microusd, from_held_microusd)
    return [
        Entry(AccountKind.HELD, -held, charge.pk),
        Entry(AccountKind.WALLET, held - due_microusd, charge.pk),
        Entry(AccountKind.REVENUE, due_microusd, charge.pk),
    ]
