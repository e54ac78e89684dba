"""Compares the trading days and half days that onnxrl knows with exchange_calendars' (pip install exchange-calendars==4.13.2).

    python cmd/peers/calendars.py ONNXRL

ONNXRL is the program. Data of one row a day, whole weeks long, are inspected with source.exchange: what the program says of them must be
what exchange_calendars says of the same days, one by one.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import exchange_calendars as ec
import pandas as pd


def inspect(onnxrl, path, exchange):
    out = subprocess.run([onnxrl, "data", "inspect", str(path), "--set", f"source.exchange={exchange}", "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["exchange"]


def main():
    onnxrl, bad = sys.argv[1], 0
    for name, first, last in (("xnys", "1993-01-04", "2027-08-13"), ("xshg", "2005-01-04", "2026-12-31")):
        c = ec.get_calendar(name.upper(), start=first, end=last)
        trading = {d.strftime("%Y-%m-%d") for d in c.schedule.index}
        every = [d.strftime("%Y-%m-%d") for d in pd.date_range(first, last)]
        with tempfile.TemporaryDirectory() as work:
            path = pathlib.Path(work) / "days.csv"
            with path.open("w", newline="") as f:
                w = csv.writer(f)
                w.writerow(["date", "symbol", "open", "high", "low", "close", "volume"])
                w.writerows([d, "A", 1, 1, 1, 1, 1 + i % 9] for i, d in enumerate(every))
            r = inspect(onnxrl, path, name)
        ours = set(every) - {x["date"] for x in r["holidays"]}
        early = {d.strftime("%Y-%m-%d") for d in c.early_closes}
        diff = sorted(ours ^ trading) + sorted(set(r["half_days"]) ^ early)
        print(f"{name}: {len(trading)} trading days from {first} to {last}, {len(early)} half days: {len(diff)} differ {diff[:5]}")
        bad += len(diff)
    sys.exit(bad > 0)


main()
