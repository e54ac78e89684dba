"""Writes the market data of the demo: daily bars of AAPL, FB, GOOG, IBM and MSFT from 2000-03-01 to 2013-03-01 as one Parquet file.

The bars are those of bokeh_sampledata 2026.1 (pip install bokeh_sampledata==2026.1; the package is BSD-3-Clause), which took them from the archive of Quandl WIKI Prices. Quandl declared that database to be in the public domain
and permitted its redistribution; the package records the proof in licenses/datasets.json under "stocks". GOOG holds Google's history before 2014, which the archive files under GOOGL.

Nothing is changed: open, high, low, close and volume are as traded, adj_close is adjusted for splits and dividends up to the archive's end. What is stored is checked before it is written: one common calendar from each listing
on, prices that are positive and consistent, and steps of adj_close/close that are exactly the three known splits, besides dividends. So adjusted bars are open, high, low and close times adj_close/close, and volumes, which
nobody has adjusted, must be corrected for the splits (source.adjust_volume: splits).

Equal versions of pyarrow give equal bytes. Usage: python cmd/peers/demo_data.py configs/experiments/market/us5_daily.parquet
"""
import sys

import bokeh_sampledata.stocks as stocks
import pyarrow as pa
import pyarrow.parquet as pq

PRICES = ["open", "high", "low", "close", "adj_close"]
SPLITS = {("AAPL", "2000-06-21"), ("AAPL", "2005-02-28"), ("MSFT", "2003-02-18")}


def check(d):
    assert not d.duplicated(["ticker", "date"]).any() and (d[PRICES] > 0).all(axis=None) and (d.volume > 0).all()
    assert (d.high >= d[["open", "close", "low"]].max(axis=1)).all() and (d.low <= d[["open", "close"]].min(axis=1)).all()
    calendar, splits = sorted(set(d.date)), set()
    for ticker, g in d.groupby("ticker"):
        assert list(g.date) == [t for t in calendar if t >= g.date.min()], f"{ticker} has gaps"
        factor = g.adj_close / g.close
        step = (factor / factor.shift()).fillna(1)
        assert (step >= 0.999).all(), f"{ticker}: an adjustment that falls"
        for date, ratio in zip(g.date, step):
            if ratio > 1.2:  # the largest dividend is Microsoft's of 2004-11-15, 11 %
                assert abs(ratio - 2) < 0.01, f"{ticker} {date}: {ratio} is no split of 2:1"
                splits.add((ticker, f"{date:%Y-%m-%d}"))
    assert splits == SPLITS, splits


d = stocks.data.sort_values(["ticker", "date"], kind="stable").reset_index(drop=True)
check(d)
table = pa.table({
    "date": pa.array(d.date.dt.date, pa.date32()), "symbol": pa.array(d.ticker, pa.string()),
    **{c: pa.array(d[c], pa.float64()) for c in PRICES}, "volume": pa.array(d.volume, pa.int64()),
})
pq.write_table(table, sys.argv[1], compression="zstd", compression_level=19, row_group_size=4096, store_schema=False)
print(f"{table.num_rows} rows")
