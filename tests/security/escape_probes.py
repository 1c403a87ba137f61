"""Runs inside a box: tries to leave it, each way on its own, and prints `{probe: true where it worked}` as JSON.

Standard library alone. A probe that works must do no harm to the host: it opens, asks or sets what is there already.
Arguments: a file of the host, a port of the host on loopback, an abstract socket of the host, the pid of a host process.
"""

import ctypes
import errno
import json
import os
import socket
import struct
import subprocess
import sys

HOST_FILE, HOST_PORT, HOST_SOCKET, HOST_PID = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000
PTRACE_SEIZE = 0x4206
SYSCALLS = {
    "kexec_load": 246,
    "init_module": 175,
    "delete_module": 176,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "open_by_handle_at": 304,
    "name_to_handle_at": 303,
    "io_uring_setup": 425,
    "pivot_root": 155,
    "swapon": 167,
    "acct": 163,
    "iopl": 172,
    "lookup_dcookie": 212,
    "fanotify_init": 300,
    "quotactl": 179,
    "fsopen": 430,
    "open_tree": 428,
    "move_mount": 429,
}
if os.uname().machine != "x86_64":
    SYSCALLS = {}


def reads(path):
    with open(path, "rb") as file:
        return bool(file.read(1))


def content(path):
    with open(path, "rb") as file:
        return file.read()


def writes(path):
    with open(path, "ab"):
        return True


def lists(path, *, besides=()):
    return bool(set(os.listdir(path)) - set(besides))


def connects(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as peer:
        peer.settimeout(2)
        peer.connect(address)
        return True


def opens_socket(family, kind, protocol=0):
    with socket.socket(family, kind, protocol):
        return True


def call(name, *arguments):
    """Whether a function of the C library returned something else than an error."""
    return getattr(LIBC, name)(*arguments) >= 0


def syscall(number, *arguments):
    """Whether the kernel carried a call out, or would have with better arguments: only EPERM and ENOSYS are a refusal."""
    ctypes.set_errno(0)
    result = LIBC.syscall(number, *(arguments or (0, 0, 0, 0, 0)))
    return result >= 0 or ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS, errno.EACCES}


def raises_privilege():
    """A set-user-id program that hands out another identity."""
    for program in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp", "/bin/ping"):
        if os.path.exists(program) and os.stat(program).st_mode & 0o4000:
            probe = subprocess.run([program, "--help"], capture_output=True, timeout=5, check=False)
            status = b"NoNewPrivs:\t1" in content("/proc/self/status")
            if probe.returncode == 0 and not status:
                return True
    return False


def in_child(action):
    """The answer of a child, so that a probe that changes the process changes no other probe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            worked = bool(action())
        except BaseException:
            worked = False
        os.write(writer, b"1" if worked else b"0")
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 1)
    os.close(reader)
    os.waitpid(child, 0)
    return answer == b"1"


def traces(pid):
    """Whether a process that is none of the probe's own can be traced. To seize stops nobody, as to attach would."""
    return pid not in {0, os.getpid()} and in_child(lambda: call("ptrace", PTRACE_SEIZE, pid, 0, 0))


PROBES = {
    "read a file of the host": lambda: reads(HOST_FILE),
    "read the host's accounts": lambda: reads("/etc/shadow"),
    "read root's home": lambda: lists("/root"),
    "read a user's home": lambda: lists("/home"),
    "read logs of the host": lambda: lists("/var/log"),
    "read the docker socket": lambda: connects(socket.AF_UNIX, "/var/run/docker.sock"),
    "read containerd's socket": lambda: connects(socket.AF_UNIX, "/run/containerd/containerd.sock"),
    "read dbus": lambda: connects(socket.AF_UNIX, "/run/dbus/system_bus_socket"),
    "see a process of the host": lambda: b"probe" not in content(f"/proc/{HOST_PID}/cmdline"),
    "read another process's environment": lambda: reads("/proc/1/environ") and b"HOME=/root" in content("/proc/1/environ"),
    "reach the root behind pid 1": lambda: lists("/proc/1/root", besides=os.listdir("/")),
    "read physical memory": lambda: reads("/dev/mem"),
    "read the kernel's memory": lambda: reads("/proc/kcore"),
    "read the kernel's messages": lambda: reads("/dev/kmsg"),
    "read a disk": lambda: reads("/dev/sda") or reads("/dev/vda"),
    "write a kernel setting": lambda: writes("/proc/sys/kernel/core_pattern"),
    "write a setting of memory": lambda: writes("/proc/sys/vm/drop_caches"),
    "write into sysfs": lambda: writes("/sys/power/state"),
    "ask for a reboot by sysrq": lambda: writes("/proc/sysrq-trigger"),
    "write a control group": lambda: writes("/sys/fs/cgroup/cgroup.procs"),
    "write a program of the system": lambda: writes("/usr/bin/env"),
    "write the interpreter": lambda: writes(os.path.realpath(sys.executable)),
    "mount a file system": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "unmount the root": lambda: call("umount2", b"/usr", 2),
    "make a device": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)) is None and reads("/tmp/disk"),
    "leave by chroot": lambda: in_child(lambda: os.chroot("/proc/1/root") is None and lists("/root")),
    "make a user namespace": lambda: in_child(lambda: call("unshare", CLONE_NEWUSER)),
    "make a mount namespace": lambda: in_child(lambda: call("unshare", CLONE_NEWNS)),
    "make a network namespace": lambda: in_child(lambda: call("unshare", CLONE_NEWNET)),
    "make a process namespace": lambda: in_child(lambda: call("unshare", CLONE_NEWPID)),
    "join pid 1's network": lambda: in_child(lambda: call("setns", os.open("/proc/1/ns/net", os.O_RDONLY), CLONE_NEWNET)),
    "join pid 1's mounts": lambda: in_child(lambda: call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), CLONE_NEWNS)),
    "trace pid 1": lambda: traces(1),
    "trace the parent": lambda: traces(os.getppid()),
    "become root": lambda: in_child(lambda: os.getuid() != 0 and os.setuid(0) is None),
    "become another group": lambda: in_child(lambda: os.setgroups([0]) is None and os.getgid() != 0),
    "gain by a set-user-id program": raises_privilege,
    "set the host's name": lambda: call("sethostname", b"sandbox", 7),
    "set the clock": lambda: call("clock_settime", 0, struct.pack("qq", 0, -1)),
    "set a key in the kernel's keyring": lambda: syscall(248, b"user", b"probe", b"x", 1, -3),
    "open a raw socket": lambda: opens_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "open a packet socket": lambda: opens_socket(socket.AF_PACKET, socket.SOCK_RAW),
    "open a vsock": lambda: connects(socket.AF_VSOCK, (2, 22)),
    "reach a port of the host": lambda: connects(socket.AF_INET, ("127.0.0.1", HOST_PORT)),
    "reach an abstract socket of the host": lambda: connects(socket.AF_UNIX, "\0" + HOST_SOCKET),
    "reach the metadata address": lambda: connects(socket.AF_INET, ("169.254.169.254", 80)),
    "reach the internet": lambda: connects(socket.AF_INET, ("1.1.1.1", 53)),
    "reach the internet by IPv6": lambda: connects(socket.AF_INET6, ("2606:4700:4700::1111", 53)),
    "send a datagram": lambda: connects(socket.AF_INET, ("8.8.8.8", 53), socket.SOCK_DGRAM),
    "resolve a name": lambda: bool(socket.getaddrinfo("example.org", 80)),
    "have a network interface": lambda: bool({name for _, name in socket.if_nameindex()} - {"lo", "tunl0", "sit0", "ip6tnl0"}),
} | {f"call {name}": lambda number=number: in_child(lambda: syscall(number)) for name, number in SYSCALLS.items()}


def outcome(probe):
    try:
        return bool(probe())
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


print(json.dumps({name: outcome(probe) for name, probe in PROBES.items()}))
