"""Webhooks of a team, and a receiver that keeps what it gets and answers as it is told."""

import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from controlplane.core.tenancy import acting_for
from controlplane.webhooks import services
from controlplane.webhooks.models import Webhook
from controlplane.webhooks.schemas import WebhookIn
from tests.factories.teams import Member

URL = "https://hooks.example.com/rootstock"


def make_webhook(member: Member, url: str = URL, *events: str) -> tuple[Webhook, str]:
    """(webhook, secret)."""
    with acting_for(member.team_id):
        body = WebhookIn.model_validate({"url": url, "event_types": list(events)})
        return services.create_webhook(member.actor, body, may_be_private=True)


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Receiver:
    """`status` and `answer` are what it says next; with `holds` set it says nothing until that is set."""

    port: int = 0
    status: int = 204
    answer: bytes = b""
    location: str = ""
    holds: threading.Event | None = None
    requests: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?team=7"


@contextmanager
def receiver(secure: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """On this machine, which only an installation for development may tell. With `secure` it speaks TLS."""
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"])).decode()
            told.requests.append(Received(self.path, {name.lower(): value for name, value in self.headers.items()}, content))
            if told.holds is not None:
                told.holds.wait()
            self.send_response(told.status)
            self.send_header("content-length", str(len(told.answer)))
            if told.location:
                self.send_header("location", told.location)
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    if secure is not None:
        server.socket = secure.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        if told.holds is not None:
            told.holds.set()
        server.shutdown()
        thread.join()
        server.server_close()


def certified(host: str, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's side for that name, and the file with the certificate that vouches for it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form, sealing = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, sealing))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    return context, file
