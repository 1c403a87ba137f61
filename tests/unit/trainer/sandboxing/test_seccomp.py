"""The filter's bytes, run by a small interpreter of classic BPF: which calls are answered, and how."""

import struct

import pytest

from trainer.sandboxing.seccomp import ARCHITECTURES, EAFNOSUPPORT, ENOSYS, EPERM, docker_profile, filter_bytes

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


# The Docker profile answers as the bytes do


def ask_profile(machine: str, name: str, arguments: tuple[int, ...] = ()) -> int:
    """The profile's verdict on one call, by the rules that a container runtime applies."""
    for rule in docker_profile(machine)["syscalls"]:
        if name in rule["names"] and all(holds(condition, arguments) for condition in rule["args"]):
            return ERRNO | rule["errnoRet"]
    return ALLOW


def holds(condition: dict, arguments: tuple[int, ...]) -> bool:
    argument, value = (*arguments, 0, 0)[condition["index"]], condition["value"]
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return argument == value
        case "SCMP_CMP_GT":
            return argument > value
        case "SCMP_CMP_MASKED_EQ":
            return argument & value == condition["valueTwo"]


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_both_spellings_give_one_verdict(machine):
    arch = ARCHITECTURES[machine]
    calls = [(name, number, ()) for name, number in arch.denied.items()] + [("clone3", arch.clone3, ())]
    calls += [("clone", arch.clone, (flags,)) for flags in (0x01200011, *(1 << bit for bit in range(8, 32)))]
    calls += [("socket", arch.socket, (family,)) for family in range(50)]
    calls += [("ioctl", arch.ioctl, (0, request)) for request in (0x5401, 0x5412, 0x541C)]
    for name, number, arguments in calls:
        assert ask_profile(machine, name, arguments) == run_filter(machine, number, arguments), (name, arguments)


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_no_rule_of_the_profile_asks_twice_about_one_argument(machine):
    """A runtime reads two conditions on one argument as alternatives."""
    assert all(len(rule["args"]) <= 1 for rule in docker_profile(machine)["syscalls"])
