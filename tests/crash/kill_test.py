"""kill -9 at random moments, while rows are written and regions split: whatever was acknowledged is
there after reopening, by key and by each index. Between the kills the store is also closed in good
order, so that filters are restored, written to, and lost again.

usage: kill_test.py CRASH_STORE [KILLS] [SEED]
"""
import random
import shutil
import subprocess
import sys
import tempfile
import threading


def main():
    program = sys.argv[1]
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20260101
    rng = random.Random(seed)
    print(f"{kills} kills, seed {seed}")
    store = tempfile.mkdtemp(prefix="tamis_kill_test.")
    last = -1
    rounds = []
    try:
        closed = 0
        for kill in range(kills):
            # A writer with few batches closes the store, unless it is killed before or meanwhile.
            batches = [str(rng.randint(1, 20))] if rng.random() < 0.4 else []
            is_killed = not batches or rng.random() < 0.4
            writer = subprocess.Popen([program, "write", store, str(last + 1), *batches],
                                      stdout=subprocess.PIPE, text=True)
            # Killed by a timer of its own, at any point of opening, writing or splitting.
            timer = threading.Timer(rng.uniform(0.02, 1.2), writer.kill)
            if is_killed:
                timer.start()
            for line in writer.stdout:
                if line.endswith("\n"):
                    last = int(line)
            status = writer.wait()
            timer.cancel()
            if status != -9 and not (batches and status == 0):
                sys.exit(f"kill {kill}: the writer ended by itself with status {status}")
            closed += status == 0
            if rng.random() < 0.3:
                continue  # the next writer finds what this one left
            verifier = subprocess.run([program, "verify", store, str(last)], stdout=subprocess.PIPE,
                                      text=True)
            if verifier.returncode != 0:
                sys.exit(f"kill {kill} (seed {seed}): what was acknowledged is not there, up to row {last}")
            rounds.append(verifier.stdout.strip())
        print(f"{last + 1} rows acknowledged, {closed} writers closed the store; in the end {rounds[-1]}")
        if closed == 0:
            sys.exit("no writer closed the store")
        if last < 1000:
            sys.exit("too few rows were written for the test to mean anything")
    finally:
        shutil.rmtree(store)


main()
