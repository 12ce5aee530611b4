#!/usr/bin/env python3
"""`tamis serve` as a process: the examples of docs/SERVER.md, signals, tokens, TLS, wrong options.

usage: serve_test.py TAMIS PAGE CONFIGURATION EXTENSION
"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import unittest

TAMIS, PAGE, CONFIGURATION, EXTENSION = map(os.path.abspath, sys.argv[1:5])
del sys.argv[1:5]
ENDLESS = "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"


class ServeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = directory.name

    def tamis(self, *arguments):
        return subprocess.run([TAMIS, "--store", "shop", *arguments], cwd=self.work, capture_output=True, text=True)

    def make_store(self):
        made = self.tamis("sql", "CREATE TABLE t(a INTEGER PRIMARY KEY)")
        self.assertEqual(made.returncode, 0, made.stderr)

    def serve(self, *arguments, **more):
        """The process, and the port that it says."""
        process = subprocess.Popen([TAMIS, "--store", "shop", "serve", "--listen", "127.0.0.1:0", *arguments],
                                   cwd=self.work, stdout=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = process.stdout.readline()
        return process, int(re.search(r":(\d+),", said).group(1)), said

    def test_examples_of_the_page_print_what_it_shows(self):
        with open(PAGE, encoding="utf-8") as file:
            # Fenced blocks are for other machines.
            page = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
        blocks = re.findall(r"(?:^    .*\n)+", page, flags=re.MULTILINE)
        port = None
        run = 0
        for block in blocks:
            lines = [line[4:] for line in block.splitlines()]
            while lines:
                command = lines.pop(0)
                while command.endswith("\\"):
                    command = command[:-1] + lines.pop(0)
                shown = []
                while lines and not lines[0].startswith("$ "):
                    shown.append(lines.pop(0))
                self.assertTrue(command.startswith("$ "), command)
                command = command[2:]
                run += 1
                if command.endswith("&"):
                    _, port, said = self.serve("--write")
                    self.assertEqual([said.strip().replace(str(port), "7470")], shown)
                    continue
                command = command.replace("7470", str(port)).replace("tamis ", TAMIS + " ", 1)
                done = subprocess.run(["sh", "-ec", command], cwd=self.work, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, command + done.stderr)
                self.assertEqual(done.stdout.splitlines(), shown, command)
        self.assertGreater(run, 8)

    def test_sigterm_ends_it_after_the_answers_under_way(self):
        self.make_store()
        process, port, _ = self.serve("--drain-time", "1")
        idle = http.client.HTTPConnection("127.0.0.1", port)
        idle.request("GET", "/healthz")
        self.assertEqual(idle.getresponse().read(), b'{"alive":true}\n')
        busy = http.client.HTTPConnection("127.0.0.1", port)
        busy.request("POST", "/v1/sql", json.dumps({"sql": ENDLESS}), {"Accept": "application/x-ndjson"})
        answer = busy.getresponse()
        self.assertEqual(answer.status, 200)
        process.send_signal(signal.SIGTERM)
        try:
            rows = answer.read()
        except http.client.IncompleteRead as cut:
            rows = cut.partial
        error = json.loads(rows.splitlines()[-1])["error"]
        self.assertEqual(error["status"], 503)
        self.assertIn("the server is stopping", error["detail"])
        self.assertEqual(process.wait(), 0)
        self.assertIn("stopping", process.stdout.read())
        # The store was closed cleanly.
        self.assertEqual(self.tamis("sql", "SELECT count(*) FROM t").returncode, 0)

    def test_second_signal_ends_it_at_once(self):
        self.make_store()
        process, port, _ = self.serve("--drain-time", "1000")
        busy = http.client.HTTPConnection("127.0.0.1", port)
        busy.request("POST", "/v1/sql", json.dumps({"sql": ENDLESS.replace("SELECT x FROM", "SELECT sum(x) FROM")}))
        while True:
            other = http.client.HTTPConnection("127.0.0.1", port)
            other.request("GET", "/metrics")
            if b"tamis_statements_running 1" in other.getresponse().read():
                break
        process.send_signal(signal.SIGINT)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), -signal.SIGINT)

    def test_token_and_tls(self):
        self.make_store()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       cwd=self.work, check=True, capture_output=True)
        with open(os.path.join(self.work, "token"), "w", encoding="ascii") as file:
            file.write("0123456789abcdef\n")
        _, port, said = self.serve("--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
        self.assertIn("https://127.0.0.1:", said)
        context = ssl.create_default_context(cafile=os.path.join(self.work, "cert.pem"))
        for headers, status in (({}, 401), ({"Authorization": "Bearer 0123456789abcdef"}, 200)):
            connection = http.client.HTTPSConnection("localhost", port, context=context)
            connection.request("POST", "/v1/sql", json.dumps({"sql": "SELECT count(*) FROM t"}), headers)
            answer = connection.getresponse()
            self.assertEqual(answer.status, status)
            answer.read()
            connection.close()

    def make_certificate(self, name, *more):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out",
                        name + ".pem", "-days", "2", "-subj", "/CN=" + name, *more],
                       cwd=self.work, check=True, capture_output=True)

    def test_clients_with_a_certificate_need_no_token(self):
        self.make_store()
        self.make_certificate("localhost", "-addext", "subjectAltName=DNS:localhost")
        self.make_certificate("client")
        self.make_certificate("stranger")
        _, port, said = self.serve("--tls-cert", "localhost.pem", "--tls-key", "localhost.key", "--tls-client-ca", "client.pem")
        self.assertIn("to clients with a certificate", said)
        for name in ("client", "stranger", None):
            context = ssl.create_default_context(cafile=os.path.join(self.work, "localhost.pem"))
            if name:
                context.load_cert_chain(os.path.join(self.work, name + ".pem"), os.path.join(self.work, name + ".key"))
            connection = http.client.HTTPSConnection("localhost", port, context=context)
            if name == "client":
                connection.request("POST", "/v1/sql", json.dumps({"sql": "SELECT count(*) FROM t"}))
                self.assertEqual(connection.getresponse().status, 200)
            else:
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    connection.request("GET", "/healthz")
                    connection.getresponse()
            connection.close()

    def query(self, name):
        return subprocess.run([TAMIS, "--store", name, "sql", "--format", "csv", "SELECT count(*) AS n FROM t"], cwd=self.work,
                              capture_output=True, text=True)

    def test_our_client_checks_the_server_and_shows_its_certificate(self):
        self.make_store()
        self.make_certificate("localhost", "-addext", "subjectAltName=DNS:localhost")
        self.make_certificate("client")
        self.make_certificate("stranger")
        with open(os.path.join(self.work, "both.pem"), "w", encoding="ascii") as both:
            for part in "client.pem", "client.key":
                with open(os.path.join(self.work, part), encoding="ascii") as file:
                    both.write(file.read())
        _, port, _ = self.serve("--tls-cert", "localhost.pem", "--tls-key", "localhost.key", "--tls-client-ca", "client.pem")
        server = f"https://localhost:{port}"
        for options in "ca=localhost.pem&cert=client.pem&key=client.key", "ca=localhost.pem&cert=both.pem":
            found = self.query(f"{server}?{options}")
            self.assertEqual((found.stdout, found.returncode), ("n\n0\n", 0), found.stderr)
        for name, reason in ((f"{server}?ca=localhost.pem", "certificate required"),
                             (f"{server}?ca=localhost.pem&cert=stranger.pem&key=stranger.key", "unknown ca"),
                             (f"{server}?ca=localhost.pem&cert=client.pem&key=stranger.key", "stranger.key"),
                             (f"{server}?ca=localhost.pem&cert=none.pem", "none.pem"),
                             (f"{server}?ca=localhost.pem&key=client.key", "a key and no certificate"),
                             (f"{server}?ca=client.pem&cert=both.pem", "certificate"),
                             (f"{server}?cert=both.pem", "certificate"),
                             (f"https://127.0.0.1:{port}?ca=localhost.pem&cert=both.pem", "127.0.0.1")):
            refused = self.query(name)
            self.assertEqual(refused.returncode, 1, name)
            self.assertIn("cannot open store", refused.stderr)
            self.assertIn(reason, refused.stderr)
        # The extension uses the same client.
        connection = sqlite3.connect(":memory:")
        connection.enable_load_extension(True)
        connection.load_extension(EXTENSION)
        os.chdir(self.work)
        self.addCleanup(os.chdir, "/")
        with self.assertRaisesRegex(sqlite3.OperationalError, "certificate required"):
            connection.execute("SELECT tamis_open(?)", (f"{server}?ca=localhost.pem",))
        connection.execute("SELECT tamis_open(?)", (f"{server}?ca=localhost.pem&cert=both.pem",))
        self.assertEqual(connection.execute("SELECT count(*) FROM t").fetchall(), [(0,)])
        connection.close()

    def test_a_resumed_session_keeps_the_certificate_of_its_client(self):
        self.make_store()
        self.make_certificate("localhost", "-addext", "subjectAltName=DNS:localhost")
        self.make_certificate("client")
        _, port, _ = self.serve("--tls-cert", "localhost.pem", "--tls-key", "localhost.key", "--tls-client-ca", "client.pem")

        def ask(context, session=None):
            with socket.create_connection(("localhost", port)) as plain:
                with context.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
                    secure.sendall(b"GET /v1/tables HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    answer = b""
                    while part := secure.recv(4096):
                        answer += part
                    return answer[:12], secure.session, secure.session_reused

        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            context = ssl.create_default_context(cafile=os.path.join(self.work, "localhost.pem"))
            context.minimum_version = context.maximum_version = version
            context.load_cert_chain(os.path.join(self.work, "client.pem"), os.path.join(self.work, "client.key"))
            answer, session, _ = ask(context)
            self.assertEqual(answer, b"HTTP/1.1 200")
            answer, _, was_reused = ask(context, session)
            self.assertEqual((answer, was_reused), (b"HTTP/1.1 200", True), version)
            # Another process of the server does not know the session, and asks for the certificate.
            stranger = ssl.create_default_context(cafile=os.path.join(self.work, "localhost.pem"))
            stranger.minimum_version = stranger.maximum_version = version
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                ask(stranger)

    def test_options_come_from_a_file_and_the_command_line_comes_first(self):
        self.make_store()
        shutil.copy(CONFIGURATION, os.path.join(self.work, "server.conf"))
        with open(os.path.join(self.work, "server.conf"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(self.work, "server.conf"), "w", encoding="utf-8") as file:
            file.write(text.replace("/var/lib/tamis/store", "shop").replace("write = false", "write = true"))
        process = subprocess.Popen([TAMIS, "--config", "server.conf", "serve", "--listen", "127.0.0.1:0"], cwd=self.work,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.assertRegex(process.stdout.readline(), r"shop is served at .*, for reading and writing")
        with open(os.path.join(self.work, "wrong.conf"), "w", encoding="utf-8") as file:
            file.write("[serve]\nlisten-on = 1\n")
        for name, reason in (("wrong.conf", "listen-on"), ("none.conf", "none.conf")):
            wrong = subprocess.run([TAMIS, "--config", name, "serve"], cwd=self.work, capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 2)
            self.assertIn(reason, wrong.stderr)

    def test_the_socket_of_a_service_manager_is_used(self):
        self.make_store()
        for address, refused in (("127.0.0.1", False), ("0.0.0.0", True)):
            with socket.create_server((address, 0)) as listening:
                port = listening.getsockname()[1]
                # Descriptor 3, as systemd gives it, and the number of the process.
                process = subprocess.Popen(
                    ["sh", "-c", f"exec 3<&{listening.fileno()} && LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"", TAMIS, "--store",
                     "shop", "serve"], cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    pass_fds=[listening.fileno()])
            with process:
                if refused:
                    self.assertIn("without a token only programs of this machine", process.stderr.read())
                    continue
                self.assertIn(f"http://127.0.0.1:{port}", process.stdout.readline())
                client = http.client.HTTPConnection("127.0.0.1", port)
                client.request("GET", "/healthz")
                self.assertEqual(client.getresponse().status, 200)
                process.terminate()

    def test_numbers_without_sense_are_refused(self):
        self.make_store()
        for option in "--threads", "--statements", "--sql-memory", "--statement-time", "--idle-time":
            for number in "0", "99999999999":
                refused = self.tamis("serve", option, number)
                self.assertEqual(refused.returncode, 1, option)
                self.assertIn(option + " must be between 1 and", refused.stderr)

    def test_wrong_options_are_refused_with_a_reason(self):
        refused = [(["--listen", "0.0.0.0:0"], "without a token only programs of this machine"),
                   (["--listen", "nowhere"], "give an address and a port"),
                   (["--listen", "name.example:1"], "without a token"),
                   (["--tls-cert", "cert.pem"], "are needed together"),
                   (["--tls-client-ca", "ca.pem"], "needs --tls-cert"),
                   (["--token-file", "none"], 'cannot read a token from "none"'),
                   (["--listen", "127.0.0.1:0"], "shop")]  # the store does not exist
        for arguments, reason in refused:
            ended = self.tamis("serve", *arguments)
            self.assertEqual(ended.returncode, 1, arguments)
            self.assertIn(reason, ended.stderr)
        with open(os.path.join(self.work, "short"), "w", encoding="ascii") as file:
            file.write("secret\n")
        self.assertIn("shorter than 16", self.tamis("serve", "--token-file", "short").stderr)
        self.assertFalse(os.path.exists(os.path.join(self.work, "shop")))
        self.make_store()
        _, port, _ = self.serve()
        taken = subprocess.run([TAMIS, "--store", "other", "serve", "--listen", f"127.0.0.1:{port}"], cwd=self.work,
                               capture_output=True, text=True)
        self.assertEqual(taken.returncode, 1)


if __name__ == "__main__":
    unittest.main()
