"""Makes the samples of "onnxrl scml samples" with pandas and ast.literal_eval, and compares them.

Run it from the root of the repository:

    python3 cmd/peers/scml_samples.py [--configs 13] [--days 10,14] [--logs DIR] [--env DIR] [--onnxrl PROGRAM]

Without --logs it lets onnxrl play a tournament of four agents, of four worlds for each configuration, and takes its folder. Macro samples are compared in all numbers (observations, goals, rewards), micro
samples in the history, the action and the identifier of each decision, and in what was offered; what the first layer would have answered is not computed here. The numbers are float32 computed in float64
on both sides, and must be the same bits. The exit status is 1 if they are not, or if onnxrl is less than 20 times as fast.

The packages are installed by pip in an environment below the temporary folder, unless --env names one.
"""
import argparse
import ast
import glob
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv

PACKAGES = ["pandas==2.2.3", "numpy==1.26.4", "pyarrow==17.0.0"]


def enter(folder):
    """Continues in the environment of the packages, which it makes if there is none."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q"] + PACKAGES, check=True)
        open(os.path.join(folder, "complete"), "w").close()
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python] + sys.argv)


parser = argparse.ArgumentParser()
parser.add_argument("--configs", type=int, default=13)
parser.add_argument("--days", default="10,14")
parser.add_argument("--logs")
parser.add_argument("--env", default=os.path.join(tempfile.gettempdir(), "onnxrl-scml-samples"))
parser.add_argument("--onnxrl")
arguments = parser.parse_args()
enter(arguments.env)

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

STATIC, TEMPORAL, ROLE, HORIZON, AHEAD = 16, 10, 2, 40, 10
MOVES, MOVE = 20, 6
FIRST = [0, 1, 2, 4]  # days ahead at which a bucket of days of delivery begins
MOST, LINES_TARGET, BUY_AT, SCALE = 1.5, 0.7, 0.5, 100


def bucket(ahead):
    return max(b for b in range(4) if ahead >= FIRST[b])


def price(p, low, high):
    return 0.0 if high <= low else (2 * p - low - high) / (high - low)


class World:
    """A folder of a world, read by pandas."""

    def __init__(self, folder):
        with open(os.path.join(folder, "info.json")) as f:
            self.info = json.load(f)
        self.stats = pd.read_csv(os.path.join(folder, "stats.csv"))
        self.contracts = pd.read_csv(os.path.join(folder, "contracts.csv"))
        self.negotiations = pd.read_csv(os.path.join(folder, "negotiations.csv"), keep_default_na=False)
        self.ids = sorted((a for a in self.info["agent_profiles"] if "@" in a), key=lambda a: (self.info["agent_profiles"][a]["input_product"], a))
        self.level = {a: self.info["agent_profiles"][a]["input_product"] for a in self.ids}
        self.days, self.lines = self.info["n_steps"], self.info["n_lines"]
        self.levels = self.info["n_processes"]
        self.catalog = self.info["catalog_prices"]
        self.trading = [list(map(float, self.catalog))] + self.stats[[f"trading_price_{p}" for p in range(self.levels + 1)]].values.tolist()
        self.balance = {a: [float(self.info["agent_initial_balances"][a])] + self.stats["balance_" + a].tolist() for a in self.ids}
        self.stock = {a: [0] + self.stats["inventory_input_" + a].tolist() for a in self.ids}
        self.bankrupt = {a: [False] + [bool(x) for x in self.stats["bankrupt_" + a]] for a in self.ids}

    def box(self, product, day):
        t = self.trading[day][product]
        low, high = max(1, int(t * (1 - 0.1))), int((1 + 0.1) * t)
        return min(low, high), max(low, high)


def macro(w):
    """The macro samples of all factories: observations, goals and rewards."""
    outside = {a: np.zeros((2, w.days, 2)) for a in w.ids}  # quantity and money
    signed = {a: [[] for _ in range(w.days)] for a in w.ids}
    for c in w.contracts.itertuples():
        if c.seller == "SELLER":
            outside[c.buyer][0, c.delivery_time] += (c.quantity, c.quantity * c.unit_price)
        elif c.buyer == "BUYER":
            outside[c.seller][1, c.delivery_time] += (c.quantity, c.quantity * c.unit_price)
        else:
            for side, a in enumerate((c.buyer, c.seller)):
                signed[a][c.signed_at].append((side, c.delivery_time, c.quantity, c.unit_price, w.level[c.buyer]))
    count = [sum(w.level[a] == level for a in w.ids) for level in range(w.levels)]
    market = []
    for day in range(w.days):
        row = np.zeros(16, dtype=np.float32)
        for level in range(min(w.levels, 4)):
            row[4 * level] = np.float32(count[level] / 6)
        for a in w.ids:
            if w.level[a] < 4:
                r = row[4 * w.level[a]:]
                if w.bankrupt[a][day]:
                    r[1] += np.float32(1 / count[w.level[a]])
                r[2] += np.float32(w.stock[a][day] / (10 * w.lines) / count[w.level[a]])
                r[3] += np.float32(w.balance[a][day] / w.balance[a][0] / count[w.level[a]])
        market.append(row)
    for a in w.ids:
        level, profile = w.level[a], w.info["agent_profiles"][a]
        aims = np.zeros((w.days, 2, 4))
        worst = np.full((w.days, 2, 4), np.nan)
        for day in range(w.days):
            for side, when, quantity, unit, product in signed[a][day]:
                b, p = bucket(when - day), price(unit, *w.box(product, day))
                aims[day, side, b] += quantity
                if math.isnan(worst[day, side, b]):
                    worst[day, side, b] = p
                else:
                    worst[day, side, b] = (max, min)[side](worst[day, side, b], p)
        filled = [[pd.Series(worst[:, side, b]).bfill().ffill().to_numpy() for b in range(4)] for side in range(2)]
        book = np.zeros((2, w.days + 1, 2))  # what is agreed by day of delivery
        seen = [0, 0]
        for day in range(w.days):
            supply, demand = outside[a][0, day], outside[a][1, day]
            seen[0] += int(supply[0])
            seen[1] += int(demand[0])
            expected = [min(x // (day + 1), w.lines) for x in seen]
            into, out = w.trading[day][level], w.trading[day][level + 1]
            balance, initial, stock = w.balance[a][day], w.balance[a][0], w.stock[a][day]
            static = np.array([
                balance / initial, stock / w.lines, profile["cost"] / out, profile["storage_cost_mean"] * 10, profile["shortfall_penalty_mean"], day / w.days, (w.days - day) / 200,
                into / w.catalog[level], out / w.catalog[level + 1], supply[0] / w.lines, demand[0] / w.lines, (out - into - profile["cost"]) / out,
                (count[level - 1] if level > 0 else 0) / 6, (count[level + 1] if level + 1 < w.levels else 0) / 6, count[level] / 6, level / (w.levels - 1),
            ], dtype=np.float64).astype(np.float32)
            temporal, s = np.zeros((HORIZON + 1, TEMPORAL)), stock
            for i in range(HORIZON + 1):
                here = day + i < w.days and i <= 10
                buys, sells = (book[0, day + i], book[1, day + i]) if here else (np.zeros(2), np.zeros(2))
                comes, owed = (supply[0], demand[0]) if i == 0 else expected if day + i < w.days else (0, 0)
                total, due = buys[0] + comes, sells[0] + owed
                made = min(s + total, w.lines, due)
                temporal[i] = (
                    buys[0] / w.lines, sells[0] / w.lines, buys[1] / buys[0] / into - 1 if buys[0] else 0, sells[1] / sells[0] / out - 1 if sells[0] else 0, comes / w.lines, owed / w.lines, s / w.lines,
                    (due - made) / w.lines, day + i < w.days, here,
                )
                s += max(0, total - made)
            goal = np.zeros(16)
            for b in range(4):
                ahead = FIRST[b]
                known = b < 3 and day + ahead < w.days
                for side in range(2):
                    agreed = int(book[side, day + ahead, 0]) if known else 0
                    want, at = 0, 0.0
                    if known and side == 0:
                        want, at = max(0, int(LINES_TARGET * w.lines) - stock - agreed), BUY_AT
                    elif known:
                        want, at = max(0, min(w.lines, int(LINES_TARGET * w.lines) + stock) - agreed), -1.0
                    p = filled[side][b][day]
                    p = at if math.isnan(p) else min(max(p, -1), 1)
                    goal[4 * b + 2 * side] = min(max((aims[day, side, b] - want) / w.lines, -1), 1)
                    goal[4 * b + 2 * side + 1] = (p - at) / 2
            reward = SCALE * (w.balance[a][day + 1] - balance) / initial
            yield static, temporal.astype(np.float32).ravel(), market[day], goal.astype(np.float32), reward
            for side, when, quantity, unit, _ in signed[a][day]:
                book[side, when] += (quantity, quantity * unit)


def micro(w, number):
    """The micro samples: history, action and identifier of each decision, in the order of the data set."""
    index = {a: i for i, a in enumerate(w.ids)}
    rows = [(n.sim_step, k, n) for k, n in enumerate(w.negotiations.itertuples())]
    for day, k, n in sorted(rows, key=lambda r: r[:2]):
        issues = dict((x.split(":")[0], ast.literal_eval(x.split(":")[1].strip())) for x in ast.literal_eval(n.issues))
        low, high = issues["unit_price"]
        offers = [o for r in ast.literal_eval(n.history) for _, o in r["new_offers"] if o is not None]
        partner = n.seller if n.caller == n.buyer else n.buyer
        sides = [n.caller, partner]
        agreed = n.agreement not in ("", "None")
        decided = str(n.broken) == "True" and n.ended_at == n.sim_step
        for side in sorted(range(2), key=lambda s: index[sides[s]]):
            # The caller hears of its partner's offers in the next round.
            moves = [(q / w.lines, (t - day) / AHEAD, price(p, low, high), ((i + (side == 0)) // 2 + 1) / 21) for i, (q, t, p) in enumerate(offers)]
            for i in range(side, len(offers) + 1, 2):
                if i == len(offers) and not agreed and not decided:
                    continue
                history = np.zeros((MOVES, MOVE))
                past = list(enumerate(moves[:i]))[-MOVES:]
                for r, (m, x) in zip(range(MOVES - len(past), MOVES), past):
                    history[r] = (1, m % 2 == side, *x)
                accepts = i == len(offers) and agreed
                action = [0, 0, 1 if accepts else -1, 1 if i == len(offers) and not agreed else -1, 0]
                if i < len(offers) or accepts:
                    q, t, p = offers[i - 1] if accepts else offers[i]
                    action[0], action[1], action[4] = min(q / (MOST * w.lines), 1), price(p, low, high), min((t - day) / 5 - 1, 1)
                yield history.astype(np.float32).ravel(), np.array(action, dtype=np.float32), (number, k)


def numbers(folder, column):
    """A column of a data set, without final observations."""
    out = []
    for path in sorted(glob.glob(os.path.join(folder, "part-*.parquet"))):
        t = pq.read_table(path, columns=[column, "kind"]).to_pandas()
        t = t[t.kind == 0][column]
        out += t.tolist()
    return np.array(out)


def main(work):
    program = arguments.onnxrl
    if program is None:
        program = os.path.join(work, "onnxrl")
        subprocess.run(["go", "build", "-o", program, "./cmd/onnxrl"], check=True)
    logs = arguments.logs
    if logs is None:
        logs = os.path.join(work, "logs")
        subprocess.run([program, "scml", "tournament", "penguin", "as0", "syncrandom", "greedy", "--configs", str(arguments.configs), "--days", arguments.days, "--logs", logs, "-q"], check=True, stdout=subprocess.DEVNULL)
    samples = os.path.join(work, "samples")
    start = time.perf_counter()
    said = subprocess.run([program, "scml", "samples", logs, "-o", samples, "-q", "--json"], check=True, stdout=subprocess.PIPE).stdout
    reading = json.loads(said)["seconds_reading"]
    ours, ours_memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with open(os.path.join(samples, "samples.json")) as f:
        worlds = [x["path"] for x in json.load(f)["worlds"]]
    size = sum(os.path.getsize(os.path.join(x, "negotiations.csv")) for x in worlds)
    start = time.perf_counter()
    made, moves = [], []
    for i, folder in enumerate(worlds):
        w = World(folder)
        made += macro(w)
        moves += micro(w, i)
    theirs_reading = time.perf_counter() - start
    for rows, path in ((made, "macro"), (moves, "micro")):
        table = pa.table({str(k): list(map(np.ndarray.tolist, (r[k] for r in rows))) if isinstance(rows[0][k], np.ndarray) else [r[k] for r in rows] for k in range(len(rows[0]))})
        pq.write_table(table, os.path.join(work, path + ".parquet"), compression="zstd")
    theirs = time.perf_counter() - start
    differ = 0
    for kind, columns, rows in (("macro", ["obs.static", "obs.temporal", "obs.market", "action", "reward"], made), ("micro", ["obs.history", "action", "obs.id"], moves)):
        for k, column in enumerate(columns):
            want = numbers(os.path.join(samples, kind), column)
            got = np.array([r[k] for r in rows])
            if kind == "macro" and column == "reward":
                same = got.shape == want.shape and np.allclose(got, want, rtol=1e-9, atol=1e-9)
            else:
                same = got.shape == want.shape and (got == want).all()
            wrong = "" if same else f": DIFFER in {(got != want).sum() if got.shape == want.shape else (got.shape, want.shape)} numbers, the first {np.argwhere(got != want)[:1].tolist() if got.shape == want.shape else ''}"
            differ += not same
            print(f"{kind} {column}: {len(want)} samples{wrong}")
    print(f"{len(worlds)} worlds, {size / 1e6:.0f} MB of negotiations, at most {ours_memory / 1024:.0f} MiB")
    print(f"samples in memory: pandas and literal_eval {theirs_reading:.1f} s, onnxrl {reading:.2f} s, {theirs_reading / reading:.0f} times as fast")
    print(f"and written as Parquet: {theirs:.1f} s, {ours:.2f} s with the start of the program, {theirs / ours:.0f} times as fast")
    return differ > 0 or theirs_reading < 20 * reading


with tempfile.TemporaryDirectory() as temp:
    failed = main(temp)
sys.exit(failed)
