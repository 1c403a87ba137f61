"""One seccomp filter in two spellings, as bytes and as a Docker profile: what tenant code has no business calling answers EPERM.

Knows two architectures' call numbers, classic BPF and the profile's keys. Refuses to know who installs the filter. The list is a
deny list on top of namespaces and dropped capabilities: it shrinks the kernel surface that a namespace leaves open (mount API,
ptrace, keyrings, bpf, perf, io_uring, new user namespaces, host-wide sockets).
"""

import platform
import struct
from dataclasses import dataclass
from typing import Any

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

_LOAD_WORD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
_CLONE_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into a terminal that someone else reads."""
_SOCKET_FAMILIES = (1, 2, 10, 16)
"""unix, inet, inet6, netlink (the resolver asks it for interfaces). AF_VSOCK and its like are not confined by a namespace."""


@dataclass(frozen=True)
class Architecture:
    audit: int
    denied: dict[str, int]
    clone: int
    clone3: int
    socket: int
    ioctl: int
    has_x32: bool = False


_SAME_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "memfd_secret": 447,
}

_X86_64 = Architecture(
    audit=0xC000003E,
    clone=56,
    clone3=435,
    socket=41,
    ioctl=16,
    has_x32=True,
    denied={
        "ptrace": 101,
        "syslog": 103,
        "uselib": 134,
        "vhangup": 153,
        "modify_ldt": 154,
        "pivot_root": 155,
        "chroot": 161,
        "acct": 163,
        "settimeofday": 164,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "sethostname": 170,
        "setdomainname": 171,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "sched_setaffinity": 203,
        "lookup_dcookie": 212,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "unshare": 272,
        "move_pages": 279,
        "perf_event_open": 298,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "clock_adjtime": 305,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "finit_module": 313,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
        **_SAME_EVERYWHERE,
    },
)

_AARCH64 = Architecture(
    audit=0xC00000B7,
    clone=220,
    clone3=435,
    socket=198,
    ioctl=29,
    denied={
        "lookup_dcookie": 18,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "chroot": 51,
        "vhangup": 58,
        "quotactl": 60,
        "acct": 89,
        "unshare": 97,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "syslog": 116,
        "ptrace": 117,
        "sched_setaffinity": 122,
        "reboot": 142,
        "sethostname": 161,
        "setdomainname": 162,
        "settimeofday": 170,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "swapon": 224,
        "swapoff": 225,
        "move_pages": 239,
        "perf_event_open": 241,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "clock_adjtime": 266,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "finit_module": 273,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
        **_SAME_EVERYWHERE,
    },
)

ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def filter_bytes(machine: str | None = None) -> bytes:
    """The program as the kernel's `struct sock_filter[]`, 8 bytes an instruction. KeyError for an unknown architecture."""
    return b"".join(_program(ARCHITECTURES[machine or platform.machine()]))


def docker_profile(machine: str | None = None) -> dict[str, Any]:
    """The same filter as `docker run --security-opt seccomp=` takes it. KeyError for an unknown architecture.

    https://docs.docker.com/engine/security/seccomp/. Conditions on one argument are alternatives to the runtime, so that each
    refused value is a rule of its own. Calls of another architecture (x32, 32 bit) are killed, as it names one alone.
    """
    machine = machine or platform.machine()
    flags = [1 << bit for bit in range(32) if _CLONE_NEW_NAMESPACES >> bit & 1]
    families = [value for value in range(max(_SOCKET_FAMILIES)) if value not in _SOCKET_FAMILIES]
    rules = [
        _rule(sorted(ARCHITECTURES[machine].denied), EPERM),
        _rule(["clone3"], ENOSYS),
        *(_rule(["clone"], EPERM, index=0, op="SCMP_CMP_MASKED_EQ", value=flag, valueTwo=flag) for flag in flags),
        *(_rule(["socket"], EAFNOSUPPORT, index=0, op="SCMP_CMP_EQ", value=family) for family in families),
        _rule(["socket"], EAFNOSUPPORT, index=0, op="SCMP_CMP_GT", value=max(_SOCKET_FAMILIES)),
        *(_rule(["ioctl"], EPERM, index=1, op="SCMP_CMP_EQ", value=value) for value in _TERMINAL_INJECTION),
    ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [f"SCMP_ARCH_{machine.upper()}"], "syscalls": rules}


def _rule(names: list[str], errno: int, **condition: Any) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": [condition] if condition else []}


def _program(arch: Architecture) -> list[bytes]:
    program = [
        _op(_LOAD_WORD, _OFFSET_ARCH),
        _op(_JUMP_EQUAL, arch.audit, 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD_WORD, _OFFSET_NUMBER),
    ]
    if arch.has_x32:
        program += [_op(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _fail(ENOSYS)]
    for number in sorted(arch.denied.values()):
        program += [_op(_JUMP_EQUAL, number, 0, 1), _fail(EPERM)]
    # clone3 hides its flags behind a pointer; ENOSYS makes the C library fall back to clone, whose flags a filter can read.
    program += [_op(_JUMP_EQUAL, arch.clone3, 0, 1), _fail(ENOSYS)]
    program += _when(arch.clone, [_argument(0), _op(_JUMP_BITS, _CLONE_NEW_NAMESPACES, 0, 1), _fail(EPERM)])
    program += _when(arch.socket, [_argument(0), *_allowed_only(_SOCKET_FAMILIES, EAFNOSUPPORT)])
    program += _when(arch.ioctl, [_argument(1), *_denied_values(_TERMINAL_INJECTION)])
    return [*program, _op(_RETURN, _ALLOW)]


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """`body` and then allow, for this call alone; the accumulator no longer holds the call's number behind it."""
    return [_op(_JUMP_EQUAL, number, 0, len(body) + 1), *body, _op(_RETURN, _ALLOW)]


def _allowed_only(values: tuple[int, ...], errno: int) -> list[bytes]:
    checks = [_op(_JUMP_EQUAL, value, len(values) - index, 0) for index, value in enumerate(values)]
    return [*checks, _fail(errno)]


def _denied_values(values: tuple[int, ...]) -> list[bytes]:
    return [op for value in values for op in (_op(_JUMP_EQUAL, value, 0, 1), _fail(EPERM))]


def _argument(index: int) -> bytes:
    return _op(_LOAD_WORD, _OFFSET_ARGUMENTS + 8 * index)


def _fail(errno: int) -> bytes:
    return _op(_RETURN, _ERRNO | errno)


def _op(code: int, value: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, jump_true, jump_false, value)
