"""A running `cudabpf serve`, for tests that ask it: in CI, in a browser and on a GPU."""
import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.parse
import zlib


PATIENCE = 60  # seconds for anything that must happen, on a machine that has other work


def until(condition, what, seconds=PATIENCE):
    """Returns the condition's value, as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"after {seconds} s: {what()}")


class Server:
    """A running `cudabpf serve`."""

    def __init__(self, cudabpf, folder, *arguments, listen="127.0.0.1:0", token=False):
        if not token and listen.startswith(("127.", "[::1]", "localhost")):
            arguments = (*arguments, "--no-token")
        self.process = subprocess.Popen([cudabpf, "serve", folder, "--listen", listen, *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.query = parts.hostname, parts.port, parts.query

    def ask(self, target, method="GET", timeout=PATIENCE, **headers):
        """Returns status, headers and body."""
        client = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        with contextlib.closing(client):
            client.putrequest(method, target, skip_host="Host" in headers)
            for name, value in headers.items():
                client.putheader(name.replace("_", "-"), value)
            client.endheaders()
            answer = client.getresponse()
            return answer.status, answer.headers, answer.read()

    def raw(self, request, timeout=PATIENCE):
        """What comes back for bytes as they are, until the server closes."""
        with socket.create_connection((self.host, self.port), timeout) as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(request)
            return read_all(client)

    def list(self):
        return json.loads(self.ask("/traces.json")[2])

    def trace(self, name):
        return next((one for one in self.list()["traces"] if one["name"] == name), None)

    def wait_for(self, name, holds, seconds=PATIENCE):
        """Returns the trace of this name, once that holds for it."""
        return until(lambda: (one := self.trace(name)) and holds(one) and one, lambda: f"{name} is {self.trace(name)}", seconds)

    def spent(self):
        """How many seconds of a processor it has taken."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how=signal.SIGINT):
        """Returns how long it took to end, its status, and what it said."""
        began = time.monotonic()
        self.process.send_signal(how)
        out, said = self.process.communicate(timeout=PATIENCE)
        return time.monotonic() - began, self.process.returncode, out + said


def read_all(client):
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(1 << 16):
            got += piece
    return got


def figures_in(page):
    """The answers that a report was made with."""
    packed = re.search(rb'id="answers">([^<]*)', page).group(1)
    return json.loads(zlib.decompress(base64.b64decode(packed + b"==")))["answers"]
