"""Who is typing: sign up, log in by a challenge that the dashboard approves, log out, and who the server thinks it is.

The key lives in the shared config file. It is printed once, where it is made, and never again.
"""

import base64
import secrets
import time
import webbrowser
from typing import Annotated, Any

import typer

from primecli.client import ApiFailure
from primecli.config import Config
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of

POLL_S = 2.0
CHALLENGE_DEADLINE_S = 600.0
GENERATED_PASSWORD_BYTES = 18
KEY_NAME = "prime sign-up"


def sign_up(
    ctx: typer.Context,
    email: Annotated[str, typer.Option("--email", prompt=True, help="Address that names the account.")],
    password: Annotated[str | None, typer.Option("--password", help="Leave out to have one generated and shown.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="How others see you.")] = None,
    slug: Annotated[str | None, typer.Option("--slug", help="Owner name of your environments.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Where Rootstock is; remembered.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make an account with its personal team, and store its first API key."""
    cli = _at(session_of(ctx, output), base_url)
    chosen = password or secrets.token_urlsafe(GENERATED_PASSWORD_BYTES)
    body = {"email": email, "password": chosen, "key_name": KEY_NAME}
    body |= {key: value for key, value in (("name", name), ("slug", slug)) if value}
    made = cli.client.post("/auth/sign-up", body)
    key = made["api_key"]
    config = _store(cli, key)
    shown = {**made, "password": chosen} if password is None else made
    cli.terminal.facts(
        shown,
        [
            ("account", email),
            ("owner", config.value("user_slug")),
            ("password", chosen if password is None else None),
            ("API key", key),
            ("stored in", config.path),
        ],
    )
    cli.show_page("/")


def login(
    ctx: typer.Context,
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser.")] = False,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Where Rootstock is; remembered.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Log in: approve a code on the dashboard, which then sends a key that only this command can read."""
    cli = _at(session_of(ctx, output), base_url)
    challenge = _Challenge()
    asked = cli.client.post("/auth_challenge/generate", {"encryptionPublicKey": challenge.public_pem})
    url = cli.page(f"/dashboard/tokens/challenge?code={asked['challenge']}")
    cli.terminal.note(f"Open this address and approve the code {asked['challenge']}:")
    cli.terminal.link(url)
    if not headless:
        webbrowser.open(url)
    config = _store(cli, challenge.decrypt(_await_key(cli, asked)))
    cli.terminal.data({"user_id": config.value("user_id"), "user_name": config.value("user_name")})
    cli.terminal.success(f"logged in as {config.value('user_name')}; the key is in {config.path}")


def logout(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """Forget the stored key. It stays valid until it is revoked."""
    cli = session_of(ctx, output)
    config = cli.config.save(
        api_key=None, user_id=None, user_name=None, user_slug=None, team_id=None, team_name=None, team_role=None
    )
    cli.terminal.data({"logged_out": True})
    cli.terminal.success(f"forgot the key in {config.path}")


def whoami(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show the account and the team that commands act for."""
    cli = session_of(ctx, output)
    reply = cli.client.get("/user/whoami", teamId=cli.config.team_id or None)
    user = reply["data"]
    cli.terminal.facts(
        reply,
        [
            ("account", user.get("email")),
            ("name", user.get("name")),
            ("owner", user.get("slug")),
            ("user id", user["id"]),
            ("team", cli.config.value("team_name") or cli.config.team_id or "personal"),
            ("server", cli.config.base_url),
        ],
    )


def _at(cli: Session, base_url: str | None) -> Session:
    """The session, pointed at another server from now on when one is named."""
    if base_url is None:
        return cli
    return cli.with_config(cli.config.save(base_url=base_url.rstrip("/").removesuffix("/api/v1")))


def _store(cli: Session, key: str) -> Config:
    """Keep the key and who it belongs to. The team of an earlier login does not carry over."""
    config = cli.config.save(api_key=key, team_id=None, team_name=None, team_role=None)
    user = cli.with_config(config).client.acting_with(key).get("/user/whoami")["data"]
    return config.save(user_id=user["id"], user_name=user.get("name"), user_slug=user.get("slug"))


def _await_key(cli: Session, asked: dict[str, Any]) -> str:
    """Poll until the dashboard has approved the code. The poll has a credential of its own."""
    waiting = cli.client.acting_with(asked["status_auth_token"])
    deadline = time.monotonic() + CHALLENGE_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            result = waiting.get("/auth_challenge/status", challenge=asked["challenge"]).get("result")
        except ApiFailure as error:
            if error.status == 404:
                break
            raise
        if result:
            return str(result)
        time.sleep(POLL_S)
    raise CliError("the code expired before it was approved", ExitCode.AUTH, hint="run `prime login` again")


class _Challenge:
    """An RSA key pair for one login: the server encrypts the new API key to it (OAEP, SHA-256)."""

    def __init__(self) -> None:
        # Heavy and needed by `login` alone.
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        self._private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public_pem = (
            self._private.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )

    def decrypt(self, sealed: str) -> str:
        # As above.
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        scheme = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
        return self._private.decrypt(base64.b64decode(sealed), scheme).decode()
