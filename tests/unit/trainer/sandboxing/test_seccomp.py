"""The filter's bytes, run by a small interpreter of classic BPF: which calls are answered, and how."""

import struct

import pytest

from trainer.sandboxing.seccomp import ARCHITECTURES, EAFNOSUPPORT, ENOSYS, EPERM, filter_bytes

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def run_filter(machine: str, number: int, arguments: tuple[int, ...] = (), audit: int | None = None) -> int:
    """The filter's verdict on one call."""
    audit = ARCHITECTURES[machine].audit if audit is None else audit
    data = struct.pack("<iIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    program = [struct.unpack_from("<HBBI", filter_bytes(machine), offset) for offset in range(0, len(filter_bytes(machine)), 8)]
    position = accumulator = 0
    while True:
        code, jump_true, jump_false, value = program[position]
        position += 1
        if code == 0x06:
            return value
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
            continue
        holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
        position += jump_true if holds else jump_false


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_every_denied_call_answers_eperm(machine):
    for name, number in ARCHITECTURES[machine].denied.items():
        assert run_filter(machine, number) == ERRNO | EPERM, name


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
@pytest.mark.parametrize("name", ["mount", "ptrace", "keyctl", "add_key", "bpf", "unshare", "perf_event_open", "io_uring_setup"])
def test_the_calls_that_open_the_kernel_are_denied(machine, name):
    assert name in ARCHITECTURES[machine].denied


@pytest.mark.parametrize(
    ("machine", "number"),
    [("x86_64", 0), ("x86_64", 1), ("x86_64", 59), ("x86_64", 231), ("aarch64", 63), ("aarch64", 64), ("aarch64", 221)],
)
def test_ordinary_calls_pass(machine, number):
    assert run_filter(machine, number) == ALLOW


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_a_process_may_be_cloned_but_not_into_a_new_namespace(machine):
    clone = ARCHITECTURES[machine].clone
    assert run_filter(machine, clone, (0x01200011,)) == ALLOW
    assert run_filter(machine, clone, (0x10000000,)) == ERRNO | EPERM
    assert run_filter(machine, ARCHITECTURES[machine].clone3) == ERRNO | ENOSYS


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
@pytest.mark.parametrize(("family", "verdict"), [(1, ALLOW), (2, ALLOW), (10, ALLOW), (17, None), (38, None), (40, None)])
def test_only_sockets_that_a_namespace_confines(machine, family, verdict):
    assert run_filter(machine, ARCHITECTURES[machine].socket, (family,)) == (verdict or ERRNO | EAFNOSUPPORT)


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_nothing_types_into_a_terminal(machine):
    assert run_filter(machine, ARCHITECTURES[machine].ioctl, (0, 0x5412)) == ERRNO | EPERM
    assert run_filter(machine, ARCHITECTURES[machine].ioctl, (0, 0x5401)) == ALLOW


def test_calls_of_another_architecture_kill_and_the_x32_ones_do_not_exist():
    assert run_filter("x86_64", 0, audit=ARCHITECTURES["aarch64"].audit) == KILL
    assert run_filter("x86_64", 0x40000000 | 101) == ERRNO | ENOSYS


def test_an_unknown_machine_has_no_filter():
    with pytest.raises(KeyError):
        filter_bytes("riscv64")
