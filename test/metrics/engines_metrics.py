"""`cudabpf metrics --engine`: requests and tokens of inference servers stand beside what their programs ask of the GPU."""
import pathlib
import re

import otlp
import scraping
import servers
from scraping import CUDABPF, LIBRARY, ROOT, calls, free_port, harness, wait_for

PAGES = pathlib.Path(__file__).with_name("engines")
LLAMA = {"model": "meta-llama/Llama-3.1-8B-Instruct"}


def shown(text):
    """In chunks, as these servers do it."""
    def answer(handler):
        assert handler.path == "/metrics", handler.path
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nTransfer-Encoding: chunked\r\n\r\n")
        for first in range(0, len(text), 1000):
            piece = text[first:first + 1000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")
    return answer


def page_of(engine):
    return shown((PAGES / f"{engine}.txt").read_bytes())


class Live(scraping.Scraping):
    def engine(self, answer, port=0):
        server = servers.Server(answer, port)
        self.addCleanup(server.close)
        return f"127.0.0.1:{server.port}"

    def start_with(self, addresses, *arguments):
        return self.start_metrics(*(word for address in addresses for word in ("--engine", f"http://{address}")), *arguments)

    def check(self, page, vllm, sglang):
        for name, value in (("requests_running", 8), ("requests_waiting", 7), ("prompt_tokens_total", 8128902 + 1024),
                            ("generated_tokens_total", 557572 + 512), ("finished_requests_total", 43), ("preemptions_total", 2),
                            ("first_token_seconds_total", 5.375)):
            self.assertEqual(page.of(f"cudabpf_engine_{name}", engine="vllm", address=vllm, **LLAMA), value, name)
        self.assertEqual(page.of("cudabpf_engine_kv_cache_used_ratio", address=vllm, replica="1"), 0.875)
        self.assertEqual(page.of("cudabpf_engine_finished_requests_total", address=vllm, reason="length"), 2)
        for rank in "01":
            self.assertEqual(page.of("cudabpf_engine_requests_running", engine="sglang", address=sglang, tp_rank=rank), 162)
        self.assertEqual(page.of("cudabpf_engine_prompt_tokens_total", engine="sglang", address=sglang, **LLAMA), 8129000)
        self.assertEqual(page.of("cudabpf_engine_left_out_samples"), 0)
        document = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        for name, kind in page.types.items():
            if name.startswith("cudabpf_engine_"):
                self.assertIn(f"`{name}`", document)
                self.assertEqual(kind, "counter" if name.endswith("_total") else "gauge", name)

    def test_engines(self):
        """On the page and in a push, with the calls of a program that runs beside them."""
        vllm, sglang = self.engine(page_of("vllm")), self.engine(page_of("sglang"))
        receiver = otlp.Receiver()
        self.addCleanup(receiver.close)
        metrics = self.start_with([vllm, sglang], "--push", receiver.url(), "--push-every", "1s")
        program, = self.start_programs(["engine"], calls(50))
        self.assertEqual(program.wait(), 0)

        def whole(page):
            return page.of("cudabpf_engine_up") == 2 and page.of("cudabpf_calls_total", program="engine", function_class="launch") == 50
        self.check(self.page_with(whole, "both, and the calls"), vllm, sglang)
        self.check(wait_for(lambda: next(filter(whole, receiver.pushes), None), "a push of both"), vllm, sglang)
        self.ended(metrics)
        self.assertNotIn("warning", metrics.stderr())

    def test_trouble(self):
        """Engines that are not there, or do anything, hold up no page; the others are shown, and each again once it is there."""
        port = free_port()  # nobody listens there yet
        odd = b'vllm:prompt_tokens_total NaN\nvllm:prompt_tokens_total -1\nvllm:prompt_tokens_total{model_name="a\\"b\\n\xff"} 5\n<html>\n'
        answers = [servers.status(404), servers.close, servers.cut_off, servers.drip, servers.flood, servers.hold, shown(b"# nothing\n")]
        broken = [self.engine(answer) for answer in answers]
        good = self.engine(shown(odd))
        metrics = self.start_with([*broken, good, f"127.0.0.1:{port}"])
        page = self.page_with(lambda page: page.of("cudabpf_engine_up", address=good), "the one that answers")
        self.assertEqual(page.of("cudabpf_engine_prompt_tokens_total", address=good, model='a"b\n\ufffd'), 5)
        self.assertEqual(page.of("cudabpf_engine_left_out_samples", address=good), 2)
        for address in broken:
            wait_for(lambda a=address: f"the engine at http://{a}/metrics cannot be read" in metrics.stderr(), address)
        page = self.page()
        self.assertEqual((page.of("cudabpf_engine_up"), len(page.samples["cudabpf_engine_up"])), (1, len(broken) + 2))
        late = self.engine(page_of("vllm-older"), port)
        page = self.page_with(lambda page: page.of("cudabpf_engine_up", address=late), "the late one")
        self.assertEqual(page.of("cudabpf_engine_generated_tokens_total", address=late, model="mistral"), 70)
        self.assertIn(f"the engine at http://{late}/metrics can be read again", metrics.stderr())
        text = pathlib.Path(f"/proc/{metrics.pid}/status").read_text(encoding="ascii")
        self.assertLess(int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]), 200 << 10)  # one alone sends gigabytes
        self.ended(metrics)
        self.assertEqual(metrics.stderr().count("cannot be read"), len(broken) + 1, metrics.stderr())

    def test_usage(self):
        for engines in (["https://a:1"], ["http://a:1", "http://a:1/other"], [f"http://a:{port}" for port in range(1, 18)]):
            words = [word for engine in engines for word in ("--engine", engine)]
            self.assertEqual(self.start([CUDABPF, "metrics", "--library", LIBRARY, *words]).wait(), 2, engines)


if __name__ == "__main__":
    harness.main()
