"""Who asked for each allocation, against what the program itself says: by eBPF and from inside."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import BUILD, LIBRARY  # noqa: E402  pylint: disable=wrong-import-position

FOLDER = f"{BUILD}/test/memory"


class Live(harness.LiveTest):
    """The program's sizes are all different."""

    def traced_program(self, **fake):
        output = f"{self.folder}/said"
        os.environ["OUTPUT"] = output
        command = ["/bin/sh", "-c", 'exec "$@" > "$OUTPUT"', "sh", f"{FOLDER}/holders_program", LIBRARY, FOLDER]
        trace = self.traced(command, "--library", LIBRARY, fake=fake)
        said = {}
        with open(output, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            size, holder, status = line.split()
            said.setdefault(int(size), (None if holder == "-" else holder, int(status)))
        return trace, said

    def test_each_allocation(self):
        trace, said = self.traced_program()
        calls = [call for call in trace.calls if call.get("op") == "alloc"]
        self.assertGreater(len(said), 40)
        self.assertEqual({call["size"]: (call.get("holder"), call["ret"]) for call in calls}, said)
        self.check_accounts(trace)


    def answer(self, *words):
        return json.loads(subprocess.run([harness.CUDABPF, *words, "--json", self.path], check=True, stdout=subprocess.PIPE).stdout)

    def test_what_each_held(self):
        _, said = self.traced_program()
        asked = {one["holder"]: one for one in self.answer("memory")["memory"]["asked_by"]["gpu"]}
        host = {one["holder"]: one for one in self.answer("memory")["memory"]["asked_by"]["host"]}
        for holder in {holder for holder, _ in said.values()}:
            sizes = [size for size, (one, _) in said.items() if one == holder]
            seen = asked[holder]["at_peak"] + host[holder]["at_peak"]
            if holder != "libalpha.so.3":  # the child's comes after the peak
                self.assertEqual(seen, sum(sizes))
            self.assertEqual(asked[holder]["allocations"] + host[holder]["allocations"], len(sizes))
        by_holder = self.answer("memory", "--by", "holder")["memory"]["holders"]
        self.assertEqual({one["holder"] for one in by_holder}, set(asked))

    def test_out_of_memory(self):
        trace, said = self.traced_program(MEMORY=20 << 20)
        self.assertIn("because memory ran out", self.stderr)
        first = min(size for size, (_, status) in said.items() if status == 2)
        failed, = (call for call in trace.calls if call.get("op") == "alloc" and call["size"] == first)
        ran_out = self.answer("errors")["ran_out"]
        moment = ran_out["first"][0]
        self.assertEqual((moment["call"], moment["size"], moment["holder"], moment["device"]),
                         (failed["id"], first, failed["holder"], 0))
        self.assertEqual(ran_out["count"], sum(status == 2 for _, status in said.values()))
        held = {}
        for call in trace.calls:
            if call.get("op") == "alloc" and call["id"] < failed["id"] and call["kind"] != "host":
                held[call.get("holder")] = held.get(call.get("holder"), 0) + call["size"]
        self.assertEqual({one["name"]: one["bytes"] for one in moment["holders"]}, held)
        self.assertEqual([one["bytes"] for one in moment["processes"]], [sum(held.values())])
        self.assertEqual(moment["held"], sum(held.values()))
        biggest = max(held, key=held.get)
        self.assertIn(f"by {biggest}", " ".join(self.stderr.split()))


harness.main()
