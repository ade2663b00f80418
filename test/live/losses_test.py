"""What cannot be traced is counted, to the last call; calls that hang are shown."""
import collections
import os
import shlex
import signal

import harness
from harness import LIBRARY, WORKLOADS, wait_for

RING_LOSSES = ("ring_full_entry", "ring_full_return", "ring_full_process", "ring_full_name", "ring_full_holder")
RETURNED = {"pctx", "device", "module", "hfunc"}  # through pointers, by what the program calls


class Live(harness.LiveTest):
    def storm(self, symbol, *flags, count=200000, threads=2, ring="8K"):
        command = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--symbol", symbol, "--count", count,
                   "--threads", threads]
        return self.traced(list(map(str, command)), "--library", LIBRARY, "--ring-size", ring, *flags,
                           fake={"LOG": None})

    def check_losses(self, trace):
        """Every lost line is in the end's totals, and the other way around."""
        self.check_accounts(trace)
        by_reason = collections.Counter()
        before = {}
        for line in trace.lost:
            by_reason[line["reason"]] += line["count"]
            self.assertLessEqual(before.get(line["reason"], 0), line["since"])
            self.assertLessEqual(line["since"], line["until"])
            before[line["reason"]] = line["until"]
        self.assertEqual(dict(by_reason), trace.end["losses"])
        dropped = sum(by_reason[reason] for reason in RING_LOSSES)
        self.assertEqual(dropped, trace.end["accounts"]["dropped"])
        self.assertLessEqual(set(by_reason), {*RING_LOSSES, "out_pointer"})
        return by_reason

    def check_reconciles(self, trace, symbol):
        """The driver's count from both sides: entries seen or lost, and returns seen or lost."""
        counts = collections.Counter()
        for record in self.records().values():
            counts += record.counts
        kinds = collections.Counter("entry_lost" if call.get("entry_lost") else
                                    "return_lost" if call.get("return_lost") else
                                    "unfinished" if call.get("unfinished") else "whole" for call in trace.calls)
        losses = self.check_losses(trace)
        total = sum(counts.values())
        self.assertEqual(kinds["whole"] + kinds["return_lost"] + kinds["unfinished"] + losses["ring_full_entry"], total)
        self.assertEqual(kinds["whole"] + kinds["entry_lost"] + losses["ring_full_return"], total)
        for call in trace.calls:
            self.assertEqual("duration_us" in call, not {"entry_lost", "return_lost", "unfinished"} & set(call))
            if call.get("entry_lost"):  # what it was given is not known, but what it returned is
                self.assertLessEqual(set(call.get("args", {})), RETURNED, call)
        seen = len(trace.named(symbol))
        self.assertLess(seen, counts[symbol])
        self.assertGreater(seen, 0)
        return kinds, losses

    def test_dropped(self):
        trace = self.storm("cuCtxSynchronize")
        _, losses = self.check_reconciles(trace, "cuCtxSynchronize")
        self.assertGreater(losses["ring_full_entry"] + losses["ring_full_return"], 1000)
        self.assertIn("--ring-size", self.stderr)

    def test_dropped_hangs_are_none(self):
        """A call whose return was lost did not hang, though its thread ended before another record came."""
        trace = self.storm("cuCtxSynchronize", count=2000, threads=40, ring="8K")
        kinds, losses = self.check_reconciles(trace, "cuCtxSynchronize")
        self.assertGreater(losses["ring_full_return"], 0)
        self.assertEqual((kinds["unfinished"], trace.end["unfinished_calls"]), (0, 0))

    def test_dropped_launches(self):
        """No launch is paired with another's return: all of them are alike except for their time."""
        trace = self.storm("cuLaunchKernel")
        self.check_reconciles(trace, "cuLaunchKernel")
        names = {call.get("kernel") for call in trace.named("cuLaunchKernel") if not call.get("entry_lost")}
        self.assertLessEqual(len(names - {None}), 1)
        by_thread = collections.defaultdict(list)
        for call in trace.calls:
            if "duration_us" in call:
                by_thread[call["tid"]].append((call["ts"], call["ts"] + round(call["duration_us"] * 1000)))
        for spans in by_thread.values():
            for before, after in zip(spans, spans[1:]):
                self.assertLessEqual(before[1], after[0])

    def test_dropped_outs(self):
        """Values returned through pointers belong to the call that shows them."""
        trace = self.storm("cuMemAlloc_v2", count=100000)
        self.check_reconciles(trace, "cuMemAlloc_v2")
        ids = [call["id"] for call in trace.calls]
        self.assertEqual(len(ids), len(set(ids)))

    def test_dropped_processes(self):
        """A run ends even if the ends of processes were lost."""
        storm = shlex.join([f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--symbol", "cuCtxSynchronize",
                            "--count", "100000"])
        noise = f"{storm} & " * 3
        command = ["sh", "-c", f"{noise} for i in $(seq 60); do sh -c true; done; wait"]
        trace = self.traced(command, "--library", LIBRARY, "--ring-size", "8K", fake={"LOG": None})
        losses = self.check_losses(trace)
        self.assertGreater(losses["ring_full_process"], 0)

    def test_large_ring(self):
        """As much as the ring holds is never lost, whatever the pace."""
        trace = self.storm("cuLaunchKernel", count=50000, ring="64M")
        self.check_whole(trace)

    def test_hang(self):
        """A call that never returns, when the trace ends: shown as unfinished."""
        command = [f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; malloc a 1; sync"]
        program = self.start([harness.CUDABPF, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY,
                              "--duration", "1s", "--", *command],
                             env=self.environment(HANG="cuStreamSynchronize@1"))
        self.assertEqual(program.wait(), 0, program.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.check_counts(trace)
        self.assertEqual((trace.end["losses"], trace.end["unfinished_calls"], trace.end["reason"]), ({}, 1, "duration"))
        hung = trace.named("cuStreamSynchronize")[0]
        self.assertIs(hung["unfinished"], True)
        self.assertFalse({"ret", "duration_us", "error"} & set(hung))
        self.assertEqual([call for call in trace.calls if "unfinished" in call], [hung])
        self.assertIn("runs on", program.stderr())
        os.kill(hung["pid"], signal.SIGKILL)

    def test_hang_and_kill(self):
        """A call that never returns, with another inside it, in a program that is killed."""
        command = [f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; thread { sync }; sleep 200; context c; wait"]
        program = self.start([harness.CUDABPF, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY,
                              "--", *command],
                             env=self.environment(HANG="cuStreamSynchronize@1,cuMemAlloc_v2@2", NEST=1))
        wait_for(lambda: [r for r in self.records().values() if r.counts.get("cuMemAlloc_v2") == 2], "in the call")
        pid = next(iter(self.records()))
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(program.wait(), 128 + signal.SIGKILL, program.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.check_counts(trace)
        self.assertEqual((trace.end["losses"], trace.end["unfinished_calls"]), ({}, 3))
        names = {call["name"]: call for call in trace.calls if call.get("unfinished")}
        self.assertEqual(set(names), {"cuStreamSynchronize", "cuMemAlloc", "cuCtxCreate"})
        self.assertEqual(names["cuMemAlloc"]["parent"], names["cuCtxCreate"]["id"])
        self.assertEqual(trace.process("exit", pid)[0]["signal"], signal.SIGKILL)

    def test_thread_ends_in_a_call(self):
        """Another thread calls _exit while this one is inside a call."""
        trace = self.script("setup; thread { sync }; sleep 300; quit 4", fake={"HANG": "cuStreamSynchronize@1"},
                            status=4)
        self.check_accounts(trace)
        self.check_counts(trace)
        self.assertEqual((trace.end["losses"], trace.end["unfinished_calls"]), ({}, 1))

    def test_unreadable_pointers(self):
        """Pointers to nowhere: the call is there, what it points to is not, and it says so."""
        trace = self.script("setup; module m; fails 1 raw cuModuleGetFunction @f m 0; "
                            "raw cuCtxSetLimit 1 2; malloc a 1", fake={"FAIL": "cuModuleGetFunction=1@1"})
        self.check_accounts(trace)
        self.check_counts(trace)
        call = trace.named("cuModuleGetFunction")[0]
        self.assertEqual((call["error"], call["read_fault"]), ("CUDA_ERROR_INVALID_VALUE", True))
        self.assertNotIn("name", call["args"])
        self.assertEqual([c for c in trace.calls if "read_fault" in c], [call])

    def test_null_out_pointers(self):
        """Null pointers are allowed, and request nothing: they give neither a fault nor a value."""
        trace = self.script("setup; malloc a 4K; raw cuMemGetAddressRange_v2 0 @s a; "
                            "raw cuMemGetAddressRange_v2 @p 0 a; raw cuMemGetAddressRange_v2 0 0 a")
        self.check_whole(trace)
        address = trace.named("cuMemAlloc_v2")[0]["ptr"]
        self.assertEqual([call.get("args") for call in trace.named("cuMemGetAddressRange_v2")],
                         [{"pSize": 4096}, {"pbase": address}, None])


if __name__ == "__main__":
    harness.main()
