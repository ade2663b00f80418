"""Servers of HTTP on this machine that do as a test says."""
import contextlib
import http.server
import signal
import socket
import threading
import time


class Server:
    """Each request is answered by a function of its handler, and its connection closed then."""

    def __init__(self, answer, port=0):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # what closes connections is what is tested
        self.asked = []  # when
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(time.monotonic())
                self.close_connection = True
                with contextlib.suppress(OSError):
                    answer(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Threads(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def status(number, *headers, body=b"", accepted=False):
    def answer(handler):
        handler.send_response(number)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)
        return accepted
    return answer


def close(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def cut_off(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")


def drip(handler):
    """A header that has no end, byte by byte, for as long as somebody reads it."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"x")
        threading.Event().wait(0.05)


def flood(handler):
    """More than anybody wants, as fast as it is read."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        handler.wfile.write(b"x" * 65536)


def hold(handler):
    """Never answers, until the connection is closed."""
    handler.connection.recv(1)
