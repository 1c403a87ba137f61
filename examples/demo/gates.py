"""What must hold for the demo to have shown what it claims. Each gate names itself when it fails."""

from typing import Any

from plan import Gates


def broken_gates(report: dict[str, Any], gates: Gates) -> list[str]:
    """Every gate that does not hold, as a sentence; empty when all do."""
    found = [text for team, figures in report["teams"].items() for text in _team_gates(team, figures, gates)]
    packs = report["packs_with_all_runs"]
    shared = {
        f"{packs} packs carried all runs, {gates.packs_shared_min} or more must": packs >= gates.packs_shared_min,
        f"more than one trainer worked: {report['trainer_pids']}": len(report["trainer_pids"]) == 1,
        "the base weights changed": report["base_weights_sha256"]["before"] == report["base_weights_sha256"]["after"],
        "no adapter was swapped while requests were in flight": report["requests_in_flight_at_swap"]["max"] > 0,
        f"the ledger sums to {report['ledger_sum_microusd']}, not 0": report["ledger_sum_microusd"] == 0,
        "the ledger has no entries": report["ledger_entries_count"] > 0,
        "the bill recomputed from the records differs from the ledger": report["bill_recomputed_equal"],
    }
    return found + [text for text, holds in shared.items() if not holds]


def _team_gates(team: str, figures: dict[str, Any], gates: Gates) -> list[str]:
    checks = {
        "the deployed and the answering digest differ": figures["response_digest"] == figures["deployed_digest"],
        "the OpenAI SDK's plain and streamed answers differ": figures["openai_call_ok"],
    }
    checks |= {f"{name} {figures[name]:.2f} > {limit}": figures[name] <= limit for name, limit in gates.at_most.items()}
    checks |= {f"{name} {figures[name]:.2f} < {limit}": figures[name] >= limit for name, limit in gates.at_least.items()}
    return [f"team {team}: {text}" for text, holds in checks.items() if not holds]
