"""What stepping environments through envs/gymnasium costs, beside a plain loop in Python and Gymnasium's SyncVectorEnv. Both sides of a row are measured in turn, in many short rounds of one run. The median of the rounds and, for machines that do other things too, the tenth of them that took least are printed.

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

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 61
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


def row(name, ours, theirs, target):
    print(name)
    for what, pick in (("median", statistics.median), ("quiet", tenth)):
        a, b = pick(ours), pick(theirs)
        print("  %-8s ours %8.1f µs   theirs %8.1f µs   difference %8.1f µs   theirs / ours %5.2f   target: %s" % (what, a, b, a - b, b / a, target))


def main():
    subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/peers/gymnasium"], check=True)
    os.chdir(TEMP.name)  # MuJoCo writes its log where it is.
    print("%d rounds; gymnasium %s, numpy %s, %d cores" % (ROUNDS, gymnasium.__version__, np.__version__, os.cpu_count()))
    o = Ours("CartPole-v1", 8, 1)
    o.ask("step", 200), o.ask("plain", 200)
    pairs = [(o.ask("step", 150), o.ask("plain", 150)) for _ in range(ROUNDS)]
    o.close()
    row("8 CartPoles, 1 worker / loop in the worker", *zip(*pairs), "difference <= 60 µs")
    for id, envs, workers, steps in (("CartPole-v1", 8, 2, 150), ("HalfCheetah-v5", 8, 2, 30), ("HalfCheetah-v5", 8, 1, 30)):
        o = Ours(id, envs, workers)
        v = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(id)] * envs)
        o.ask("step", steps), sync(v, steps)
        pairs = [(o.ask("step", steps), sync(v, steps)) for _ in range(ROUNDS)]
        row("%d %s, %d workers / SyncVectorEnv" % (envs, id, workers), *zip(*pairs), "ratio > 1" if workers == 2 else "none")
        o.close()
        v.close()


main()
