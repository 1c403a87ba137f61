"""`prime init`: a package from a template or a dataset, each line of which is told."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from primecli import dataset_rows
from primecli.dataset_rows import read_tasks
from primecli.output import CliError
from primecli.packaging import read_project
from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import translate

ROWS = [{"question": f"{number}+1?", "answer": f"so it is #### {number + 1}"} for number in range(3)]


def lines(*rows: object) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def saved(folder: Path, rows: list[dict]) -> Path:
    """As `Dataset.save_to_disk` leaves it."""
    table = pyarrow.Table.from_pylist(rows)
    folder.mkdir(parents=True)
    with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as sink:
        sink.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    return folder


@pytest.fixture
def dataset(tmp_path, request) -> Path:
    if request.param == "jsonl":
        path = tmp_path / "rows.jsonl"
        path.write_text(lines(*ROWS))
    elif request.param == "parquet":
        path = tmp_path / "rows.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif request.param == "saved":
        path = saved(tmp_path / "saved", ROWS)
    else:
        path = tmp_path / "splits"
        saved(path / "train", ROWS)
        (path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return path


@pytest.mark.parametrize("dataset", ["jsonl", "parquet", "saved", "splits"], indirect=True)
def test_every_kind_of_dataset_gives_the_same_tasks(dataset):
    report = read_tasks(dataset, split="train")
    assert report.tasks == [{"prompt": f"{number}+1?", "answer": str(number + 1)} for number in range(3)]
    assert (report.columns.prompt, report.columns.answer, report.problems) == ("question", "answer", [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("not json", "not JSON"),
        ("[1]", "not a JSON object"),
        ({"question": "", "answer": "1"}, "no text in column question"),
        ({"question": "x"}, "no text in column answer"),
        ({"question": 7, "answer": "1"}, "no text in column question"),
        ({"question": "x", "answer": {"a": 1}}, "no text in column answer"),
        ({"question": "x" * 100_001, "answer": "1"}, "more than 100000 characters"),
    ],
)
def test_a_row_that_is_no_task_is_told_by_line(tmp_path, row, reason):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(ROWS[0], row, ROWS[1]))
    report = read_tasks(path, split="train")
    assert len(report.tasks) == 2 and report.problems[0][0] == 2 and reason in report.problems[0][1]


@pytest.mark.parametrize(
    ("row", "task"),
    [
        ({"prompt": "p", "answer": 4}, ("p", "4")),
        ({"instruction": "p", "output": True}, ("p", "true")),
        ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], "label": "x"}, ("u", "x")),
    ],
)
def test_columns_go_by_their_usual_names(tmp_path, row, task):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(row))
    assert [tuple(one.values()) for one in read_tasks(path, split="train").tasks] == [task]


@pytest.mark.parametrize(
    ("content", "told"),
    [("", "no rows"), ("nonsense\n", "line 1"), ('{"a": 1}\n', "no column for the prompt; there are a")],
)
def test_what_is_no_dataset_is_refused_with_the_way_out(tmp_path, content, told):
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(CliError, match=told):
        read_tasks(path, split="train")


def test_a_split_that_is_not_there_names_those_that_are(tmp_path):
    saved(tmp_path / "d" / "test", ROWS)
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    with pytest.raises(CliError, match="no split 'train'; there are test"):
        read_tasks(tmp_path / "d", split="train")


def test_without_pyarrow_the_way_out_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(CliError, match="needs pyarrow") as refused:
        read_tasks(tmp_path / "rows.parquet", split="train")
    assert "pip install" in refused.value.hint


def test_a_template_is_a_package_with_a_run_that_the_contract_takes(server, tmp_path):
    done = server.run("init", "my-env", "--path", str(tmp_path / "my-env"))
    assert done.exit_code == 0, done.output
    project = read_project(tmp_path / "my-env")
    assert (project.name, project.version, project.runtime_hint) == ("my-env", "0.1.0", "VERIFIERS_V1")
    config = RunConfig.model_validate(translate(tomllib.loads((tmp_path / "my-env" / "train.toml").read_text())).body)
    assert (config.model.name, config.environments[0].id) == ("tiny", "my-env")
    for file in (tmp_path / "my-env").rglob("*.py"):
        compile(file.read_text(), str(file), "exec")
    assert not server.requests, "nothing is asked of a server"


def test_the_scoring_of_a_template_pays_the_right_answer(server, tmp_path):
    server.run("init", "sums", "--path", str(tmp_path / "sums"))
    code = "from scoring import reward_of as r; print(r('the sum is 12.', '12'), r('112', '12'), r('', ''))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "sums" / "sums", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1.0", "0.0", "0.0"]


def test_a_dataset_becomes_rows_and_a_report(server, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(*ROWS, "{}"))
    refused = server.run("init", "quiz", "--path", str(tmp_path / "q"), "--from-dataset", str(path))
    assert refused.exit_code == 1 and "line 4: no text in column question" in refused.stderr
    assert not (tmp_path / "q").exists()
    asked = ("init", "quiz", "--path", str(tmp_path / "q"), "--from-dataset", str(path), "--dropped-max", "0.5", "-o", "json")
    told = json.loads(server.run(*asked).stdout)
    assert (told["report"]["kept"], told["report"]["dropped"], told["report"]["problems"][0]["line"]) == (3, 1, 4)
    kept = (tmp_path / "q" / "quiz" / "rows.jsonl").read_text().splitlines()
    assert json.loads(kept[2]) == {"prompt": "2+1?", "answer": "3"}


@pytest.mark.parametrize("name", ["Big", "a--b", "-a", "a b", "1st", "x" * 101])
def test_a_name_that_no_package_has_is_refused(server, tmp_path, name):
    done = server.run("init", name, "--path", str(tmp_path / "x")) if not name.startswith("-") else None
    assert done is None or (done.exit_code == 1 and not (tmp_path / "x").exists())


def test_nothing_is_overwritten(server, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    assert "is not empty" in server.run("init", "my-env", "--path", str(tmp_path / "full")).stderr
    file = tmp_path / "run.toml"
    assert server.run("train", "init", str(file), "--env", "ada/sums@0.1.0").exit_code == 0
    assert tomllib.loads(file.read_text())["name"] == "sums"
    assert server.run("train", "init", str(file)).exit_code == 1


def test_rows_are_not_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_rows, "ROWS_MAX", 2)
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(*ROWS))
    with pytest.raises(CliError, match="more than 2 rows"):
        read_tasks(path, split="train")
