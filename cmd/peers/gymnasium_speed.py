"""What stepping environments through envs/gymnasium costs, beside a plain loop in Python and Gymnasium's SyncVectorEnv. Both sides of a row are measured in turn in one run; figures are medians.

Run it with an interpreter that has gymnasium[mujoco], from the root of the repository:

    python cmd/peers/gymnasium_speed.py [ROUNDS]
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium
import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 21
PROGRAM = os.path.join(tempfile.mkdtemp(), "gymnasium")


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


def row(name, ours, theirs, target):
    a, b = statistics.median(ours), statistics.median(theirs)
    pairs = statistics.median(x - y for x, y in zip(ours, theirs))
    print("%-44s ours %8.1f µs   theirs %8.1f µs   difference %8.1f µs   ratio %5.2f   target %s" % (name, a, b, pairs, statistics.median(y / x for x, y in zip(ours, theirs)), target))


def main():
    subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/peers/gymnasium"], check=True)
    print("medians of %d rounds, each measured in turn; gymnasium %s, numpy %s, %d cores" % (ROUNDS, gymnasium.__version__, np.__version__, os.cpu_count()))
    o = Ours("CartPole-v1", 8, 1)
    o.ask("step", 200), o.ask("plain", 200)
    pairs = [(o.ask("step", 500), o.ask("plain", 500)) for _ in range(ROUNDS)]
    o.close()
    row("8 CartPoles, 1 worker / loop in the worker", *zip(*pairs), "difference <= 60 µs")
    for id, envs, workers, steps in (("CartPole-v1", 8, 2, 500), ("HalfCheetah-v5", 8, 2, 150), ("HalfCheetah-v5", 8, 1, 150)):
        o = Ours(id, envs, workers)
        v = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(id)] * envs)
        o.ask("step", steps), sync(v, steps)
        pairs = [(o.ask("step", steps), sync(v, steps)) for _ in range(ROUNDS)]
        row("%d %s, %d workers / SyncVectorEnv" % (envs, id, workers), *zip(*pairs), "ratio > 1" if workers == 2 else "none")
        o.close()
        v.close()


main()
