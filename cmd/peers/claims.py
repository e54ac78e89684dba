"""Trains and judges agents on markets in which nothing can be learnt, and on markets in which something can, and counts how many reports claim skill.

Each seed trains a shipped experiment on a market of its own and is evaluated on the test split, by the program itself: synthetic_noise, whose prices are martingales, and synthetic_market with the market leading_indicator, in which a column tells the next move, for 48,000 env steps. A claim is what the report's verdict calls evidence: a deflated Sharpe probability of at least 95 %, and a Sharpe ratio above that of buying and holding by more than its bootstrap interval. How often the probability alone is above 95 %, as it is by luck for one run of noise in twenty, is shown beside it.

The rule, written before the runs: no claim in any run on noise, and a claim in at least four of five where there is something to know. Exit status 1 where that is not so.

Usage: python cmd/peers/claims.py [--onnxrl PATH] [--seeds 100] [--first 1] [--parallel 1] [--out DIR] [noise] [leading]; without a path the program is built first. 200 runs take about 10 minutes of a core.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

MARKETS = {
    "noise": ("synthetic_noise", [], lambda claims, seeds: claims == 0),
    "leading": ("synthetic_market", ["env.data.synthetic.kind=leading_indicator", "env.data.features.extra=[signal]", "train.total_env_steps=48000", "train.validation.every_steps=8000", "train.checkpoint.every_steps=0"], lambda claims, seeds: claims >= 0.8 * seeds),
}
p = argparse.ArgumentParser()
p.add_argument("markets", nargs="*", help="noise and leading, or one of them")
p.add_argument("--onnxrl", help="the program; it is built where none is given")
p.add_argument("--seeds", type=int, default=100)
p.add_argument("--first", type=int, default=1, help="the first seed")
p.add_argument("--parallel", type=int, default=1, help="runs at once, of one thread each")
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

    def judge(experiment, sets, seed):
        dir = out / f"{experiment}-{seed}"
        sets = [*sets, f"seed={seed}", f"env.data.synthetic.seed={seed}", "train.threads=1"]
        run("train", experiment, "--out", dir, *(x for s in sets for x in ("--set", s)))
        # Costs and lags play no part in a claim of a policy that is traded as it was trained.
        return run("evaluate", dir, "--no-report", "--set", "eval.cost_sweep_bp=[]", "--set", "eval.lag=[]")

    seeds, passed = range(args.first, args.first + args.seeds), True
    for market in args.markets or MARKETS:
        experiment, sets, rule = MARKETS[market]
        start, likely, claims, beaten, sharpes, trials = time.time(), [], [], 0, [], set()
        with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
            for seed, r in enumerate(pool.map(lambda seed: judge(experiment, sets, seed), seeds), args.first):
                d = r["deflated_sharpe"]
                trials.add(d["trials"])
                sharpes.append(r["rows"][0]["metrics"]["sharpe"] or 0)
                beaten += r["verdict"]["beats_benchmark"]
                if (d["probability"] or 0) >= 0.95:
                    likely.append(seed)
                if r["verdict"]["evidence"]:
                    claims.append(seed)
                if sys.stderr.isatty():
                    print(f"\r{market} {seed}/{seeds[-1]}, {len(claims)} claims", end="", file=sys.stderr)
        sharpes.sort()
        ok = rule(len(claims), args.seeds)
        passed = passed and ok
        print(json.dumps({
            "market": market, "first": args.first, "seeds": args.seeds, "claims": len(claims), "passed": ok, "which": claims if market == "noise" else sorted(set(seeds) - set(claims)), "above_95_percent": len(likely), "beat_buy_and_hold": beaten, "trials": sorted(trials),
            "annual_sharpe": {q: round(sharpes[int(f * (len(sharpes) - 1))], 2) for q, f in (("5%", 0.05), ("50%", 0.5), ("95%", 0.95))}, "seconds": round(time.time() - start),
        }), flush=True)
    sys.exit(not passed)
