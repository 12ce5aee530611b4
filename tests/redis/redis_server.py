"""A redis-server of its own for a test, and a client that speaks RESP2 and RESP3.

The client is written here since tests look at the very shape of replies, which client libraries
hide: errors are values (Error), so are simple strings (Simple), and a map is a Map.
"""

import faulthandler
import os
import shutil
import signal
import socket
import subprocess
import tempfile

# A test that hangs says where, before it is killed for it.
faulthandler.dump_traceback_later(280)


class Error(str):
    """An error reply, as it went over the wire."""

    def __repr__(self):
        return f"Error({str.__repr__(self)})"

    def __eq__(self, other):
        return isinstance(other, Error) and str.__eq__(self, other)

    __hash__ = str.__hash__


class Simple(str):
    def __repr__(self):
        return f"Simple({str.__repr__(self)})"


class Map(list):
    """A RESP3 map: its pairs in the order of the reply."""

    def __repr__(self):
        return f"Map({list.__repr__(self)})"


class Closed(Exception):
    """The server closed the connection."""


class Client:
    def __init__(self, path, protocol=2):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        self.sent = 0  # commands
        if protocol == 3:
            reply = self("HELLO", "3")
            assert isinstance(reply, Map), reply

    def send(self, *words):
        self.sent += 1
        self.socket.sendall(pack(words))

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def pipeline(self, commands):
        """The replies to all commands, sent at once in pieces."""
        commands = list(commands)
        replies = []
        for i in range(0, len(commands), 500):
            piece = commands[i:i + 500]
            self.sent += len(piece)
            self.socket.sendall(b"".join(pack(words) for words in piece))
            replies += [self.read() for _ in piece]
        return replies

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Closed()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return Simple(rest.decode())
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            data = self.file.read(size + 2)
            if len(data) != size + 2:
                raise Closed()
            return data[:-2]
        if kind in (b"*", b"~", b">"):
            size = int(rest)
            return None if size < 0 else [self.read() for _ in range(size)]
        if kind == b"%":
            return Map((self.read(), self.read()) for _ in range(int(rest)))
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"=":
            return self.file.read(int(rest) + 2)[4:-2]
        raise AssertionError(f"a reply that begins with {line[:40]}")

    def close(self):
        self.file.close()
        self.socket.close()


def pack(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Server:
    """Starts the server with the module on a unix socket in a directory of its own.

    TAMIS_REDIS_SERVER names another server than the one that is installed.
    """

    def __init__(self, module, *options, words=(),
                 binary=os.environ.get("TAMIS_REDIS_SERVER", "redis-server"), port=0):
        self.binary, self.words = binary, list(words)
        self.module = module and os.path.abspath(module)  # the server changes its directory
        self.directory = tempfile.mkdtemp(prefix="tamis-redis-")
        self.path = os.path.join(self.directory, "socket")
        self.options = ["port", str(port), "save", "", "enable-debug-command", "yes", *options]
        self.process = None
        self.start()

    def start(self):
        arguments = [self.binary, "--dir", self.directory, "--unixsocket", self.path]
        options = iter(self.options)
        for name in options:
            arguments += ["--" + name, next(options)]
        if self.module:
            arguments += ["--loadmodule", self.module, *self.words]
        self.log_path = os.path.join(self.directory, "log")
        environment = dict(os.environ)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, env=environment)
        self.wait()

    def wait(self):
        """Until it answers; a server that ends instead is an error."""
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n" + self.log())
            try:
                client = Client(self.path)
                reply = client("PING")
                client.close()
            except (OSError, Closed):
                try:
                    self.process.wait(0.01)
                except subprocess.TimeoutExpired:
                    pass
                continue
            if reply == "PONG":
                return

    def client(self, protocol=2):
        return Client(self.path, protocol)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def shutdown(self, *words):
        """Ends the server cleanly."""
        client = self.client()
        client.send("SHUTDOWN", *words)
        self.process.wait(60)
        client.close()

    def alive(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.kill()
        if exception[0] is not None:
            print(self.log()[-4000:])
        shutil.rmtree(self.directory)
