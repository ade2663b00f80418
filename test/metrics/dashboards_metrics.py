"""A real Prometheus, which scrapes `cudabpf metrics`, has an answer to every query of the Grafana dashboards, and docs/metrics.md has its labels."""
import ctypes
import functools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time

import otlp
import prometheus_metrics
from namespaces_test import ID, POD, Live as Namespaces
from engines_metrics import shown
from scraping import LIBRARY, ROOT, WORKLOADS, free_port, harness, wait_for
from servers import Server

sys.path.insert(0, str(ROOT / "test/fake_nccl"))

from steps import PROGRAM  # noqa: E402  pylint: disable=wrong-import-position

DASHBOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "packaging/grafana").glob("*.json"))}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
CONFIGURATION = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: cudabpf, honor_labels: true, static_configs: [{targets: %s}]}]
"""
# What Grafana puts in the place of its own variables.
BUILT_IN = {"__rate_interval": "1m0s", "__range": "1h0m0s"}
MAY_BE_EMPTY = {"Xids": "no GPU has an error here"}  # panels whose queries need no answer, and why
NAMES = ("ml", "trainer-0", "main")  # namespace, pod and container
BUSY = """setup; module m; function f m k; malloc a 64K; loop 1000000 { launch f 1 1 1 1 1 1 0; htod a host 4K; dtoh host a 1K; sync;
          fails 2 malloc b 1T; sleep 10 }"""
TRAINING = [["ncclCommInitRank", "a", 1, 0, 2], ["capture"], ["ncclAllReduce", 4096, 7, 0, "a"], ["instantiate"],
            ["repeat", 100000, ["launch"], ["ncclAllGather", 8, 7, "a"], ["sleep", 0.01]]]
ENGINE = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total", "generation_tokens_total",
          *(f"{histogram}_seconds_{of}" for histogram in ("time_to_first_token", "e2e_request_latency") for of in ("sum", "count"))]


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def variables(dashboard):
    return [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]


def source_of(variable):
    """The selector and the label that a variable has its values from."""
    return re.fullmatch(r"label_values\((.+), ([a-z_]+)\)", variable["query"]["query"]).groups()


def targets(dashboard):
    """The query and the legend of each line, and for each variable one that has its values."""
    found = [(panel["title"], target["expr"], target["legendFormat"]) for panel in panels(dashboard) for target in panel["targets"]]
    for variable in variables(dashboard):
        selector, label = source_of(variable)
        found.append((f"${variable['name']}", f"count by ({label}) ({selector})", f"{{{{{label}}}}}"))
    return found


def metrics_in(text):
    return set(re.findall(r"\b(?:cudabpf|process)_\w+", text))


@functools.cache
def documented():
    """The labels of each metric, as the tables of docs/metrics.md have them."""
    labels, of_workloads, of_engines, header = {}, set(), set(), ()
    for line in (ROOT / "docs/metrics.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = ()
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        header = header or cells
        names = re.findall(r"`([a-z_]+)`", cells[0])
        if header[0] == "label":
            of_workloads |= set(names)
        elif header[0] == "label beside an engine":
            of_engines |= set(names)
        elif header[0] == "metric beside an engine":
            labels |= {name: of_engines for name in names}
        elif header[0] == "metric":
            own = {*re.findall(r"`([a-z_]+)`", cells[2]), *(of_workloads if "workload" in header[2] else ())}
            labels |= {name: own for name in names}
    return labels


def labels_of(metric):
    """Those that a metric may have; none if there is no such metric. Only some of the GPUs' figures are in the document."""
    metric = re.sub(r"(cudabpf_call_seconds)_(bucket|sum|count)", r"\1", metric)
    if metric.startswith("cudabpf_gpu_") and metric not in documented():
        metric = "cudabpf_gpu_power_watts"
    return documented().get(metric, set()) | {"instance", "job"} if metric in documented() else set()


def with_values(query, values):
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], query)


def one_of(values):
    """As Grafana writes what is chosen."""
    return "(" + "|".join(re.escape(value) for value in sorted(values)).replace("\\", "\\\\").replace('"', '\\"') + ")"


class Unanswered(dict):
    """Queries that have no answer yet, with their panels' titles: what wait_for says when it gives up."""

    def __str__(self):
        return "answered:\n" + "\n".join(f"{title}: {query}" for query, title in self.items())


class Live(prometheus_metrics.Live):
    cgroup, remove_cgroup, enter = Namespaces.cgroup, Namespaces.remove_cgroup, Namespaces.enter
    nvml = {}  # environment variables for it

    def environment(self, **fake):
        return {**super().environment(LOG=None, **fake), **self.nvml}

    # --- the files

    def test_layout(self):
        """No panel covers another; each takes the data source that is chosen, and says in which unit its figures are."""
        self.assertEqual(set(DASHBOARDS), {"cudabpf-node", "cudabpf-workload"})
        for name, dashboard in DASHBOARDS.items():
            with self.subTest(name):
                self.assertEqual((dashboard["uid"], dashboard["id"]), (name, None))
                ids = [panel["id"] for panel in dashboard["panels"]]
                self.assertEqual(len(ids), len(set(ids)))
                self.check_places(dashboard["panels"])
                source, *others = dashboard["templating"]["list"]
                self.assertEqual((source["name"], source["type"], source["query"]), ("datasource", "datasource", "prometheus"))
                self.assertEqual([variable["type"] for variable in others], ["query"] * len(others))
                for one in [*panels(dashboard), *others]:
                    self.assertEqual(one["datasource"], DATASOURCE)
                for panel in panels(dashboard):
                    self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])
                    ids = [target["refId"] for target in panel["targets"]]
                    self.assertEqual(len(ids), len(set(ids)), panel["title"])
                    self.assertFalse([target for target in panel["targets"] if target.get("datasource", DATASOURCE) != DATASOURCE])

    def check_places(self, placed):
        taken = {}
        for panel in placed:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], COLUMNS, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertEqual(taken.setdefault((x, y), panel["title"]), panel["title"], (x, y))

    def test_documented(self):
        """docs/metrics.md has each metric, and each label that a query asks for or a legend shows. Grafana chooses the intervals."""
        self.assertLessEqual({"slurm_job", "function_class", "le", "instance"}, labels_of("cudabpf_call_seconds_bucket"))
        for title, query, legend in (target for dashboard in DASHBOARDS.values() for target in targets(dashboard)):
            with self.subTest(title, query=query):
                query = re.sub(r" and on \(job, instance\) cudabpf_build_info\b", "", query)  # of cudabpf's own targets alone
                metrics = metrics_in(query)
                self.assertTrue(metrics)
                for metric in metrics:
                    self.assertTrue(labels_of(metric), f"docs/metrics.md lacks {metric}")
                kept = [set(re.findall(r"\w+", one)) for one in re.findall(r"\bby \(([^)]*)\)", query)]
                compared = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', query))
                have = set.intersection(*map(labels_of, metrics))
                self.assertLessEqual(compared.union(*kept), have)
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)), set.intersection(have, *kept), legend)
                self.assertNotRegex(query, r"\[(?!\$__rate_interval\])")
        described = [panel.get("description", "") for dashboard in DASHBOARDS.values() for panel in panels(dashboard)]
        self.assertLessEqual(metrics_in(" ".join(described)), set(documented()))

    # --- their queries

    def name_pod(self):
        """Folders as the kubelet has them, which no other process sees."""
        namespace, pod, container = NAMES
        logs = f"{self.folder}/log"
        os.makedirs(f"{logs}/pods/{namespace}_{pod}_{POD}")
        os.mkdir(f"{logs}/containers")
        pathlib.Path(f"{logs}/containers/{pod}_{namespace}_{container}-{ID}.log").touch()
        if ctypes.CDLL(None).unshare(harness.CLONE_NEWNS):
            self.skipTest("this machine allows no mount namespace")
        for command in (["--make-rprivate", "/"], ["--bind", logs, "/var/log"]):
            done = subprocess.run(["mount", *command], check=False, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                self.skipTest(f"this machine mounts no folder elsewhere: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", "/var/log"], check=False)

    @staticmethod
    def engine(handler):
        """One whose figures grow."""
        shown("".join(f"vllm:{name}{{engine=\"0\",model_name=\"m\"}} {time.time()}\n" for name in ENGINE).encode())(handler)

    def start_both(self):
        """Two take the place of two machines. Only the first one's GPU can measure its activity."""
        self.nvml = {"LD_LIBRARY_PATH": self.simulated_nvml()}
        both, self.addresses, self.listeners = [], [], []
        engine, receiver = Server(self.engine), otlp.Receiver()
        for server in engine, receiver:
            self.addCleanup(server.close)
        for lacks in "", "gpm":
            self.nvml["FAKE_NVML_LACKS"] = lacks
            self.listeners.append(f"{self.folder}/run{len(both)}/inside")
            both.append(self.start_metrics("--kernel", "--library", harness.NCCL, "--gpu=60ms/240ms", "--listener", self.listeners[-1],
                                           "--engine", f"http://127.0.0.1:{engine.port}", "--push", receiver.url(), "--push-every", "1s"))
            self.addresses.append(f"127.0.0.1:{self.port}")
        return both

    def start_prometheus(self, tools):
        """One that scrapes both."""
        configuration = f"{self.folder}/prometheus.yml"
        pathlib.Path(configuration).write_text(CONFIGURATION % json.dumps(self.addresses), encoding="utf-8")
        self.asked = f"127.0.0.1:{free_port()}"
        self.start([f"{tools}/prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={self.folder}/data",
                    f"--web.listen-address={self.asked}"], stdout=subprocess.DEVNULL)
        wait_for(lambda: len(self.answers("cudabpf_build_info") or ()) == 2, "a page of each")

    def start_workloads(self):
        """In a pod: one that makes calls all the time, and one of whose calls one never returns. The first also runs outside it."""
        folder, _ = self.cgroup(f"kubepods/burstable/pod{POD}/{ID}")

        def start(script, more=(), inside=True, **fake):
            self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, script], env={**self.environment(**fake), **dict(more)},
                       preexec_fn=(lambda: self.enter(folder)) if inside else None)
        start(BUSY, {"CUDA_INJECTION64_PATH": f"{harness.BUILD}/libcudabpf-inside.so", "CUDABPF_LISTENER": self.listeners[0],
                     "CUDABPF_CUPTI": f"{harness.BUILD}/test/fake_cupti/libcupti.so.13"}, LATENCY="cuLaunchKernel=20000,cuStreamSynchronize=1000000")
        self.start([harness.PYTHON, "-c", PROGRAM, LIBRARY, harness.NCCL, json.dumps([TRAINING])], env=self.environment(),
                   preexec_fn=lambda: self.enter(folder))
        start("setup; sync", HANG="cuStreamSynchronize@1,cuCtxSynchronize@1")
        start(BUSY, inside=False)

    def test_answers(self):
        """Each query has an answer: for all values of the variables, and for those that there are."""
        tools = self.tools()
        self.name_pod()
        both = self.start_both()
        self.start_workloads()
        self.start_prometheus(tools)
        for name, dashboard in DASHBOARDS.items():
            with self.subTest(name):
                chosen = self.values_of(dashboard)
                self.check_answers(dashboard, chosen)
                everything = {variable["name"]: variable["allValue"] for variable in variables(dashboard) if "allValue" in variable}
                self.check_answers(dashboard, chosen | everything)
        for metrics in both:
            self.ended(metrics)

    def values_of(self, dashboard):
        """Each variable with all its values, by what is chosen of those before it."""
        values = dict(BUILT_IN)
        for variable in variables(dashboard):
            selector, label = source_of(variable)
            query = with_values(f"count by ({label}) ({selector})", values)
            found = wait_for(lambda q=query, key=label: {labels[key] for labels, _ in self.answers(q) or () if key in labels}, query)
            values[variable["name"]] = one_of(found)
        return values

    def check_answers(self, dashboard, values):
        left = Unanswered({with_values(query, values): title for title, query, _ in targets(dashboard)})

        def all_answered():
            for query in list(left):
                found = self.answers(query)
                if found is not None and left[query] in MAY_BE_EMPTY or any(not math.isnan(value) for _, value in found or ()):
                    del left[query]
            return not left
        wait_for(all_answered, left)


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    harness.main()
