"""A process tree and a folder, measured."""

import os

from trainer.sandboxing.processes import folder_bytes, sample_tree


def process(proc, pid, children=(), resident=100, shared=40, ticks=50):
    task = proc / str(pid) / "task" / str(pid)
    task.mkdir(parents=True)
    (task / "children").write_text(" ".join(map(str, children)))
    fields = ["S"] + ["0"] * 10 + [str(ticks), "0", "0", "0", "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} (na) me) {' '.join(fields)}\n")
    (proc / str(pid) / "statm").write_text(f"500 {resident} {shared} 1 0 300 0\n")


def test_a_tree_is_summed_and_strangers_are_not(tmp_path):
    process(tmp_path, 1, children=[2, 3])
    process(tmp_path, 2, children=[4])
    process(tmp_path, 3)
    process(tmp_path, 9)
    sample = sample_tree(1, tmp_path)
    # 4 is named by its parent and already gone.
    assert sample.processes == 3
    assert sample.memory_bytes == 3 * 60 * os.sysconf("SC_PAGE_SIZE")
    assert sample.cpu_s == 150 / os.sysconf("SC_CLK_TCK")


def test_a_folder_is_summed_without_following_links(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "sub" / "b").write_bytes(b"x" * 5)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert 15 <= folder_bytes(tmp_path) < 15 + 4096


def test_a_folder_of_very_many_entries_counts_as_full(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert folder_bytes(tmp_path, entries_max=10) >= 10 * 4096


def test_a_folder_that_is_gone_is_empty(tmp_path):
    assert folder_bytes(tmp_path / "gone") == 0
