"""Each preset that Debian's g++ can build configures, and ninja knows how to make its targets.

The tests are built by the preset dev alone; a slip in a CMakeLists.txt that breaks ./run, bench/run or the filter library
on its own would stay unseen.

usage: presets_test.py SOURCE
"""

import pathlib
import subprocess
import sys
import tempfile

PRESETS = {
    "release": ["tamis", "tamis_extension", "tamis_redis", "guard_traffic", "published_figures"],
    "bench": ["all"],
    "filter": ["all"],
}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(command)}\n{done.stdout[-4000:]}")


def main():
    source = pathlib.Path(sys.argv[1])
    for preset, targets in PRESETS.items():
        with tempfile.TemporaryDirectory() as build:
            run("cmake", "--preset", preset, "-S", str(source), "-B", build)
            run("ninja", "-C", build, "-n", *targets)
        print(f"{preset}: {' '.join(targets)}")


if __name__ == "__main__":
    main()
