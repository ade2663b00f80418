"""`run --inside` when traced processes, and others of the same user, do at its listener what no honest program does.

These tests are run only this way (inside_tests.txt).
"""
import contextlib
import os
import select
import signal
import subprocess
import time

import harness
import insiders
from harness import INSIDE_LIBRARY, LIBRARY, PATIENCE, PYTHON, WORKLOADS, wait_for

HONEST = 100  # launches of each honest program
# In which cudabpf ends when it is signalled to, whatever its connections do: at once, unless it waits for one
# of them, and then for ever. So much, because a machine with other work may let it wait.
END_SECONDS = 20
# Passes sockets that linger in each way in which cudabpf could become the one that closes them.
LINGER = insiders.VISITOR + """
kept = []
for reasons in ([LOADED], [FORKED], [77], [FORKED, LOADED], [FORKED, 4, 4, LOADED]):
    sending, others = lingering()
    s = knock(*sys.argv[1:])
    for reason in reasons[:-1]: hello(s, reason)
    hello(s, reasons[-1], [sending.fileno()])
    sending.close()
    kept.append(others)
    if len(reasons) > 3: s.close()
    kept.append(s)
s = knock(*sys.argv[1:])
sending, others = lingering()
s.sendmsg([b""]); s.sendmsg([b""], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sending.fileno()]))])
sending.close()
say("passed"); time.sleep(1000)
"""
# Says over and over that it leaves, while its counters never come to rest.
LEAVE = insiders.VISITOR + """
say("ready")
while True:
    handshakes = []
    for number in range(200):
        s = knock()
        try: hello(s, LEAVING if number % 2 else FORKED)
        except OSError: pass
        if not number % 2: handshakes.append(s)
        else: s.close()
    end = time.monotonic() + 1
    while handshakes and time.monotonic() < end:
        for s in select.select(handshakes, [], [], 0.1)[0]:
            handshakes.remove(s)
            try:
                said, fds = answer(s)
                if fds: os.pwrite(fds[0], struct.pack("<Q", 1000), 24)
                for fd in fds: os.close(fd)
            except (OSError, struct.error): pass
            s.close()
"""
# Brings one large library after the other.
BRING = insiders.VISITOR + """
kept = []
for number in range(int(sys.argv[2])):
    file = os.memfd_create("libcuda.so.1")
    with open(sys.argv[1], "rb") as library: os.write(file, library.read())
    s = knock()
    try: hello(s, LOADED, [file])
    except OSError: pass
    os.close(file)
    kept.append(s)
say("ready"); time.sleep(1000)
"""
# Has a thread id that is never the same for long, and says that it is another process.
TRANSLATED = insiders.VISITOR + """
threading.stack_size(65536)
for _ in range(300): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
s = knock(); hello(s, FORKED, pid=1)
_, (fd,) = answer(s)
s.send(struct.pack("<2I", VERSION, 0))
shared = mmap.mmap(fd, 50 * 4096 + (1 << 20))
record = struct.pack("<2IQ4IHBBI", 32, 0, 1, 0, 0, 1, 0, 3, 1, 0, 0)
count = (1 << 20) // len(record)
shared[50 * 4096:50 * 4096 + len(record) * count] = record * count
struct.pack_into("<IIQ", shared, 128, 1, 1000, len(record) * count)
struct.pack_into("<I", shared, 16, 1)
say("ready")
tid = 0
while True:
    tid = (tid + 1) & 0xffff
    struct.pack_into("<I", shared, 132, 100000 + tid)
"""
# The next program may not make this system call, and gets EPERM.
REFUSED = """
import ctypes, os, struct, sys
def instruction(code, true, false, value): return struct.pack("<HBBI", code, true, false, value)
number = int(sys.argv[1])
rules = (instruction(0x20, 0, 0, 0) + instruction(0x15, 0, 1, number) + instruction(0x06, 0, 0, 0x00050001) +
         instruction(0x06, 0, 0, 0x7fff0000))
held = ctypes.create_string_buffer(rules)
program = struct.pack("<HxxxxxxQ", len(rules) // 8, ctypes.addressof(held))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"""
CONNECT, SENDMSG, RECVMSG = 42, 46, 47  # on x86-64
STORM = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--count", str(HONEST), "--rate", "10000"]


class Live(insiders.InsideTest):
    # --- what is started, and what must hold

    def begin(self, connection, *arguments, honest=1):
        """Traces a connection, then honest programs; returns when those are over."""
        script = ('connection=$1; times=$2; shift 2; echo begun; read -r go; $connection & read -r go; '
                  'for number in $(seq "$times"); do "$@" >/dev/null; done; echo over; wait')
        program = f"{self.folder}/connection"
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!{PYTHON}\n{connection}")
        os.chmod(program, 0o755)
        self.tracer = self.start_inside("sh", "-c", script, "sh", " ".join([program, *map(str, arguments)]), honest, *STORM,
                                        env=self.unlogged(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end_all)
        self.says("begun")  # cudabpf may be stopped from here on

    def begin_stopped(self, script):
        """Runs an honest program by this script, while cudabpf is stopped."""
        self.tracer = self.start_inside("sh", "-c", f"echo begun; read -r go; {script}", "sh", *STORM, env=self.unlogged(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.says("begun")
        self.tracer.signal(signal.SIGSTOP)
        self.tracer.send_line()

    def end_all(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.tracer.pid, signal.SIGKILL)

    def says(self, word):
        ready, _, _ = select.select([self.tracer.process.stdout], [], [], PATIENCE)
        self.assertTrue(ready, f"after {PATIENCE} s no visitor has printed {word}: {self.tracer.stderr()}")
        self.assertEqual(self.tracer.process.stdout.readline().decode().strip(), word)

    def end(self):
        """It ends at once; the trace."""
        begun = time.monotonic()
        self.tracer.signal(signal.SIGTERM)
        self.assertEqual(self.tracer.wait(), 0, self.tracer.stderr())
        self.assertLess(time.monotonic() - begun, END_SECONDS)
        return self.read()

    def check_honest(self, trace, programs=1):
        """Each honest program is whole, and was not held up."""
        self.assertEqual(len(trace.named("cuLaunchKernel")), programs * HONEST, self.tracer.stderr())

    # --- descriptors

    def test_lingering_sockets(self):
        """Closing what a connection has sent may take an hour: cudabpf never does."""
        self.begin(LINGER)
        self.tracer.signal(signal.SIGSTOP)  # so that the connection's own copies are closed first
        self.tracer.send_line()
        self.says("passed")
        self.tracer.signal(signal.SIGCONT)
        self.tracer.send_line()
        self.says("over")
        self.check_honest(self.end())

    def test_lingering_sockets_of_a_stranger(self):
        """Nor what came from a process of the same user that is not traced."""
        self.begin("print('ready', flush=True)")
        self.tracer.send_line()
        self.says("ready")
        listener = self.listener_of(self.tracer.pid)
        self.tracer.signal(signal.SIGSTOP)
        stranger = self.start([PYTHON, "-c", LINGER, listener], stdout=subprocess.PIPE)
        self.assertEqual(stranger.process.stdout.readline(), b"passed\n")
        self.tracer.signal(signal.SIGCONT)
        self.tracer.send_line()
        self.says("over")
        trace = self.end()
        self.check_honest(trace)
        self.assertEqual(trace.end["losses"], {})

    def listener_of(self, tracer):
        """The listener's path, as the command has it in its environment."""
        def found():
            with open(f"/proc/{tracer}/task/{tracer}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    with open(f"/proc/{child}/environ", "rb") as environment:
                        for variable in environment.read().split(b"\0"):
                            if variable.startswith(b"CUDABPF_LISTENER="):
                                return variable.partition(b"=")[2].decode()
            return None
        return wait_for(found, "a command that knows the listener")

    # --- work

    def test_leaving_over_and_over(self):
        """Messages of a process that has not started this cudabpf are received, and ignored."""
        self.begin(LEAVE, honest=3)
        self.tracer.send_line()
        self.says("ready")
        self.tracer.send_line()
        self.says("over")
        self.check_honest(self.end(), 3)

    def test_many_libraries(self):
        """One process's files are read one after the other, and others' beside them."""
        names = ["cuInit", *(f"cuXy{number:06}" for number in range(64_000))]
        source = ".text\n" + "\n".join(f".globl {name}\n.type {name}, @function\n{name}: ret\nnop\nnop\nnop" for name in names)
        path = f"{self.folder}/many.so"
        done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-Wl,-z,noexecstack", "-o", path,
                               "-x", "assembler", "-"], input=source.encode(), check=False, stderr=subprocess.PIPE)
        if done.returncode:
            self.skipTest(f"there is no assembler: {done.stderr.decode()}")
        self.begin(BRING, path, 150)
        self.tracer.send_line()
        self.says("ready")
        self.tracer.send_line()
        self.says("over")
        self.check_honest(self.end())

    def test_changing_thread_ids(self):
        """Whatever a process writes for a thread's id, looking it up holds up no program."""
        self.begin(TRANSLATED)
        self.tracer.send_line()
        self.says("ready")
        self.tracer.send_line()
        self.says("over")
        self.check_honest(self.end())

    # --- processes that are missing are named

    def check_named(self, trace, name, why):
        """One process is missing, and the trace says which, and why."""
        self.assertEqual(trace.end["losses"], {"process_unrecorded": 1})
        lost, = trace.of("lost")
        self.assertEqual((lost["reason"], lost["count"]), ("process_unrecorded", 1))
        self.assertRegex(lost["detail"], rf"^pid \d+ \({name}\): .*{why}")

    def test_gone_before_it_was_seen(self):
        """A process that comes while cudabpf is stopped, and has ended when it goes on, is counted and named."""
        self.begin_stopped('"$@" >/dev/null; echo over; read -r go; exit 7')
        self.says("over")
        self.tracer.signal(signal.SIGCONT)
        self.tracer.send_line()
        self.assertEqual(self.tracer.wait(), 7, self.tracer.stderr())
        trace = self.read()
        self.assertEqual((trace.calls, trace.processes), ([], []))
        self.check_named(trace, "fake_storm", "waited too long")
        self.assertIn("(fake_storm) are not recorded", self.tracer.stderr())

    def test_killed_while_it_waits(self):
        """A program that is killed in cuInit has made no call, so none is missing."""
        self.begin_stopped('"$@" & echo $!; wait; echo over; read -r go')
        pid = int(self.tracer.process.stdout.readline())
        wait_for(lambda: self.waits_for_an_answer(pid), "in cuInit")
        os.kill(pid, signal.SIGKILL)
        self.says("over")
        self.tracer.signal(signal.SIGCONT)
        self.tracer.send_line()
        self.assertEqual(self.tracer.wait(), 0, self.tracer.stderr())
        trace = self.read()
        self.assertEqual((trace.calls, trace.processes, trace.end["losses"]), ([], [], {}))

    @staticmethod
    def waits_for_an_answer(pid):
        with open(f"/proc/{pid}/syscall", encoding="utf-8") as file:
            return file.read().split()[0] == str(RECVMSG)

    def check_refused_alone(self, call, why):
        """A program that records itself, and may not make this system call, is missed."""
        traces = f"{self.folder}/traces"
        env = dict(self.unlogged(), CUDA_INJECTION64_PATH=INSIDE_LIBRARY, CUDABPF_OUTPUT=f"{traces}/t.jsonl")
        done = subprocess.run([PYTHON, "-c", REFUSED, str(call), *STORM], check=False, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, **insiders.AS_USER)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        path = f"{traces}/t.jsonl"

        def whole():
            with open(path, encoding="utf-8") as file:
                return '"type":"end"' in file.read()
        wait_for(whole, "a whole trace")
        trace = self.read(path)
        self.assertEqual(trace.calls, [])
        self.assertEqual(trace.end["losses"], {"process_unrecorded": 1})
        lost, = trace.of("lost")
        self.assertIn(why, lost["detail"])

        def explained():  # which is written after the trace
            with open(f"{path}.log", encoding="utf-8") as file:
                return why in file.read()
        wait_for(explained, f"a message that it {why}")

    def test_may_not_connect(self):
        self.check_refused_alone(CONNECT, "may refuse it connect")

    def test_may_not_send(self):
        self.check_refused_alone(SENDMSG, "may refuse it sendmsg or recvmsg")

    def test_may_not_receive(self):
        self.check_refused_alone(RECVMSG, "may refuse it sendmsg or recvmsg")


if __name__ == "__main__":
    harness.main()
