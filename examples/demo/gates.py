"""What must hold for the demo to have shown what it claims. Each gate names itself when it fails."""

from typing import Any

BASE_MAX = 0.45
ADAPTER_MIN = 0.80
CROSS_MAX = 0.30
FIRST_MAX = 0.5
LAST_MIN = 0.80
SHARED_PACKS_MIN = 10
VERSIONS_MIN = 20


def broken_gates(report: dict[str, Any]) -> list[str]:
    """Every gate that does not hold, as a sentence; empty when all do."""
    found = [text for team, figures in report["teams"].items() for text in _team_gates(team, figures)]
    shared = {
        f"{report['packs_with_both_runs']} packs carried both runs, {SHARED_PACKS_MIN} or more must": report[
            "packs_with_both_runs"
        ]
        >= SHARED_PACKS_MIN,
        f"more than one trainer worked: {report['trainer_pids']}": len(report["trainer_pids"]) == 1,
        "the base weights changed": report["base_weights_sha256"]["before"] == report["base_weights_sha256"]["after"],
        "no adapter was swapped while requests were in flight": report["requests_in_flight_at_swap"]["max"] > 0,
        f"the ledger sums to {report['ledger_sum_microusd']}, not 0": report["ledger_sum_microusd"] == 0,
        "the ledger has no entries": report["ledger_entries_count"] > 0,
        "the bill recomputed from the records differs from the ledger": report["bill_recomputed_equal"],
    }
    return found + [text for text, holds in shared.items() if not holds]


def _team_gates(team: str, figures: dict[str, Any]) -> list[str]:
    gates = {
        f"base model {figures['base_eval']:.2f} > {BASE_MAX}": figures["base_eval"] <= BASE_MAX,
        f"adapter {figures['adapter_eval']:.2f} < {ADAPTER_MIN}": figures["adapter_eval"] >= ADAPTER_MIN,
        f"adapter on the other reward {figures['cross_eval']:.2f} > {CROSS_MAX}": figures["cross_eval"] <= CROSS_MAX,
        f"first reward {figures['reward_first']:.2f} > {FIRST_MAX}": figures["reward_first"] <= FIRST_MAX,
        f"last reward {figures['reward_last']:.2f} < {LAST_MIN}": figures["reward_last"] >= LAST_MIN,
        "the deployed and the answering digest differ": figures["response_digest"] == figures["deployed_digest"],
        "the OpenAI SDK's plain and streamed answers differ": figures["openai_call_ok"],
        "no rollout was off-policy: nothing was asynchronous": figures["max_staleness"] >= 1,
        f"{figures['versions_served']} versions served, {VERSIONS_MIN} or more must": figures["versions_served"] >= VERSIONS_MIN,
    }
    return [f"team {team}: {text}" for text, holds in gates.items() if not holds]
