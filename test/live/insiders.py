"""What the tests of `run --inside` share: programs to trace, and how complete their traces have to be."""
import pathlib
import re
import subprocess

import harness
from harness import AS_USER, LIBRARY, PATIENCE, WORKLOADS, wait_for

EVERYTHING = ("setup; query-device; memory-info; stream s; malloc a 4K; htod a host 4K; htod-async a host 64 s; module m; "
              "function f m _Z3addPKfS0_Pfi; launch f 1 2 3 4 5 6 7 s; launch-ex f 1 2 3 4 5 6 7 s; sync s; query s; event e; "
              "record e s; malloc-async b 8K s; free-async b s; graph g; destroy-graph g; raw cuTexRefDestroy 1; free a")
STORM = "cuCtxSynchronize"  # takes no argument, does nothing
# Constants of the protocol that traced processes speak with cudabpf.
VERSION = int(re.search(r"#define CI_VERSION (\d+)", (pathlib.Path(__file__).resolve().parent / "../../include/cudabpf/inside.h").read_text())[1])

# Speaks the protocol of include/cudabpf/inside.h.
VISITOR = f"VERSION = {VERSION}" + """
import array, mmap, os, select, socket, struct, sys, threading, time
LOADED, FORKED, LEAVING = 1, 2, 3
def knock(path=None):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path or os.environ["CUDABPF_LISTENER"])
    return s
def hello(s, reason, fds=(), pid=None):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([struct.pack("<6I", VERSION, reason, pid or os.getpid(), os.getpid(), 0, 0)], rights)
def answer(s):
    data, fds, _, _ = socket.recv_fds(s, 64, 4)
    return struct.unpack_from("<4IQ", data), fds
def say(text):
    print(text, flush=True)
def lingering():
    listening = socket.create_server(("127.0.0.1", 0))
    sending = socket.create_connection(listening.getsockname())
    peer, _ = listening.accept()
    sending.setblocking(False)
    try:
        while True: sending.send(b"x" * 65536)
    except BlockingIOError: pass
    sending.setblocking(True)
    sending.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return sending, (listening, peer)
"""


def odd(way, *arguments):
    return [f"{WORKLOADS}/fake_odd", "--library", LIBRARY, *arguments, way]


class InsideTest(harness.LiveTest):
    def unlogged(self):
        return self.environment(LOG=None)

    def untraced(self, command, env=None):
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE, env=env or self.environment(COUNTS=None, LOG=None), **AS_USER)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def same(self, command, env=None, flags=("--profile", "full")):
        """Checks that the program does and prints the same as without cudabpf; returns the trace."""
        plain = self.untraced(command)
        done = self.run_cudabpf("run", "-q", "-o", self.path, *flags, "--", *command, env=env or self.unlogged())
        self.assertEqual((done.returncode, done.stdout.decode(), done.stderr.decode()), (0, plain.stdout.decode(), plain.stderr.decode()))
        return self.read()

    def check_left_calls(self, trace, left):
        """That many calls were left by their program without a return; all else is whole."""
        self.check_accounts(trace)
        self.check_counts(trace)
        self.assertEqual((trace.end["accounts"]["dropped"], trace.end["losses"]), (0, {}))
        without = [call for call in trace.calls if "ret" not in call]
        self.assertEqual(len(without), left)
        self.assertLessEqual({harness.symbol_of(call) for call in without}, {"cuLaunchHostFunc", "cuStreamAddCallback"})

    def check_reconciles(self, trace, pid, under_way=0):
        """Each call of the one process that lost any is there or counted as lost, but for those that each of so many threads
        may have just begun, and for what was unread at the end, of which it is not known what it was."""
        self.check_accounts(trace)
        losses = trace.end["losses"]
        seen = [call for call in trace.calls if call["pid"] == pid and not call.get("entry_lost")]
        missing = sum(self.records()[pid].counts.values()) - len(seen) - losses.get("ring_full_entry", 0)
        unread = losses.get("unread_at_end", 0)
        self.assertTrue(-under_way <= missing <= under_way + unread, f"{missing} calls are missing; lost {losses}")
        dropped = sum(losses.get(f"ring_full_{what}", 0) for what in ("entry", "return", "process", "name"))
        self.assertEqual(dropped + unread, trace.end["accounts"]["dropped"])

    def start_inside(self, *command, flags=(), **options):
        return self.start_cudabpf("run", "-o", self.path, "--profile", "full", *flags, "--", *command, **options)

    def pid_of_program(self):
        return wait_for(lambda: [pid for pid, record in self.records().items() if record.counts], "a program that calls")[0]
