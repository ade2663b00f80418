"""Calls on unusual stacks: each is complete all the same, and none is reported wrongly."""
import platform
import sys

import harness
from harness import LIBRARY

# A handler of a signal runs on its own stack, while the thread is inside a call.
INSIDE = "alarm 100 { raw cuCtxSynchronize; query-device }; sync; sync-context"
SLOW = {"LATENCY": "cuStreamSynchronize=400000000"}

# Launches with the stack arguments in a page that is not resident: the call's return address is the
# last thing in the page before it.
UNREAD = """
import ctypes, mmap, sys
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov rbx, rsp; mov rsp, rdi; call rsi; mov rsp, rbx; pop rbx; ret
code.write(bytes.fromhex("534889e34889fcffd64889dc5bc3"))
address = lambda memory: ctypes.addressof(ctypes.c_char.from_buffer(memory))
on_stack = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address(code))
stack = mmap.mmap(-1, 1 << 20)
middle = 1 << 19
stack[middle - 4096:middle] = bytes(4096)
driver = ctypes.CDLL(sys.argv[1])
print(on_stack(address(stack) + middle, ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p).value))
"""


class Live(harness.LiveTest):
    def interrupted(self, script):
        """The slow call, and the calls of the handler, which ran while it waited."""
        trace = self.script(script, fake=SLOW)
        self.check_accounts(trace)
        self.check_counts(trace)
        self.assertEqual(trace.end["losses"], {})
        outer, = trace.named("cuStreamSynchronize")
        self.assertGreater(outer["duration_us"], 399_000)
        inside = [call for call in trace.calls if outer["ts"] < call["ts"] < outer["ts"] + 400_000_000]
        self.assertEqual([call["name"] for call in inside][:1] + [call["name"] for call in inside][-1:],
                         ["cuCtxSynchronize", "cuDeviceGetAttribute"])
        self.assertEqual({call["tid"] for call in inside}, {outer["tid"]})
        after = trace.calls[-1]
        self.assertEqual(after["name"], "cuCtxSynchronize")
        self.assertNotIn("parent", after)
        for call in (outer, after):
            self.assertEqual(call["ret"], 0)
        return trace, outer, inside

    def test_handler_below(self):
        """Below the main thread's stack: all is seen."""
        trace, outer, inside = self.interrupted(f"setup; {INSIDE}")
        self.check_law(trace)
        for call in inside:
            self.assertEqual(call["ret"], 0)
            self.assertLess(call["duration_us"], 100_000)
            self.assertIn(call.get("parent"), (outer["id"], None))  # None: the addresses' low halves say nothing

    def test_handler_above(self):
        """Above another thread's stack: the kernel would forget where the interrupted call returns to."""
        script = f"setup; thread {{ current ctx; {INSIDE} }}; wait"
        if harness.INSIDE:  # then nothing is forgotten
            trace, _, inside = self.interrupted(script)
            self.check_law(trace)
            self.assertEqual({call["ret"] for call in inside}, {0})
            return
        if not self.has_sessions():
            self.skipTest("this kernel has no uprobe sessions, so a program that does this dies")
        trace, _, inside = self.interrupted(script)
        for call in inside:
            self.assertEqual((call.get("return_lost"), "ret" in call, "parent" in call), (True, False, False))
        self.assertEqual([call for call in trace.calls if "return_lost" in call], inside)

    def has_sessions(self):
        trace = self.traced(["true"])
        return ("uprobe_session", "yes") in {(one["name"], one["state"]) for one in trace.header["features"]}

    def test_unread_stack(self):
        """Arguments that cannot be read are missing, never zeros; with `sleepable` they are read."""
        if platform.machine() != "x86_64":
            self.skipTest("the program that it takes is x86-64's machine code")
        on_stack = {"blockDimZ", "sharedMemBytes", "hStream"}
        for features in ((), ("uprobe_session",), ("sleepable",), ("uprobe_session", "sleepable")):
            with self.subTest(features):
                self.setUp()
                trace = self.traced([sys.executable, "-c", UNREAD, LIBRARY], "--library", LIBRARY, "--only",
                                    "cuLaunchKernel", *(f"--no-feature={feature}" for feature in features))
                self.check_accounts(trace)
                self.assertEqual(trace.end["losses"], {})
                call, = trace.calls
                self.assertEqual((call["name"], call["error"]), ("cuLaunchKernel", "CUDA_ERROR_INVALID_HANDLE"))
                if "sleepable" in features:
                    self.assertIs(call["read_fault"], True)
                    self.assertFalse(on_stack & set(call["args"]) or {"block", "shared", "stream"} & set(call), call)
                else:
                    self.assertEqual((call["block"][2], call["shared"], call["stream"], call.get("read_fault")),
                                     (0, 0, "0x0", None))


if __name__ == "__main__":
    harness.main()
