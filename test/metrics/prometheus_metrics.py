"""A real Prometheus scrapes `cudabpf metrics`: its sums are the driver's own counts, and every query that is shipped has an answer."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

import scraping
from scraping import NAMES, ROOT, calls, free_port, harness, wait_for

RULES = ROOT / "packaging/prometheus/cudabpf.rules.yml"
PROGRAMS = 200
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 2s}}
rule_files: [{rules}]
scrape_configs:
- {{job_name: one, honor_labels: true, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}
- {{job_name: another, honor_labels: true, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}
"""


class Live(scraping.Scraping):
    def promtool(self):
        """It has a package of its own since Debian 13."""
        with_it = f"{self.tools()}/promtool"
        return with_it if os.path.exists(with_it) else f"{self.tools('promtool')}/promtool"

    def start_prometheus(self, tools):
        configuration = f"{self.folder}/prometheus.yml"
        pathlib.Path(configuration).write_text(CONFIGURATION.format(rules=RULES, port=self.port), encoding="utf-8")
        self.asked = f"127.0.0.1:{free_port()}"
        self.prometheus = self.start([f"{tools}/prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={self.folder}/data",
                                      f"--web.listen-address={self.asked}"], stdout=subprocess.DEVNULL)
        wait_for(lambda: self.answers("up"), "Prometheus")

    def answers(self, query):
        """The vector that a query has for an answer: (labels, value). None: Prometheus does not answer yet."""
        url = f"http://{self.asked}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            self.fail(f"{query}: {error.read().decode()}")
        except OSError:
            return None
        return [(one["metric"], float(one["value"][1])) for one in found["data"]["result"]]

    def value(self, query):
        found = self.answers(query)
        return found[0][1] if found else 0

    def test_sums(self):
        """200 programs, some with names that spoil pages elsewhere, while two scrapers look."""
        tools = self.tools()
        metrics = self.start_metrics("--profile", "full", "--max-series", "6000")
        self.start_prometheus(tools)
        names = [*NAMES, *(f"program {number}" for number in range(PROGRAMS - len(NAMES)))]
        for first in range(0, PROGRAMS, 20):
            for program in self.start_programs(names[first:first + 20], calls(100)):
                self.assertEqual(program.wait(), 0)
        for job in ("one", "another"):
            wait_for(lambda j=job: self.value(f'sum(cudabpf_calls_total{{job="{j}"}})') == self.total(), f"{self.total()} calls, by {job}")
            self.assertEqual(self.value(f'sum(cudabpf_node_calls_total{{job="{job}"}})'), self.total())
            self.assertEqual(self.value(f'sum(cudabpf_call_seconds_count{{job="{job}"}})'), self.total())
            self.assertEqual(self.value(f'min(up{{job="{job}"}})'), 1)
        found = self.answers('sum by (program) (cudabpf_calls_total{job="one"})')
        self.check_names({labels["program"] for labels, _ in found}, names)
        self.check_queries()
        self.ended(metrics)
        self.prometheus.signal(signal.SIGTERM)
        self.prometheus.wait()

    def check_queries(self):
        """Those of docs/metrics.md and of the recording rules have answers; those of the alerts are understood."""
        document = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        queries = [line for line in re.search(r"^## Queries\n+```\n(.*?)^```", document, re.M | re.S)[1].splitlines() if not line.startswith("#")]
        recorded = re.findall(r"- record: (.*)", RULES.read_text(encoding="utf-8"))
        self.assertEqual((len(queries), len(recorded)), (4, 4))
        for query in (query for query in [*queries, *recorded] if "copy_to_device" not in query):
            wait_for(lambda q=query: self.answers(q), query)
        for alert in re.findall(r"- alert: .*\n +expr: (.*)", RULES.read_text(encoding="utf-8")):
            self.assertIsNotNone(self.answers(alert), alert)

    def test_promtool(self):
        """Prometheus's own checks have nothing to say of the page and of the rules."""
        promtool = self.promtool()
        metrics = self.start_metrics()
        program, = self.start_programs(["app"], calls(10))
        self.assertEqual(program.wait(), 0)
        self.page_with(lambda page: page.of("cudabpf_calls_total"), "its calls")
        checked = subprocess.run([promtool, "check", "metrics"], input=self.ask()[1], check=False, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        self.assertEqual((checked.returncode, checked.stdout), (0, b""))
        for file in (RULES, pathlib.Path(__file__).with_name("alerts.yml")):
            shutil.copy(file, self.folder)
        for what in (["check", "rules", "cudabpf.rules.yml"], ["test", "rules", "alerts.yml"]):
            checked = subprocess.run([promtool, *what], cwd=self.folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout)
        self.ended(metrics)


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    harness.main()
