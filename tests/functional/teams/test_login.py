"""`prime login`: the terminal asks, a person approves, the key arrives once and encrypted."""

import base64
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.factories.teams import ApiClient, client_for, make_member

pytestmark = pytest.mark.django_db
GENERATE, STATUS, APPROVE = (f"/api/v1/auth_challenge/{step}" for step in ("generate", "status", "approve"))
PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = PRIVATE_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def begin() -> tuple[str, ApiClient]:
    answer = client_for().post(GENERATE, {"encryptionPublicKey": PEM, "limits": {"maxConcurrentSandboxes": 2}})
    assert answer.status_code == 200
    terminal = ApiClient()
    terminal.defaults["HTTP_AUTHORIZATION"] = f"Bearer {answer.json()['status_auth_token']}"
    return answer.json()["challenge"], terminal


def decrypt(result: str) -> str:
    sha256 = hashes.SHA256()
    oaep = padding.OAEP(mgf=padding.MGF1(algorithm=sha256), algorithm=sha256, label=None)
    return PRIVATE_KEY.decrypt(base64.b64decode(result), oaep).decode()


def test_the_terminal_gets_a_working_key_with_its_limits_once():
    member = make_member()
    code, terminal = begin()
    assert terminal.get(STATUS, {"challenge": code}).json() == {"result": None}
    assert client_for(member).post(APPROVE, {"challenge": code}).status_code == 204
    key = decrypt(terminal.get(STATUS, {"challenge": code}).json()["result"])
    me = ApiClient().get("/api/v1/user/whoami", headers={"Authorization": f"Bearer {key}"}).json()["data"]
    assert me["id"] == member.actor.user_id and me["key_limits"] == {"maxConcurrentSandboxes": 2}
    assert terminal.get(STATUS, {"challenge": code}).status_code == 404


def test_another_terminal_gets_nothing():
    code, _ = begin()
    _, other = begin()
    client_for(make_member()).post(APPROVE, {"challenge": code})
    assert other.get(STATUS, {"challenge": code}).status_code == 401
    assert client_for().get(STATUS, {"challenge": code}).status_code == 401


def test_a_challenge_is_approved_once_and_ends(shift_clock):
    member = make_member()
    code, terminal = begin()
    assert client_for(member).post(APPROVE, {"challenge": code}).status_code == 204
    assert client_for(member).post(APPROVE, {"challenge": code}).status_code == 409
    late, _ = begin()
    shift_clock(timedelta(minutes=16))
    assert client_for(member).post(APPROVE, {"challenge": late}).status_code == 404
    assert terminal.get(STATUS, {"challenge": code}).status_code == 404


@pytest.mark.parametrize("pem", ["", "no key", PEM.replace("A", "B", 40)])
def test_only_a_real_rsa_key_is_taken(pem: str):
    answer = client_for().post(GENERATE, {"encryptionPublicKey": pem})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "encryptionPublicKey"]


def test_nobody_approves_nothing():
    code, _ = begin()
    assert client_for().post(APPROVE, {"challenge": code}).status_code == 401
