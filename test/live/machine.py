"""What tests share: this machine. Whether it takes BPF programs, and which of those are ours."""
import contextlib
import json
import os
import platform
import re
import subprocess
import tempfile

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf/cudabpf.bpf.c")
BPFTOOL = os.environ.get("BPFTOOL", "bpftool")  # ctest gives the one used by the build


@contextlib.contextmanager
def grace_periods(quick):
    """Links to BPF programs are closed when the kernel's grace periods are over. Meanwhile these end sooner, or when they usually do."""
    setting = "/sys/kernel/rcu_expedited"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # not root, or a container
            file = stack.enter_context(open(setting, "r+", encoding="ascii"))
            before = file.read()
            stack.callback(lambda: os.pwrite(file.fileno(), before.encode(), 0))
            os.pwrite(file.fileno(), b"1" if quick else b"0", 0)
        yield


def why_no_bpf(cudabpf):
    """Why no test can load BPF programs here; nothing if it can."""
    if os.geteuid() != 0:
        return "live tests load BPF programs, which takes root"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([cudabpf, "run", "-q", "-o", f"{folder}/t.jsonl", "--", "true"], check=False,
                              text=True, stderr=subprocess.PIPE)
    return f"this machine takes no BPF programs: {done.stderr.strip()}" if done.returncode in (120, 121) else ""


def why_not_inside():
    return "" if platform.machine() == "x86_64" else "only x86-64 programs are traced from inside"


def parent_of(pid):
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def is_of_this_test(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = parent_of(pid)
    return False


def our_programs():
    """The ids of the BPF programs in the kernel that have the names of ours, but for those that another tracer on this
    machine holds."""
    with open(PROGRAMS, encoding="utf-8") as file:
        ours = {name[:15] for name in re.findall(r'^(?:SEC.*)?int (?:BPF_PROG\()?(\w+)', file.read(), re.MULTILINE)}
    assert {"call_entry", "call_launch_ses", "driver_exit", "process_fork"} <= ours, ours
    listed = subprocess.run([BPFTOOL, "prog", "list", "-j"], check=True, stdout=subprocess.PIPE).stdout
    found = [program for program in json.loads(listed or "[]") if program.get("name") in ours]
    return {program["id"] for program in found
            if not program.get("pids") or any(is_of_this_test(holder["pid"]) for holder in program["pids"])}
