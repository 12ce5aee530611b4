"""A store behind `tamis serve`, for tests that can use any store."""

import atexit
import subprocess


class ServedStore:
    """Serves a directory, which is made, until it is closed. With tamis = None it is the directory itself."""

    def __init__(self, tamis, directory, *options):
        self.name, self.process = directory, None
        if tamis is None:
            return
        subprocess.run([tamis, "--store", directory, "sql", "--create", "SELECT 1"], check=True, capture_output=True)
        self.process = subprocess.Popen(
            [tamis, "--store", directory, "serve", "--write", "--admin", "--listen", "127.0.0.1:0", *options],
            stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        self.name = next(word.rstrip(",") for word in line.split() if word.startswith("http"))

    def close(self):
        if self.process is None:
            return
        self.process.terminate()
        self.process.stdout.read()
        assert self.process.wait() == 0
        self.process.stdout.close()


def take_serve(arguments):
    """Takes "--serve TAMIS" off the arguments: the program, or None."""
    if "--serve" not in arguments:
        return None
    at = arguments.index("--serve")
    tamis = arguments[at + 1]
    del arguments[at:at + 2]
    return tamis
