"""A store with rows in many regions on four servers, served for a browser."""

import os
import re
import subprocess
import tempfile

ORDERS = """WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 6000)
INSERT INTO orders SELECT x, 'customer ' || (x / 7), x * 37 % 1000, printf('%0200d', x) FROM c"""


class ServedShop:
    def __init__(self, tamis, *arguments):
        self.tamis = os.path.abspath(tamis)
        self.directory = tempfile.TemporaryDirectory()
        self.run("sql", "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, note TEXT)",
                 "CREATE INDEX customer ON orders(customer)", "CREATE INDEX cents ON orders(cents)", ORDERS)
        self.split(5)
        self.run("region", "balance")
        self.serve(*arguments)

    def run(self, *arguments):
        return subprocess.run([self.tamis, "--store", "shop", "--servers", "4", *arguments], cwd=self.directory.name,
                              check=True, capture_output=True, text=True).stdout

    def split(self, rounds):
        for _ in range(rounds):
            for line in self.run("region", "list", "orders").splitlines():
                if (words := line.split()) and words[0].isdigit():
                    self.run("region", "split", words[0])

    def serve(self, *arguments, listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [self.tamis, "--store", "shop", "--servers", "4", "serve", "--listen", listen, *arguments],
            cwd=self.directory.name, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://[^, ]*", self.process.stdout.readline()).group(0)

    def stop(self):
        self.process.terminate()
        self.process.communicate()
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()
        self.directory.cleanup()
