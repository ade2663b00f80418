"""`cudabpf metrics --push`: what reaches a receiver of OTLP equals what the driver counted, whatever the receiver does; real ones, too."""
import json
import math
import os
import pathlib
import re
import time
import urllib.parse
import urllib.request

import otlp
import scraping
import servers
from scraping import NAMES, ROOT, calls, free_port, harness, wait_for

OWN = re.compile(r"process_|cudabpf_push|cudabpf_build_info")  # what changes by itself, or has the pushes


def resident(pid):
    """Bytes of memory that a process has had at most."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) << 10


class Live(scraping.Scraping):
    def receiver(self, *script, **options):
        receiver = otlp.Receiver(script=script, **options)
        self.addCleanup(receiver.close)
        return receiver

    def start_pushing(self, url, *arguments, every="1s"):
        return self.start_metrics("--profile", "full", "--push", url, "--push-every", every, *arguments)

    def run_programs(self, names=("app",), script=calls(50)):
        for program in self.start_programs(names, script):
            self.assertEqual(program.wait(), 0)

    def pushed(self, receiver, condition, what, seconds=harness.PATIENCE):
        """The first push of which this holds."""
        return wait_for(lambda: next((push for push in receiver.pushes if condition(push)), None), what, seconds)

    def whole(self, page):
        return page.of("cudabpf_call_seconds_count") == self.total() and not page.of("cudabpf_processes")

    # --- what is pushed

    def test_as_scraped(self):
        """A push has each sample of a page: the same names, types, labels and sums. Names that would spoil a page do it no harm."""
        receiver = self.receiver()
        metrics = self.start_pushing(receiver.url())
        self.run_programs(NAMES)
        push = self.pushed(receiver, self.whole, "all that was called")
        page = self.page_with(self.whole, "all that was called")
        self.assertEqual(push.of("cudabpf_node_calls_total"), self.total())
        self.check_names(push.programs(), NAMES)
        scraped = {(name, tuple(label for label in key if label[1])): value
                   for name, samples in page.samples.items() if not OWN.match(name) for key, value in samples.items()}
        got = {(name, key): value for name, samples in push.samples.items() if not OWN.match(name) for key, value in samples.items()}
        self.assertEqual(set(got), set(scraped))
        for key, value in scraped.items():
            self.assertTrue(math.isclose(got[key], value, rel_tol=1e-9), key)
        self.assertEqual(push.types, {name: kind for name, kind in page.types.items() if name in push.types})
        self.assertEqual(push.resource["service.instance.id"], f"{os.uname().nodename}:{self.port}")
        self.assertEqual((push.resource["service.name"], push.resource["host.name"]), ("cudabpf", os.uname().nodename))
        (start, now), = (one for one in push.times if one[0])
        self.assertLess(start, now)
        self.assertAlmostEqual(start / 1e9, page.of("process_start_time_seconds"), places=3)
        self.ended(metrics)

    def test_with_a_trace(self):
        receiver = self.receiver()
        metrics = self.start_serving("--metrics", "127.0.0.1:0", "--push", receiver.url(), "--push-every", "1s", "--push-as", "node-7",
                                     "--profile", "full", "--library", harness.LIBRARY, "-o", f"{self.folder}/machine.jsonl")
        self.run_programs()
        push = self.pushed(receiver, self.whole, "all that was called")
        self.assertEqual(push.resource["service.instance.id"], "node-7")
        self.ended(metrics)

    def test_last(self):
        """What came after the last push is pushed at the end."""
        receiver = self.receiver()
        metrics = self.start_pushing(receiver.url(), every="1h")
        self.pushed(receiver, lambda push: not push.of("cudabpf_calls_total"), "a first push, before anything is called")
        self.run_programs()
        self.ended(metrics)
        self.assertEqual(len(receiver.pushes), 2)
        self.assertEqual(receiver.pushes[-1].of("cudabpf_calls_total"), self.total())
        self.assertEqual(receiver.pushes[-1].of("cudabpf_call_seconds_count"), self.total())

    # --- receivers that do not take it

    def test_trouble(self):
        """Whatever a receiver does, the sums are right afterwards, and each way to fail is counted. Messages come once."""
        port = free_port()  # nobody listens there yet
        metrics = self.start_pushing(f"http://127.0.0.1:{port}/v1/metrics")
        wait_for(lambda: "metrics do not reach" in metrics.stderr(), "a warning")
        self.run_programs()
        before = resident(metrics.pid)
        busy = (servers.status(429), servers.status(503, ("Retry-After", "1")), servers.status(503, ("Retry-After", "soon")), servers.status(502))
        refused = (servers.status(404, ("Content-Type", "text/plain"), body=b"no such page"), servers.status(302, ("Location", "/x")))
        failed = (servers.close, servers.cut_off, servers.drip, servers.flood, servers.hold)
        receiver = self.receiver(*busy, *refused, *failed, port=port)
        # Several of these take ten seconds each, more on a slow machine.
        push = self.pushed(receiver, self.whole, "all that was called", 4 * harness.PATIENCE)
        self.assertEqual(len(receiver.pushes), 1)
        self.assertEqual(push.of("cudabpf_node_calls_total"), self.total())
        for outcome, least in (("busy", len(busy)), ("refused", len(refused)), ("accepted", 0)):
            self.assertEqual(push.of("cudabpf_pushes_total", outcome=outcome), least, outcome)
        self.assertGreater(push.of("cudabpf_pushes_total", outcome="failed"), len(failed))
        self.assertLess(resident(metrics.pid) - before, 16 << 20)
        wait_for(lambda: " again, after " in metrics.stderr(), "that it works again")
        self.assertEqual(metrics.stderr().count("metrics do not reach"), 1, metrics.stderr())
        self.assertIn("Connection refused", metrics.stderr())
        self.run_programs(["another"])
        self.pushed(receiver, self.whole, "all that was called")
        self.ended(metrics)

    def test_pause(self):
        """A receiver is left alone for as long as it asks for."""
        receiver = self.receiver(servers.status(503, ("Retry-After", "3")))
        metrics = self.start_pushing(receiver.url())
        wait_for(lambda: receiver.pushes, "a push that is taken")
        self.assertGreaterEqual(receiver.asked[1] - receiver.asked[0], 3)
        self.ended(metrics)

    def test_rejected(self):
        """Samples that are rejected are counted; the first ones also reported."""
        receiver = self.receiver(otherwise=otlp.rejecting(3, b"too old"))
        metrics = self.start_pushing(receiver.url())
        push = self.pushed(receiver, lambda push: push.of("cudabpf_push_rejected_samples_total") >= 6, "two pushes that were taken partly")
        self.assertEqual(push.of("cudabpf_pushes_total", outcome="partly") * 3, push.of("cudabpf_push_rejected_samples_total"))
        self.assertEqual(metrics.stderr().count("3 samples were rejected: too old"), 1, metrics.stderr())
        self.ended(metrics)

    def test_end(self):
        """A receiver that never answers holds up neither pages nor the end."""
        receiver = self.receiver(otherwise=servers.hold)
        metrics = self.start_pushing(receiver.url(), every="1h")
        wait_for(lambda: receiver.asked, "a push")
        self.run_programs()
        self.page_with(self.whole, "all that was called")
        began = time.monotonic()
        self.ended(metrics)
        self.assertLess(time.monotonic() - began, 8, "the push alone would have taken 10 s")
        self.assertIn("the last sums of metrics do not reach", metrics.stderr())

    # --- real receivers

    def start_receiver(self, package, program, *arguments):
        """One of Debian 13, in a folder of its own; the program and its address."""
        tools = self.tools(package, "--suite", "trixie")
        address = f"127.0.0.1:{free_port()}"
        return self.start([f"{tools}/{program}", *(argument.replace("ADDRESS", address) for argument in arguments)]), address

    def start_prometheus(self, *arguments):
        configuration = f"{self.folder}/prometheus.yml"
        pathlib.Path(configuration).write_text("{}", encoding="utf-8")
        program, address = self.start_receiver("prometheus", "prometheus", f"--config.file={configuration}", "--web.listen-address=ADDRESS",
                                               f"--storage.tsdb.path={self.folder}/data", *arguments)
        wait_for(lambda: self.ask_receiver(address, "label/__name__/values") is not None, "Prometheus")
        return program, address

    @staticmethod
    def ask_receiver(address, what, **query):
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/{what}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except OSError:  # it does not answer yet
            return None

    def value(self, address, query):
        found = self.ask_receiver(address, "query", query=query)
        return float(found["result"][0]["value"][1]) if found and found["result"] else 0

    def check_receiver(self, url, address):
        """What is pushed to the URL is found at the address: the driver's own counts, under the names of a page."""
        metrics = self.start_pushing(url)
        self.run_programs(NAMES)
        names = set(self.page_with(self.whole, "all that was called").samples)
        for metric in ("cudabpf_calls_total", "cudabpf_node_calls_total", "cudabpf_call_seconds_count", 'cudabpf_call_seconds_bucket{le="+Inf"}'):
            wait_for(lambda m=metric: self.value(address, f"sum({m})") == self.total(), f"{metric} of {self.total()}")
        self.assertEqual(set(self.ask_receiver(address, "label/__name__/values")) - {"target_info"}, names)
        self.check_names({*self.ask_receiver(address, "label/program/values")}, NAMES)
        median = 'histogram_quantile(0.5, sum by (le) (cudabpf_call_seconds_bucket{function_class="launch"}))'
        wait_for(lambda: 0 < self.value(address, median) < 1, "the median of launches")
        for label, value in (("instance", f"{os.uname().nodename}:{self.port}"), ("job", "cudabpf")):
            self.assertEqual(self.ask_receiver(address, f"label/{label}/values"), [value])
        self.ended(metrics)
        self.assertNotIn("warning", metrics.stderr())

    def test_prometheus(self):
        prometheus, address = self.start_prometheus("--enable-feature=otlp-write-receiver")
        if "Unknown option" in prometheus.stderr():
            self.skipTest("Debian's Prometheus is built without its receiver of OTLP")
        self.check_receiver(f"http://{address}/api/v1/otlp/v1/metrics", address)

    def test_victoria(self):
        _, address = self.start_receiver("victoria-metrics", "victoria-metrics", f"-storageDataPath={self.folder}/victoria",
                                         "-httpListenAddr=ADDRESS", "-search.latencyOffset=0s", "-search.disableCache")
        wait_for(lambda: self.ask_receiver(address, "label/__name__/values") is not None, "VictoriaMetrics")
        self.check_receiver(f"http://localhost:{address.rpartition(':')[2]}/opentelemetry/v1/metrics", address)

    def test_collector(self):
        """One that translates names as Prometheus does, and passes all on to a Prometheus."""
        _, address = self.start_prometheus("--web.enable-remote-write-receiver")
        agent, collector = self.start_receiver("victoria-metrics", "vmagent", f"-remoteWrite.url=http://{address}/api/v1/write",
                                               f"-remoteWrite.tmpDataPath={self.folder}/agent", "-httpListenAddr=ADDRESS",
                                               "-opentelemetry.usePrometheusNaming")
        wait_for(lambda: "started vmagent" in agent.stderr(), "vmagent")
        self.check_receiver(f"http://{collector}/opentelemetry/v1/metrics", address)


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    harness.main()
