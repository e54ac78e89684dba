"""Runs `onnxrl-bench core` and PyTorch on the same work in turns, and prints how many times faster onnxrl is.

    cmd/peers/core.sh [--rounds 5] [--seconds 0.5] [--rows PATTERN…] [--out FILE] [--check]

Both sides get their best thread count: onnxrl one core or the batch split over two, PyTorch one thread or two, eager and compiled. In each round every contender runs once,
one after the other; the figures are medians over the rounds. Needs Linux or macOS, Python with torch, and for compiled PyTorch a C++ compiler.
"""
import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys

from core_torch import ROWS

# Speed-up that onnxrl is to have: over eager, over compiled. "Faster" and "not slower" are 1.
TARGETS = {"step/critic-2x64-b64": (5, 2), "policy/2x64": (5, 2), "policy/2x256": (5, 2)}
# Rows that onnxrl also runs split over two cores.
PARALLEL = {"step/critic-2x256-b256", "step/timecnn-b64", "step/encoder-b32", "step/timesnet-b32"}


class Torch:
    """A process of core_torch.py; it sleeps while others are measured."""

    def __init__(self, mode, threads):
        self.name = f"torch {mode}, {threads} thread{'s' * (threads > 1)}"
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), KMP_BLOCKTIME="0")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "core_torch.py")
        self.process = subprocess.Popen([sys.executable, script, mode, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name}: ended at {line!r}")
        return json.loads(answer)

    def prepare(self, row):
        self.variant = self.ask(f"prepare {row}")["variant"]

    def measure(self, row, seconds):
        return self.ask(f"measure {row} {seconds}")["us"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    def __init__(self, binary, cores):
        self.name = f"onnxrl, {cores} core{'s' * (cores > 1)}"
        self.binary, self.cores, self.variant = binary, cores, ""

    def prepare(self, row):
        self.row = row if self.cores == 1 else row.replace("step/", "parallel/")

    def measure(self, row, seconds):
        rounds = max(1, round(seconds / 0.02))
        command = [self.binary, "core", "--solo", "--json", "--quiet", "--rounds", str(rounds), self.row]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        (found,) = report["rows"]
        return found["value"]

    def close(self):
        pass


def compare(row, contenders, rounds, seconds):
    sides = [c for c in contenders if not (isinstance(c, Ours) and c.cores > 1 and row not in PARALLEL)]
    for c in sides:
        c.prepare(row)
    figures = {c.name: [] for c in sides}
    for r in range(rounds):
        for c in sides if r % 2 == 0 else reversed(sides):
            figures[c.name].append(c.measure(row, seconds))
    result = {"row": row, "us": figures, "variants": {c.name: c.variant for c in sides}}
    best = {}
    for kind in ["onnxrl", "torch eager", "torch compiled"]:
        medians = {n: statistics.median(v) for n, v in figures.items() if n.startswith(kind)}
        name = min(medians, key=medians.get)
        best[kind] = {"name": name, "us": medians[name]}
    result["best"] = best
    eager, compiled = TARGETS.get(row, (1, 1))
    for kind, target in [("eager", eager), ("compiled", compiled)]:
        speedup = best[f"torch {kind}"]["us"] / best["onnxrl"]["us"]
        result[kind] = {"speedup": speedup, "target": target, "pass": speedup >= target}
    return result


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl-bench", required=True, help="the binary; core.sh builds it")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="time of one measurement")
    p.add_argument("--rows", nargs="*", default=["*"])
    p.add_argument("--out", help="JSON file for all figures")
    p.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    a = p.parse_args()
    rows = [r for r in ROWS if any(fnmatch.fnmatch(r, pattern) for pattern in a.rows)]
    contenders = [Ours(a.onnxrl_bench, 1), Ours(a.onnxrl_bench, 2)] + [Torch(mode, n) for mode in ("eager", "compiled") for n in (1, 2)]
    results, missed = [], 0
    line = "{:24} {:>12} {:>14} {:>7} {:>7} {:5} {:>14} {:>7} {:>7} {:5}  {}"
    print(line.format("row", "onnxrl µs", "eager µs", "ratio", "target", "", "compiled µs", "ratio", "target", "", "best of each side"), flush=True)
    for row in rows:
        r = compare(row, contenders, a.rounds, a.seconds)
        results.append(r)
        cells = [row, f"{r['best']['onnxrl']['us']:.2f}"]
        for kind in ("eager", "compiled"):
            k = r[kind]
            missed += not k["pass"]
            cells += [f"{r['best']['torch ' + kind]['us']:.1f}", f"{k['speedup']:.2f}", f"≥ {k['target']}", "pass" if k["pass"] else "MISS"]
        names = [r["best"][k]["name"] for k in r["best"]]
        cells.append("; ".join(n + (f" ({r['variants'][n]})" if r["variants"][n] else "") for n in names))
        print(line.format(*cells), flush=True)
    for c in contenders:
        c.close()
    if a.out:
        with open(a.out, "w") as f:
            json.dump({"rows": results, "missed": missed}, f, indent=2)
    return 1 if a.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
