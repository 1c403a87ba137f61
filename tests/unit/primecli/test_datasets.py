"""`prime datasets push` looks at a file before it sends anything."""

import pytest

from tests.data.datasets.golden import BAD_FILES, GOLDEN


@pytest.mark.parametrize(("name", "line", "reason"), BAD_FILES)
def test_a_bad_file_is_refused_by_line_and_nothing_is_sent(server, name, line, reason):
    """Case 9, on the author's own machine."""
    done = server.run("datasets", "push", str(GOLDEN / f"{name}.jsonl"))
    said = " ".join(done.output.split())
    assert done.exit_code == 1 and f"line {line}: " in said and reason in said
    assert server.requests == []


def test_a_good_file_is_announced(server):
    server.run("datasets", "push", str(GOLDEN / "good.jsonl"))
    assert [(request.method, request.url.path) for request in server.requests] == [("POST", "/api/v1/datasets")]
