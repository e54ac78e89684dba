"""Environment steps per second beside FinRL's StockTradingEnv, on the same bars (pip install torch stable-baselines3==2.7.0 gymnasium
matplotlib, and FinRL by pip install --no-deps finrl==0.3.7: its other dependencies are brokers and data vendors).

    python cmd/peers/finrl_speed.py ONNXRL BARS.csv[.gz] [ROUNDS]

ONNXRL is the program, BARS.csv daily bars with date, symbol, close and volume. Both step one environment of all symbols over their
common days with random actions, resets included, on one core, in turns; the median of the rounds is printed. FinRL observes the close and
the features of one day, ours a window of 30 days of the same features; FinRL's features are given to it computed.
"""
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd

# The package itself imports the brokers; the environment's file does not.
FILE = importlib.metadata.distribution("finrl").locate_file("finrl/meta/env_stock_trading/env_stocktrading.py")
SPEC = importlib.util.spec_from_file_location("env_stocktrading", FILE)
MODULE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODULE)

FEATURES = ["open", "high", "low", "volume"]  # beside the close, which FinRL has anyway


def theirs(bars):
    symbols = bars.symbol.nunique()
    table = bars.rename(columns={"symbol": "tic"}).sort_values(["date", "tic"]).reset_index(drop=True)
    table.index = table.date.factorize()[0]
    env = MODULE.StockTradingEnv(
        df=table, stock_dim=symbols, hmax=100, initial_amount=1_000_000, num_stock_shares=[0] * symbols, buy_cost_pct=[0.0005] * symbols, sell_cost_pct=[0.0005] * symbols,
        reward_scaling=1e-4, state_space=1 + (2 + len(FEATURES)) * symbols, action_space=symbols, tech_indicator_list=FEATURES, print_verbosity=10**9)
    actions = np.random.default_rng(1).uniform(-1, 1, (64, symbols)).astype(np.float32)
    env.reset()
    state = {"k": 0}

    def step(n):
        start = time.perf_counter()
        for _ in range(n):
            _, _, done, _, _ = env.step(actions[state["k"] & 63])
            state["k"] += 1
            if done:
                env.reset()
        return n / (time.perf_counter() - start)

    return step


def main(onnxrl, path, rounds="9"):
    bars = pd.read_csv(path, parse_dates=["date"])[["date", "symbol", "close"] + FEATURES]
    n = bars.symbol.nunique()
    full = bars.groupby("date").symbol.nunique()
    bars = bars[bars.date.isin(full[full == n].index)]
    days = sorted(bars.date.unique())
    with tempfile.TemporaryDirectory() as d:
        work = pathlib.Path(d)
        bars.to_csv(work / "bars.csv", index=False)
        day = lambda i: str(days[i].date())
        (work / "experiment.yaml").write_text(json.dumps({
            "agent": {"kind": "a2c"},
            "env": {"kind": "trading", "window": 30, "data": {
                "source": {"path": str(work / "bars.csv")}, "features": {"indicators": {}}, "normalization": {"method": "none"},
                "split": {"train": [day(0), day(-200)], "valid": [day(-199), day(-100)], "test": [day(-99), day(-1)]}}}}))
        step = theirs(bars)
        step(50)
        mine, its = [], []
        for _ in range(int(rounds)):
            p = subprocess.run([onnxrl, "bench", "env", str(work / "experiment.yaml"), "--json", "--rounds", "3", "--envs", "1"], capture_output=True, text=True, env={**os.environ, "GOMAXPROCS": "1"})
            if p.returncode != 0:
                sys.exit(p.stderr)
            mine.append(next(r["value"] for r in json.loads(p.stdout)["rows"] if r["name"] == "trading/single"))
            its.append(step(200))
        a, b = statistics.median(mine), statistics.median(its)
        print(f"{n} symbols, {len(days)} days: ours {a:.3g} steps/s, FinRL {b:.3g} steps/s, ratio {a / b:.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
