#!/usr/bin/env python3
"""Loads traces into a column store with the SQL of `cudabpf schema`, and compares sums with cudabpf's own answers.

    store_test.py duckdb|clickhouse     CUDABPF_BUILD names the build folder

Exit status 77: skipped, with the reason printed.
"""
import collections
import decimal
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CUDABPF = pathlib.Path(os.environ.get("CUDABPF_BUILD", "build")).resolve() / "cudabpf"
RECORDED = sorted((ROOT / "traces").glob("h200-*.jsonl.zst"))
OF_RANKS = ROOT / "traces/example-ranks.jsonl.zst"
HANDMADE = ROOT / "test/export/trace.jsonl"
ODD_NAME = "it's a \\trace.jsonl"
QUERIES = {
    "books": "SELECT * FROM books",
    "calls": "SELECT trace, name, count(*) AS count, sum(CASE WHEN error != '' THEN 1 ELSE 0 END) AS errors, sum(duration_us) AS time "
             "FROM calls GROUP BY trace, name",
    "kernels": "SELECT trace, kernel, count(*) AS count, sum(duration_us) AS time FROM gpu WHERE op = 'kernel' GROUP BY trace, kernel",
    "driver": "SELECT trace, count(*) AS count FROM driver GROUP BY trace",
    "allocated": "SELECT trace, kind, count(*) AS count, sum(size) AS bytes FROM memory WHERE op = 'alloc' GROUP BY trace, kind",
    "collectives": "SELECT trace, op, identity, rank, size, count(*) AS count, sum(duration_us) AS time FROM collectives "
                   "GROUP BY trace, op, identity, rank, size",
    "collective_work": "SELECT trace, pid, count(*) AS count, sum(duration_us) AS time FROM collective_work GROUP BY trace, pid",
    "products": "SELECT trace, m, n, k, count(*) AS count FROM products WHERE shape_unknown IS NULL OR shape_unknown = '' GROUP BY trace, m, n, k",
    "product_work": "SELECT products.trace AS trace, count(*) AS count, sum(product_work.duration_us) AS time FROM product_work "
                    "JOIN products ON products.trace = product_work.trace AND products.id = product_work.product GROUP BY products.trace",
    "blocks": "SELECT trace, op, count(*) AS count, sum(size) AS bytes FROM blocks GROUP BY trace, op",
    "grids": "SELECT trace, sum(grid[1]) AS blocks FROM calls WHERE op = 'launch' AND kernel != '' GROUP BY trace",
}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def modules_of(engine):
    """chDB is 550 MB: it is not fetched, only used."""
    if engine == "clickhouse":
        if not (HERE / engine / "node_modules/chdb").is_dir():
            skip(f"there is no chDB; npm install --prefix test/store/{engine} fetches it, 550 MB")
        return
    done = subprocess.run([ROOT / "scripts/node-modules", f"test/store/{engine}"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        skip(done.stdout.strip().removeprefix("SKIPPED: "))
    done.check_returncode()


class Store(unittest.TestCase):
    engine = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copy(HANDMADE, cls.folder / ODD_NAME)
        merged = cls.folder / "merged.jsonl.zst"  # of two hosts
        two = [path for path in RECORDED if path.name.startswith(("h200-gpt2", "h200-two-gpus"))]
        subprocess.run([CUDABPF, "merge", *two, "-o", merged], stdout=subprocess.DEVNULL, check=True)
        cls.traces = [str(path) for path in [*RECORDED, merged, OF_RANKS, cls.folder / ODD_NAME]]
        sql = subprocess.run([CUDABPF, "schema", cls.engine, *cls.traces], stdout=subprocess.PIPE, text=True, check=True).stdout
        (cls.folder / "load.sql").write_text(sql, encoding="utf-8")
        done = subprocess.run(["node", HERE / cls.engine / "run.mjs", cls.folder / "load.sql"], input=json.dumps(list(QUERIES.values())),
                              stdout=subprocess.PIPE, text=True, check=True)
        cls.rows = dict(zip(QUERIES, json.loads(done.stdout, parse_float=decimal.Decimal)))

    def answer(self, subcommand, trace, *flags):
        done = subprocess.run([CUDABPF, subcommand, "--json", *flags, trace], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout, parse_float=decimal.Decimal)

    def of(self, query, trace, key, *figures):
        """-> by the key's value, the figures of the trace's rows, as numbers"""
        return {row[key] or "": tuple(decimal.Decimal(str(row[figure] or 0)) for figure in figures)
                for row in self.rows[query] if row["trace"] == trace}

    def test_books(self):
        """A row a file, with what its end says; complete if nothing was lost, and all of it has been loaded."""
        books = {row["trace"]: row for row in self.rows["books"]}
        self.assertEqual(set(books), set(self.traces))
        for trace, row in books.items():
            facts = self.answer("summary", trace)["trace"]
            blocks = sum(int(count) for count, _ in self.of("blocks", trace, "op", "count", "bytes").values())
            self.assertEqual(int(row["loaded_calls"]), facts["calls"] + blocks, trace)
            self.assertEqual(bool(row["complete"]), facts["complete"] and not facts["losses"], (trace, row))
            if trace in self.traces[:-1]:
                self.assertEqual(int(row["entered"]), int(row["emitted"]) + int(row["dropped"]), trace)
                self.assertEqual(row["received"], row["emitted"], trace)
                self.assertEqual(int(row["driver_calls"] or 0), facts["operations"], trace)
                self.assertEqual(row["started"].replace(" ", "T").rstrip("0"), facts["started"].rstrip("0Z"), trace)

    def test_calls(self):
        for trace in self.traces:
            calls = self.answer("calls", trace, "--top", "100000")["calls"]
            self.assertEqual(self.of("calls", trace, "name", "count", "errors", "time"),
                             {call["name"]: (call["count"], call["errors"], call.get("total_us", 0)) for call in calls}, trace)

    def test_blocks(self):
        found = 0
        for trace in self.traces:
            allocators = self.answer("memory", trace)["memory"].get("blocks", {}).get("allocators", [])
            expected = {op: sum(one[of] for one in allocators) for op, of in (("alloc", "allocations"), ("free", "frees"))}
            blocks = {op: int(count) for op, (count, _) in self.of("blocks", trace, "op", "count", "bytes").items()}
            self.assertEqual(blocks, {op: count for op, count in expected.items() if count}, trace)
            found += sum(blocks.values())
        self.assertGreater(found, 0)

    def test_kernels(self):
        for trace in self.traces:
            expected = collections.defaultdict(lambda: (0, 0))
            for kernel in self.answer("kernels", trace, "--top", "100000")["kernels"]:
                if "gpu" in kernel:
                    count, time = expected[kernel["kernel"]]
                    expected[kernel["kernel"]] = count + kernel["gpu"]["count"], time + kernel["gpu"]["total_us"]
            self.assertEqual(self.of("kernels", trace, "kernel", "count", "time"), dict(expected), trace)

    def test_driver(self):
        counts = {row["trace"]: int(row["count"]) for row in self.rows["driver"]}
        for trace in self.traces:
            self.assertEqual(counts.get(trace, 0), self.answer("summary", trace)["trace"]["operations"], trace)

    def test_memory(self):
        for trace in self.traces:
            kinds = self.answer("memory", trace)["memory"]["all"].get("kinds", {})
            self.assertEqual(self.of("allocated", trace, "kind", "count", "bytes"),
                             {kind: (one["allocations"], one["allocated"]) for kind, one in kinds.items() if one["allocations"]}, trace)

    def test_products(self):
        """By shape, and what GPUs took for them."""
        expected, found, work = collections.Counter(), collections.Counter(), {}
        for trace in self.traces:
            answer = self.answer("gemms", trace, "--top", "100000")
            for row in answer["products"]:
                expected[(trace, row["m"], row["n"], row["k"])] += row["count"] - row["in_graphs"]
            if answer["products"]:
                work[trace] = sum(row["gpu_us"] for row in answer["products"])
        for row in self.rows["products"]:
            found[(row["trace"], int(row["m"]), int(row["n"]), int(row["k"]))] += int(row["count"])
        self.assertEqual(found, expected)
        self.assertEqual({row["trace"]: decimal.Decimal(str(row["time"])) for row in self.rows["product_work"]}, work)
        self.assertTrue(work)

    def test_collectives(self):
        """Each rank's, by function and size; and what GPUs took for them, with no kernel in two rows."""
        answer = self.answer("collectives", OF_RANKS)
        communicators = {one["communicator"]: one for one in answer["communicators"]}
        expected, work = collections.Counter(), collections.defaultdict(lambda: [0, 0])
        for row in answer["collectives"]:
            one = communicators[row["communicator"]]
            if "," not in row["function"]:  # else a group of several functions
                expected[(row["function"], "0x" + one["identity"], one["rank"], row["size"])] += row["count"]
            if row["gpu"]["count"]:
                work[row["pid"]][0] += row["gpu"]["count"]
                work[row["pid"]][1] += row["gpu"]["total_us"]
        found = {(row["op"], row["identity"], int(row["rank"]), int(row["size"])): int(row["count"])
                 for row in self.rows["collectives"] if row["trace"] == str(OF_RANKS) and row["op"] not in ("send", "recv")}
        self.assertEqual(found, dict(expected))
        self.assertEqual(self.of("collective_work", str(OF_RANKS), "pid", "count", "time"), {pid: tuple(sums) for pid, sums in work.items()})
        self.assertTrue(expected and work)

    def test_lists(self):
        """An array has its numbers."""
        for trace in map(str, RECORDED):
            lines = subprocess.run(["zstd", "-dcq", trace], stdout=subprocess.PIPE, check=True).stdout.splitlines()
            launches = [line for line in map(json.loads, lines) if "id" in line and line.get("op") == "launch" and line.get("kernel")]
            row, = (row for row in self.rows["grids"] if row["trace"] == trace)
            self.assertEqual(int(row["blocks"]), sum(line["grid"][0] for line in launches))


if __name__ == "__main__":
    Store.engine = sys.argv.pop(1)
    if not shutil.which("node"):
        skip("there is no node")
    modules_of(Store.engine)
    unittest.main()
