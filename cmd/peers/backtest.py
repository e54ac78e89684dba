"""The same orders through our back-test, vectorbt and Qlib (pip install vectorbt==0.28.1 plotly==5.24.1 pyqlib==0.9.7).

    python cmd/peers/backtest.py ONNXRL BARS.csv [FIRST LAST]

ONNXRL is the program, BARS.csv daily bars of stocks with the columns of cn_daily or AkShare. They are converted to a folder in Qlib's
format, from which all three read the same float32 prices. The program trains a policy for a moment and evaluates it; its fills and those
of every baseline (moving averages, random policies, buy-and-hold) are what the others execute at the open of each bar. They compute
amounts, fees, cash and values themselves. The largest difference in the portfolio's value on any day must be below a cent.

Costs are those that both sides can express: vectorbt a rate, a least commission, a tax on sales and a spread, the fee written down anew
here; Qlib a rate and a least commission, since its least fee is for commission and tax together and it has no spread.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TQDM_DISABLE"] = "1"  # Qlib draws a bar for each back-test

import numpy as np
import pandas as pd
import qlib
import vectorbt as vbt
from qlib.backtest import backtest
from qlib.backtest.decision import Order, TradeDecisionWO
from qlib.backtest.executor import SimulatorExecutor
from qlib.data import D
from qlib.strategy.base import BaseStrategy

CASH = 1_000_000
# name: (rate, least commission, tax on sales, spread, who executes the orders beside us)
COSTS = {
    "free": (0.0, 0.0, 0.0, 0.0, ["vectorbt", "qlib"]),
    "rate": (0.0005, 0.0, 0.0, 0.0, ["vectorbt", "qlib"]),
    "least commission": (0.0005, 5.0, 0.0, 0.0, ["vectorbt", "qlib"]),
    "A shares": (0.00025, 5.0, 0.001, 0.0002, ["vectorbt"]),
}


def run(*args):
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"{' '.join(map(str, args))}: {p.stdout[-2000:]}{p.stderr[-2000:]}")
    return p.stdout


def ours(onnxrl, work, folder, name, first, last):
    """Trains, evaluates, and reads the fills and the values of every strategy."""
    rate, least, tax, spread, _ = COSTS[name]
    days = pd.DatetimeIndex(D.calendar(start_time=first, end_time=last))[:-1]  # Qlib wants a day after the last
    a, b = days[len(days) // 3], days[len(days) // 2]
    day = lambda d: d.strftime("%Y-%m-%d")
    split = {"train": [day(days[0]), day(a)], "valid": [day(a + pd.Timedelta(days=1)), day(b)], "test": [day(b + pd.Timedelta(days=1)), day(days[-1])]}
    document = {
        "seed": 1, "agent": {"kind": "a2c"}, "train": {"num_envs": 4, "total_env_steps": 400},
        "env": {"kind": "trading", "window": 10, "initial_cash": CASH, "fee_rate": rate,
                "costs": {"minimum": least, "taxes": [{"name": "duty", "from": "1990-01-01", "side": "sell", "rate": tax}], "slippage": {"bp": spread * 1e4}},
                "data": {"source": {"path": str(folder)}, "split": split, "features": {"indicators": {}}}},
        "eval": {"baselines": {"random": [1, 2, 3]}},
    }
    config = work / f"{name}.yaml"
    config.write_text(json.dumps(document))
    out = work / f"run {name}"
    run(onnxrl, "train", config, "-q", "--no-publish", "--out", out)
    run(onnxrl, "evaluate", out, "--out", work / f"report {name}")
    read = lambda table: pd.read_csv(work / f"report {name}" / f"{table}.csv", parse_dates=["date"])
    return read("trades"), read("equity")


def by_vectorbt(trades, prices, name):
    """The value on each day of a portfolio that executes the trades."""
    rate, least, tax, spread, _ = COSTS[name]
    open_, close = prices
    signed = trades.assign(size=np.where(trades.side == "buy", trades.shares, -trades.shares))
    size = signed.pivot_table(index="date", columns="asset", values="size", aggfunc="sum").reindex(index=close.index, columns=close.columns)
    if int(size.notna().sum().sum()) != len(trades):
        sys.exit(f"{name}: an asset was traded twice on a day")
    price = open_ * np.where(size > 0, 1 + spread, 1 - spread)
    amount = size.abs() * price
    fee = np.maximum(rate * amount, least) + np.where(size < 0, tax, 0) * amount
    p = vbt.Portfolio.from_orders(close=close, size=size, price=price, fixed_fees=fee.fillna(0), init_cash=CASH, cash_sharing=True, group_by=True, call_seq="auto", freq="1D", raise_reject=False)
    if p.orders.count() != len(trades):
        sys.exit(f"{name}: vectorbt executed {p.orders.count()} of {len(trades)} orders")
    return p.value(), len(trades)


class Given(BaseStrategy):
    """Decides what is in a table of trades."""

    def __init__(self, trades, **kwargs):
        super().__init__(**kwargs)
        self.days = dict(tuple(trades.groupby("date")))

    def generate_trade_decision(self, execute_result=None):
        start, end = self.trade_calendar.get_step_time(self.trade_calendar.get_trade_step())
        day = self.days.get(pd.Timestamp(start).normalize())
        orders = [] if day is None else [
            Order(stock_id=r.asset, amount=r.shares, direction=Order.BUY if r.side == "buy" else Order.SELL, start_time=start, end_time=end) for r in day.itertuples()]
        return TradeDecisionWO(orders, self)


def by_qlib(trades, prices, name, first, last):
    rate, least, *_ = COSTS[name]
    exchange = dict(freq="day", codes=list(prices[1].columns), deal_price="$open", open_cost=rate, close_cost=rate, min_cost=least, trade_unit=None, limit_threshold=None)
    executor = SimulatorExecutor(time_per_step="day", generate_portfolio_metrics=True)
    metrics, indicators = backtest(first, last, Given(trades), executor, benchmark=pd.Series(0.0, index=prices[1].index), account=CASH, exchange_kwargs=exchange)
    report, _ = next(iter(metrics.values()))
    done = next(iter(indicators.values()))[0]["count"].sum()
    if int(done) != len(trades):
        sys.exit(f"{name}: Qlib executed {int(done)} of {len(trades)} orders")
    return report.account, len(trades)


def main(onnxrl, bars, first="2014-06-01", last="2020-12-31"):
    with tempfile.TemporaryDirectory() as d:
        work = pathlib.Path(d)
        folder = work / "qlib"
        run(onnxrl, "data", "convert", bars, "--out", folder)
        qlib.init(provider_uri=str(folder), region="cn", kernels=1, expression_cache=None, dataset_cache=None, logging_level=40)
        for name, (*_, peers) in COSTS.items():
            trades, equity = ours(onnxrl, work, folder, name, first, last)
            days = pd.DatetimeIndex(sorted(equity.date.unique()))
            table = D.features(D.instruments("all"), ["$open", "$close"], str(days[0].date()), str(days[-1].date())).astype(float)
            column = lambda c: table[c].unstack("instrument").reindex(days)
            prices = column("$open"), column("$close").ffill()
            for peer in peers:
                worst, orders, strategies = 0.0, 0, 0
                for strategy, mine in equity.groupby("strategy"):
                    its = trades[trades.strategy == strategy]
                    if its.empty:
                        continue
                    if peer == "vectorbt":
                        value, n = by_vectorbt(its, prices, name)
                    else:
                        value, n = by_qlib(its, prices, name, days[0], days[-1])
                    both = pd.concat([mine.set_index("date").value, value.rename("its")], axis=1).dropna()
                    if len(both) != len(mine):
                        sys.exit(f"{name}, {peer}, {strategy}: {len(both)} of {len(mine)} days")
                    gap = (both.value - both.its).abs()
                    if gap.max() > worst:
                        worst, where = gap.max(), f"{strategy} on {gap.idxmax().date()}"
                    orders, strategies = orders + n, strategies + 1
                print(f"{name}, {peer}: {strategies} strategies, {orders} orders, {len(days)} days, largest difference {worst:.2g} of {CASH}" + (f" ({where})" if worst else ""))
                if not worst < 0.01 or strategies < 5:
                    sys.exit(f"{name}, {peer}: expected at least 5 strategies and less than 0.01")


if __name__ == "__main__":
    main(*sys.argv[1:])
