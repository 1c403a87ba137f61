"""Requests, error replies and event streams."""

import httpx
import pytest

from primecli.client import ApiFailure, Client, ServerEvent, Unreachable, parse_events
from primecli.config import Config
from primecli.output import ExitCode


def client(handler, home="/nonexistent", **environ: str) -> Client:
    return Client(Config.load(None, {"HOME": str(home), **environ}), httpx.MockTransport(handler))


def answering(status: int, **kwargs):
    return lambda request: httpx.Response(status, **kwargs)


def refusal(response: httpx.Response) -> ApiFailure:
    with pytest.raises(ApiFailure) as refused:
        client(lambda request: response).get("/x")
    return refused.value


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [(400, 1), (401, 5), (402, 4), (403, 5), (404, 3), (409, 1), (422, 1), (500, 1)],
)
def test_a_status_has_an_exit_code(status, exit_code):
    assert refusal(httpx.Response(status, json={"detail": "no"})).exit_code == exit_code


def test_the_servers_text_code_and_hint_are_kept():
    error = refusal(httpx.Response(409, json={"detail": "taken", "code": "already_exists", "hint": "bump"}))
    assert (error.message, error.code, error.hint) == ("taken", "already_exists", "bump")


def test_field_problems_are_named_as_the_sender_wrote_them():
    detail = [{"loc": ["body", "environments", 0, "id"], "msg": "unknown", "type": "x"}, {"loc": ["body"], "msg": "odd"}]
    error = refusal(httpx.Response(422, json={"detail": detail}))
    assert error.fields == (("environments.0.id", "unknown"), ("request", "odd"))


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (httpx.Response(404, json={"error": {"message": "no model x", "code": "model_not_found"}}), "no model x"),
        (httpx.Response(502, text="<html>bad gateway</html>"), "<html>bad gateway</html>"),
        (httpx.Response(503), "HTTP 503"),
        (httpx.Response(500, json=["x"]), "x"),
    ],
)
def test_other_shapes_of_errors_are_told_too(response, message):
    assert message in refusal(response).message


@pytest.mark.parametrize("kwargs", [{"text": "hello"}, {"json": [1]}])
def test_a_success_that_is_no_object_is_an_error(kwargs):
    with pytest.raises(ApiFailure):
        client(answering(200, **kwargs)).get("/x")


def test_an_empty_success_is_an_empty_object():
    assert client(answering(204)).get("/x") == {}


def test_a_dead_server_is_told_with_its_address():
    def refuse(request):
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable) as refused:
        client(refuse, PRIME_API_BASE_URL="http://gone").get("/x")
    assert refused.value.exit_code == ExitCode.ERROR and "http://gone" in refused.value.hint


def test_key_and_team_travel_in_headers():
    seen = []
    speaker = client(lambda request: seen.append(request) or httpx.Response(204), PRIME_API_KEY="k", PRIME_TEAM_ID="c1")
    speaker.get("/x", limit=3, skipped=None)
    assert seen[0].headers["authorization"] == "Bearer k" and seen[0].headers["x-prime-team-id"] == "c1"
    assert seen[0].url.path == "/api/v1/x" and dict(seen[0].url.params) == {"limit": "3"}


def test_the_key_goes_to_our_own_origin_alone():
    seen = []
    speaker = client(lambda request: seen.append(request) or httpx.Response(200, content=b"x"), PRIME_API_KEY="k")
    list(speaker.download("http://127.0.0.1:8000/objects/a"))
    list(speaker.download("http://127.0.0.1.evil.example:8000/objects/a"))
    speaker.upload("http://store/a", iter([b"x"]), 1)
    assert ["authorization" in request.headers for request in seen] == [True, False, False]


def test_events_are_parsed():
    lines = ["retry: 3000", "", ": alive", "", "id: 4", 'data: {"a": 1}', "", "event: end", "data: [DONE]", ""]
    assert list(parse_events(lines)) == [ServerEvent("4", "message", {"a": 1}), ServerEvent("4", "end", "[DONE]")]


def test_following_goes_on_where_it_was_cut_off(monkeypatch):
    """CASES 40(g): no gap, no repeat."""
    monkeypatch.setattr("primecli.client.RECONNECT_PAUSE_S", 0)
    history = [f"id: {seq}\ndata: {seq}\n\n" for seq in range(1, 7)]
    cursors = []

    def serve(request):
        cursor = int(request.headers.get("last-event-id", 0))
        cursors.append(cursor)
        if len(cursors) == 2:
            raise httpx.ReadError("cut")
        part = history[cursor : cursor + 3]
        ending = ["event: end\ndata: {}\n\n"] if cursor + 3 >= len(history) else []
        return httpx.Response(200, content="".join(part + ending).encode())

    seen = [event.data for event in client(serve).follow("/runs/x/events") if event.kind != "end"]
    assert seen == [1, 2, 3, 4, 5, 6]
    assert cursors == [0, 3, 3]


def test_following_gives_up_on_a_server_that_stays_away(monkeypatch):
    monkeypatch.setattr("primecli.client.RECONNECT_PAUSE_S", 0)

    def refuse(request):
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable):
        list(client(refuse).follow("/x"))


def test_following_what_does_not_exist_fails_at_once():
    with pytest.raises(ApiFailure):
        list(client(answering(404, json={"detail": "no"})).follow("/x"))


def test_a_post_whose_reply_was_lost_is_sent_again_with_the_same_key(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    keys: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx.ReadError("the line went dead")
        return httpx.Response(200, json={"run": {}})

    sender = client(handle)
    assert sender.post("/rft/runs", {}) == {"run": {}}
    assert sender.post("/rft/runs", {}) == {"run": {}}
    assert len(keys) == 4 and len(set(keys[:3])) == 1 and keys[3] != keys[0]
