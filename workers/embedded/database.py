"""`python -m workers.embedded.database`: roles, schema, prices and the row of the machine's own pool. Safe to repeat.

Knows the order of three management commands and nothing of what they do.
"""

import argparse
import os

import django
from django.core.management import call_command


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m workers.embedded.database")
    for name in ("--pool", "--model", "--trainer-url", "--inference-url"):
        parser.add_argument(name, required=True)
    parser.add_argument("--engine", default="torch")
    options = parser.parse_args()
    django.setup()
    call_command("bootstrap_database")
    call_command("publish_prices")
    call_command(
        "register_pool",
        name=options.pool,
        model=options.model,
        trainer_url=options.trainer_url,
        pool_url=options.inference_url,
        inference_url=[options.inference_url],
        engine=options.engine,
        artifact_root=os.environ["ROOTSTOCK_ARTIFACT_ROOT"],
    )


if __name__ == "__main__":
    main()
