"""A user's first ten minutes, typed into tmux and read from its screen, on a small terminal and on a large one: what is
said first is there, nothing is wider than the screen, and Ctrl-C, q and a wrong word do what people expect."""
import glob
import os
import re
import shutil
import subprocess
import time

import harness
from harness import CUDABPF, LIBRARY, PATIENCE, WORKLOADS, wait_for

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
PROMPT = "walk$ "
INFERENCE = f"fake_inference --library {LIBRARY} --tokens 20"


class Screen:
    """A shell in tmux, with no user's settings."""

    def __init__(self, test, width, height):
        self.width, self.height = width, height
        self.socket = f"{test.folder}/tmux"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "-c", test.folder, "--",
                  "env", "-i", f"PATH={test.folder}/bin:{WORKLOADS}:/usr/bin:/bin", f"PS1={PROMPT}", f"HOME={test.folder}",
                  "LC_ALL=C.UTF-8", "TERM=screen-256color", "bash", "--norc", "--noprofile")
        test.addCleanup(self.tmux, "kill-server")
        self.until(lambda text: text.strip() == PROMPT.strip(), "a prompt")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout

    def text(self):
        return self.tmux("capture-pane", "-p").rstrip("\n")

    def until(self, is_there, what):
        """The screen's text, once the condition holds for it."""
        end = time.monotonic() + PATIENCE
        while not is_there(text := self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"after {PATIENCE} s: not {what} on a screen of {self.width}x{self.height}:\n{text}")
            time.sleep(0.05)
        return text

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, line):
        self.press("C-l")
        self.until(lambda text: text == PROMPT.strip(), "an empty screen")
        self.tmux("clear-history")
        self.press("-l", line)
        self.press("Enter")

    def prompts(self, text):
        return text.split("\n")[-1] == PROMPT.strip()

    def read(self, line):
        """What the screen shows first; a pager, if one came, is left."""
        self.type(line)

        def paged(text):
            return text.split("\n")[-1].startswith((":", "(END)"))
        page = self.until(lambda text: paged(text) or (self.prompts(text) and len(text.split("\n")) > 1), f"the page of `{line}`")
        if paged(page):
            self.press("q")
            self.until(self.prompts, "a prompt after q")
        return page

    def ask(self, line):
        """What the screen shows once the command is done, without the command."""
        self.type(line)
        self.until(lambda text: self.prompts(text) and len(text.split("\n")) > 1, f"the end of `{line}`")
        whole = self.tmux("capture-pane", "-pJ", "-S", "-").rstrip("\n").split("\n")
        assert whole[0].startswith(PROMPT + line[:20]), whole[0]
        for shown in whole[1:]:  # joined: what the terminal had to break is longer than it
            if len(shown) > self.width and not re.match(r" +cudabpf (summary|report) |cudabpf: ", shown):
                raise AssertionError(f"`{line}` shows a line of {len(shown)} characters on {self.width}: {shown}")
        return "\n".join(whole[1:-1])


class Live(harness.LiveTest):
    def walk(self, width, height):
        os.mkdir(f"{self.folder}/bin")
        os.symlink(CUDABPF, f"{self.folder}/bin/cudabpf")
        os.symlink(f"{ROOT}/traces", f"{self.folder}/recorded")
        screen = Screen(self, width, height)
        self.reads_help(screen)
        self.tries_without_gpu(screen)
        self.traces_a_command(screen)
        self.traces_the_machine(screen)

    def reads_help(self, screen):
        self.assertRegex(screen.read("cudabpf help"), r"(?m)^cudabpf records CUDA driver calls|^Usage: ")
        self.assertRegex(screen.ask("cudabpf doctor | head -3"), r"^✓ cudabpf can trace here")
        self.assertIn("did you mean summary?", screen.ask("cudabpf sumary recorded/h200-gpt2.jsonl.zst"))
        self.assertEqual(screen.ask("cudabpf --profil light; echo $?").split("\n")[-1], "2")
        self.assertIn("cudabpf: error: ", screen.ask("cudabpf summary nothing.jsonl"))

    def tries_without_gpu(self, screen):
        """The whole page is on the screen, from its date to the prompt below it, without a pager."""
        screen.ask("cudabpf summary recorded/h200-gpt2.jsonl.zst")
        shown = screen.text().split("\n")
        self.assertTrue(any(line.startswith("2026-11-28 06:05:53 UTC on ") for line in shown[:2]), shown)
        self.assertLess(min(i for i, line in enumerate(shown) if line.startswith("Host-bound: ")), 6)
        first = screen.read("cudabpf timeline recorded/h200-gpt2.jsonl.zst")
        self.assertIn("inference, from 14.4", first)
        self.assertIn("folded", first)
        listed = screen.ask("cudabpf kernels --by name --top 3 recorded/h200-gpt2.jsonl.zst | head -20")
        self.assertIn("nvjet_", listed)

    def traces_a_command(self, screen):
        """The last lines say what to type next; typed, it answers."""
        screen.ask(f"cudabpf run --library {LIBRARY} -- {INFERENCE}")
        text = screen.text()
        self.assertRegex(text, r"\n  traces/trace_\w+\.jsonl  \d+")
        line = re.search(r"\n  (cudabpf summary --all traces/trace_\w+\.jsonl)\n", text).group(1)
        self.assertIn("iterations", screen.read(line))
        self.assertEqual(screen.ask("cudabpf run -q -- sh -c 'exit 7'; echo $?").split("\n")[-1], "7")

    def traces_the_machine(self, screen):
        """It says at once what it does and how it ends; Ctrl-C ends it, with a summary."""
        for trace in glob.glob(f"{self.folder}/traces/*"):
            os.unlink(trace)
        screen.type(f"cudabpf --library {LIBRARY}")
        shown = screen.until(lambda text: "Ctrl-C" in text, "how it ends")
        self.assertIn("tracing every process on this machine into traces/", shown)
        wait_for(lambda: glob.glob(f"{self.folder}/traces/*.zst"), "a trace")
        done = self.start([f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--tokens", "20"])
        done.wait()
        screen.until(lambda text: re.search(r"[1-9][\d,]* calls", text), "calls on the status line")
        screen.press("C-c")
        text = screen.until(screen.prompts, "a prompt after Ctrl-C")
        self.assertRegex(text, r"\n  cudabpf summary --all traces/trace_\w+\.jsonl\.zst\n")
        self.assertNotIn("Traceback", text)
        self.check_gone()

    def setUp(self):
        super().setUp()
        if not shutil.which("tmux"):
            self.skipTest("tmux is not installed")

    def test_small(self):
        self.walk(80, 24)

    def test_large(self):
        self.walk(200, 50)


if __name__ == "__main__":
    harness.main()
