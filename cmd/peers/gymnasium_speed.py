"""What stepping environments through envs/gymnasium costs, beside a plain loop in Python and Gymnasium's SyncVectorEnv. Both sides of a row are measured in turn, in many short rounds of one run. The median of the rounds and, for machines that do other things too, the tenth of them that took least are printed.

Run it with an interpreter that has gymnasium[mujoco], from the root of the repository:

    python cmd/peers/gymnasium_speed.py [--rounds N] [--json] [--check]

--check makes the exit status 1 where the median of a row misses its target.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium
import numpy as np

ROUNDS, OUT = 61, sys.stdout
TEMP = tempfile.TemporaryDirectory()
PROGRAM = os.path.join(TEMP.name, "gymnasium")


class Ours:
    def __init__(self, id, envs, workers):
        self.p = subprocess.Popen(
            [PROGRAM, "-id", id, "-envs", str(envs), "-workers", str(workers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "ONNXRL_PYTHON": sys.executable},
        )

    def ask(self, command, steps):
        """Microseconds per step of all environments."""
        self.p.stdin.write("%s %d\n" % (command, steps))
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline()) / 1e3

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def sync(v, steps):
    wheel = [v.action_space.sample() for _ in range(64)]
    v.reset(seed=1)
    start = time.perf_counter()
    for k in range(steps):
        v.step(wheel[k & 63])
    return (time.perf_counter() - start) / steps * 1e6


def tenth(x):
    return sorted(x)[len(x) // 10]


# What rows have to meet, by their medians.
TARGETS = {"difference <= 60 µs": lambda a, b: a - b <= 60, "ratio > 1": lambda a, b: b / a > 1, "none": lambda a, b: True}


def row(name, ours, theirs, target):
    print(name, file=OUT)
    for what, pick in (("median", statistics.median), ("quiet", tenth)):
        a, b = pick(ours), pick(theirs)
        print("  %-8s ours %8.1f µs   theirs %8.1f µs   difference %8.1f µs   theirs / ours %5.2f   target: %s" % (what, a, b, a - b, b / a, target), file=OUT)
    a, b = statistics.median(ours), statistics.median(theirs)
    return {"row": name, "ours_us": a, "theirs_us": b, "ours_tenth_us": tenth(ours), "theirs_tenth_us": tenth(theirs), "target": target, "met": TARGETS[target](a, b)}


def main():
    global ROUNDS, OUT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    ROUNDS, OUT = args.rounds, sys.stderr if args.json else sys.stdout
    rows = []
    subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/peers/gymnasium"], check=True)
    os.chdir(TEMP.name)  # MuJoCo writes its log where it is.
    print("%d rounds; gymnasium %s, numpy %s, %d cores" % (ROUNDS, gymnasium.__version__, np.__version__, os.cpu_count()), file=OUT)
    o = Ours("CartPole-v1", 8, 1)
    o.ask("step", 200), o.ask("plain", 200)
    pairs = [(o.ask("step", 150), o.ask("plain", 150)) for _ in range(ROUNDS)]
    o.close()
    rows.append(row("8 CartPoles, 1 worker / loop in the worker", *zip(*pairs), "difference <= 60 µs"))
    for id, envs, workers, steps in (("CartPole-v1", 8, 2, 150), ("HalfCheetah-v5", 8, 2, 30), ("HalfCheetah-v5", 8, 1, 30)):
        o = Ours(id, envs, workers)
        v = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(id)] * envs)
        o.ask("step", steps), sync(v, steps)
        pairs = [(o.ask("step", steps), sync(v, steps)) for _ in range(ROUNDS)]
        rows.append(row("%d %s, %d workers / SyncVectorEnv" % (envs, id, workers), *zip(*pairs), "ratio > 1" if id != "CartPole-v1" and workers == 2 else "none"))
        o.close()
        v.close()
    if args.json:
        print(json.dumps({"rounds": ROUNDS, "rows": rows}, indent=1))
    if args.check and not all(r["met"] for r in rows):
        sys.exit(1)


main()
