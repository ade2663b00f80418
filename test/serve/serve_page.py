"""Opens the list of `cudabpf serve`, and reports from it, in a browser, at two widths, in light and dark.
usage: serve_page.py CUDABPF   exit status 77: there is no browser, or nothing to drive it with"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "test/report")]
import report_page  # noqa: E402  pylint: disable=wrong-import-position
from server import Server  # noqa: E402  pylint: disable=wrong-import-position


def main():
    cudabpf = pathlib.Path(sys.argv[1]).resolve()
    chromium = report_page.browser()
    os.environ["CUDABPF"] = str(cudabpf)
    import serve_test  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(name)
        shutil.copy(serve_test.GPT2, folder / "gpt2.jsonl.zst")
        shutil.copy(serve_test.LOSSY, folder / "lossy.jsonl")
        report_page.write_hostile(folder / "hostile.jsonl")
        os.utime(folder / "hostile.jsonl", (0, 0))  # it has no end, and no process writes it
        with open(os.path.join(os.fsencode(name), b"<img src=x onerror='window.hacked=1'> \xff\xfe\xe2\x80\xae.jsonl"), "wb") as file:
            file.write((serve_test.HEADER + serve_test.launches(1, 3) + serve_test.END).encode())
        (folder / "nothing.jsonl").write_text("{}\n", encoding="utf-8")
        (folder / "run").mkdir()
        (folder / "run/growing.jsonl").write_text(serve_test.HEADER + serve_test.launches(1, 10), encoding="utf-8")
        server = Server(cudabpf, folder)
        try:
            env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "URL": server.url, "FOLDER": name, "CHROMIUM": chromium,
                   "WEB": str(report_page.WEB), "MORE": serve_test.launches(11, 40), "END": serve_test.END}
            done = subprocess.run(["node", "--test", "--test-reporter=spec", HERE / "serve_page_test.mjs"], check=False, env=env)
        finally:
            server.end()
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
