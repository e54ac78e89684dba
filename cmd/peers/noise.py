"""Trains and judges agents on markets in which nothing can be learnt, and counts how many reports find skill all the same.

Each seed trains the shipped experiment synthetic_noise on a market of its own and is evaluated on the test split, by the program itself. What counts is what its report says: a deflated Sharpe probability above 95 %, which one run in twenty has by luck, and whether its verdict calls that evidence. Exit status 1
when there are more of these than --allow.

Usage: python cmd/peers/noise.py [--onnxrl PATH] [--seeds 100] [--out DIR]; without a path the program is built first.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

p = argparse.ArgumentParser()
p.add_argument("--onnxrl", help="the program; it is built where none is given")
p.add_argument("--seeds", type=int, default=100)
p.add_argument("--allow", type=int, default=5, help="reports of skill that luck may cause")
p.add_argument("--out", help="folder for the runs, which is kept")
args = p.parse_args()

with tempfile.TemporaryDirectory() as tmp:
    out = pathlib.Path(args.out or tmp)
    program = args.onnxrl
    if not program:
        program = f"{tmp}/onnxrl"
        subprocess.run(["go", "build", "-o", program, "./cmd/onnxrl"], check=True)

    def run(*command):
        done = subprocess.run([program, *map(str, command), "-q", "--json"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
        return json.loads(done.stdout)

    start, found, sharpes, trials, beaten, evidence = time.time(), [], [], set(), 0, 0
    for seed in range(1, args.seeds + 1):
        dir = out / f"seed-{seed}"
        run("train", "synthetic_noise", "--out", dir, "--set", f"seed={seed}", "--set", f"env.data.synthetic.seed={seed}")
        # Bootstrap, costs and lags play no part in the probability.
        r = run("evaluate", dir, "--set", "eval.bootstrap.samples=100", "--set", "eval.cost_sweep_bp=[]", "--set", "eval.lag=[]")
        d = r["deflated_sharpe"]
        trials.add(d["trials"])
        sharpes.append(r["rows"][0]["metrics"]["sharpe"] or 0)
        beaten += r["verdict"]["beats_benchmark"]
        evidence += r["verdict"]["evidence"]
        if (d["probability"] or 0) > 0.95:
            found.append(seed)
        if sys.stderr.isatty():
            print(f"\r{seed}/{args.seeds}, {len(found)} found", end="", file=sys.stderr)
    sharpes.sort()
    print(json.dumps({
        "seeds": args.seeds, "above_95_percent": len(found), "which": found, "allowed": args.allow, "beat_buy_and_hold": beaten, "called_evidence": evidence, "trials": sorted(trials),
        "annual_sharpe": {q: round(sharpes[int(f * (len(sharpes) - 1))], 2) for q, f in (("5%", 0.05), ("50%", 0.5), ("95%", 0.95))}, "seconds": round(time.time() - start),
    }))
    sys.exit(len(found) > args.allow)
