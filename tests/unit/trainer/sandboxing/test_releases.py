"""Naming and identity of releases on a host; building them is in tests/functional."""

from pathlib import Path

import pytest

from trainer.contracts.rollouts import ReleaseSpec
from trainer.sandboxing import releases
from trainer.sandboxing.base_venv import BaseVenv

BASE = BaseVenv(Path("/runner/base"), "digest", (3, 11, 2), Path("/usr"))
SPEC = ReleaseSpec(
    release_id="c" + "a" * 24,
    environment="ann/tasks",
    version="1.0",
    module="tasks",
    wheel_url="http://hub/tasks.whl",
    wheel_filename="tasks-1.0-py3-none-any.whl",
    wheel_sha256="b" * 64,
)


@pytest.mark.parametrize("release_id", ["../up", "", ".hidden", "a/b", "x" * 65])
def test_a_release_id_that_is_no_folder_name_is_refused(release_id):
    with pytest.raises(ValueError, match="cannot name a folder"):
        releases._folder_name(release_id)


@pytest.mark.parametrize("change", [{"wheel_sha256": "c" * 64}, {"module": "other"}, {"requirements_lock": "x"}])
def test_other_content_is_another_digest(change):
    assert releases._digest(SPEC, BASE) != releases._digest(SPEC.model_copy(update=change), BASE)


def test_another_base_is_another_digest():
    moved = BaseVenv(Path("/elsewhere/base"), "digest", (3, 11, 2), Path("/usr"))
    assert releases._digest(SPEC, BASE) != releases._digest(SPEC, moved)


def test_blocks_that_the_base_holds_are_left_out_of_a_lock():
    lock = "mpmath==1.3.0 \\\n    --hash=sha256:aa\nrapidfuzz==3.14.1 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    assert releases.without_base(lock, ["mpmath==1.3.0"]) == "rapidfuzz==3.14.1 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc"
    assert releases.without_base(lock, ["mpmath==1.2.0"]).startswith("mpmath")


def test_an_interpreter_outside_usr_is_bound_too():
    outside = BaseVenv(Path("/runner/base"), "digest", (3, 11, 7), Path("/opt/python"))
    assert [mount.target for mount in BASE.mounts] == ["/runner/base"]
    assert [mount.target for mount in outside.mounts] == ["/runner/base", "/opt/python"]
