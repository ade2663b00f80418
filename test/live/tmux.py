"""A shell on a tmux terminal: its screen can be read and its keys can be pressed."""
import os
import shutil
import subprocess
import time

PATIENCE = 30
SETTINGS = ["set -g status off", "set -g default-terminal tmux-256color", "set -sg escape-time 0"]


class Terminal:
    def __init__(self, test, folder, env, width=80, height=24):
        if not shutil.which("tmux"):
            test.skipTest("tmux is not installed")
        self.socket = f"{folder}/tmux"
        settings = f"{folder}/tmux.conf"
        with open(settings, "w", encoding="utf-8") as file:
            file.write("\n".join(SETTINGS) + "\n")
        env = {"LC_ALL": "C.UTF-8", **env}
        env.pop("TMUX", None)
        test.addCleanup(self.close)
        subprocess.run(["tmux", "-S", self.socket, "-f", settings, "new-session", "-d", "-x", str(width), "-y", str(height),
                        "exec env PS1='ready> ' bash --norc --noprofile -i"], check=True, env=env)
        self.wait_for(lambda: "ready>" in self.shown(), "a shell")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-S", self.socket, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.decode()

    def close(self):
        self.tmux("kill-server")

    def press(self, *keys):
        """Presses keys by tmux's names: Up, F4, C-c, Enter; other words are typed."""
        for key in keys:
            self.tmux("send-keys", key)
            time.sleep(0.02)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def run(self, command):
        self.type(command)
        self.press("Enter")

    def shown(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def lines(self):
        return self.shown().split("\n")

    def is_taken(self):
        """The alternate screen is shown, and no cursor."""
        return self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["1", "0"]

    def is_free(self):
        return self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait_for(self, condition, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError(f"after {seconds} s: not {what}, but\n{self.shown()}")

    def until(self, text, seconds=PATIENCE):
        return self.wait_for(lambda: text in self.shown() and self.shown(), repr(text), seconds)

    def until_not(self, text):
        return self.wait_for(lambda: text not in self.shown(), f"rid of {text!r}")


def exists(path):
    return os.path.exists(path) and os.path.getsize(path) > 0
