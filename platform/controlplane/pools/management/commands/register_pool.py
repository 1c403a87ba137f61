"""`manage.py register_pool`: make a pool known, or move it. Safe to repeat."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.core.tenancy import acting_as_system
from controlplane.pools.models import Engine
from controlplane.pools.services import register_pool
from trainer.contracts.catalogue import load_catalogue


class Command(BaseCommand):
    help = "Register the shared machines of one base model."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True)
        parser.add_argument("--model", required=True, help="id of the base model in the catalogue")
        parser.add_argument("--trainer-url", required=True)
        parser.add_argument("--pool-url", required=True, help="where rollouts go: a router, or the one engine")
        parser.add_argument("--inference-url", action="append", required=True, help="one per engine replica; may be repeated")
        parser.add_argument("--artifact-root", required=True, help="absolute folder that trainer and engines share")
        parser.add_argument("--engine", choices=Engine.values, default=Engine.TORCH, help="what samples tokens")
        parser.add_argument("--rank-max", type=int, help="the highest rank the machines are set to; default: the model's")
        parser.add_argument("--context-tokens", type=int, help="the context the machines are set to; default: the model's")
        parser.add_argument("--target-module", action="append", default=[], help="may be repeated; default: all of the model's")
        parser.add_argument("--run-slots", type=int, default=8)
        parser.add_argument("--eval-slots", type=int, default=4)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["model"] not in load_catalogue():
            raise CommandError(
                f"no base model {options['model']!r} in the catalogue; it has {', '.join(load_catalogue()) or 'none'}"
            )
        with acting_as_system():
            pool = register_pool(
                name=options["name"],
                base_model=options["model"],
                trainer_url=options["trainer_url"].rstrip("/"),
                pool_url=options["pool_url"].rstrip("/"),
                inference_urls=[url.rstrip("/") for url in options["inference_url"]],
                artifact_root=options["artifact_root"],
                engine=options["engine"],
                rank_max=options["rank_max"],
                context_tokens=options["context_tokens"],
                target_modules=options["target_module"],
                run_slots=options["run_slots"],
                eval_slots=options["eval_slots"],
            )
        self.stdout.write(f"pool {pool.name} serves {pool.base_model}")
