"""Reads what onnxrl writes as a Qlib folder with Qlib, and the other way round (pip install pyqlib==0.9.7 pyarrow).

    python cmd/peers/qlib_folder.py ONNXRL

ONNXRL is the program. Every number is compared bit for bit: calendars, instruments, and fields of daily and 1-minute bars that
`onnxrl data convert` writes and qlib.data.D reads, and fields that Qlib's own storage writes and `onnxrl data prepare` reads.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import qlib
from qlib.data import D
from qlib.data.storage.file_storage import FileCalendarStorage, FileFeatureStorage

FIELDS = ["open", "high", "low", "close", "volume", "factor"]


def random_bars(r, n):
    close = 20 * np.exp(np.cumsum(r.normal(0, 0.02, n)))
    open_ = close * np.exp(r.normal(0, 0.01, n))
    factor = np.where(np.arange(n) < n // 2, 1.0, 1.7)
    return pd.DataFrame({"open": open_, "high": np.maximum(open_, close) * 1.01, "low": np.minimum(open_, close) * 0.99, "close": close,
                         "volume": r.integers(1, 10**7, n).astype(float), "factor": factor})


def start(folder, freq):
    provider = folder if freq == "day" else {freq: folder}
    qlib.init(provider_uri=provider, region="cn", kernels=1, expression_cache=None, dataset_cache=None, logging_level=40)


def equal(what, got, want):
    got, want = np.asarray(got, "<f4").view("<u4"), np.asarray(want, "<f4").view("<u4")
    if got.shape != want.shape or not np.array_equal(got, want):
        sys.exit(f"{what}: {got.shape} and {want.shape}, {int((got != want).sum()) if got.shape == want.shape else '-'} differ")
    return got.size


def ours_by_qlib(onnxrl, work, freq, times):
    r, frames = np.random.default_rng(3), []
    for symbol, first in (("SH600000", 0), ("SZ300001", 7), ("BJ830799", 30)):
        f = random_bars(r, len(times) - first)
        for k in ("open", "high", "low", "close"):
            f[k] /= f.factor  # as quoted
        f.insert(0, "symbol", symbol)
        f.insert(0, "date", times[first:])
        frames.append(f.drop(index=r.integers(1, len(f) - 1, 5)))
    table = pd.concat(frames)
    csv, out = work / f"{freq}.csv", work / f"ours_{freq}"
    table.rename(columns={"factor": "adj_factor"}).to_csv(csv, index=False)
    subprocess.run([onnxrl, "data", "convert", str(csv), "--out", str(out), "--frequency", freq], check=True, stdout=subprocess.DEVNULL)
    start(str(out), freq)
    n = 0
    if list(D.calendar(freq=freq)) != sorted(set(table.date)):
        sys.exit(f"{freq}: the calendars differ")
    for f in frames:
        symbol = f.symbol.iloc[0]
        ranges = D.list_instruments(D.instruments("all"), freq=freq)[symbol]
        if [tuple(x) for x in ranges] != [(f.date.iloc[0], f.date.iloc[-1])]:
            sys.exit(f"{symbol}: the ranges {ranges}")
        got = D.features([symbol], ["$" + k for k in FIELDS], f.date.iloc[0], f.date.iloc[-1], freq=freq).droplevel(0)
        got = got[got["$close"].notna()]
        if list(got.index) != list(f.date):
            sys.exit(f"{symbol}: other times")
        for k in FIELDS:
            want = f[k] * f.factor if k in ("open", "high", "low", "close") else f[k] / f.factor if k == "volume" else f[k]
            n += equal(f"{symbol} {k}", got["$" + k], want)
    return n


def theirs_by_us(onnxrl, work, times):
    folder, r = work / "theirs", np.random.default_rng(4)
    for name in ("calendars", "instruments", "features"):
        (folder / name).mkdir(parents=True)
    (folder / "calendars/day.txt").touch()  # Qlib finds the frequency by it
    start(str(folder), "day")
    FileCalendarStorage(freq="day", future=False).extend([t.strftime("%Y-%m-%d") for t in times])
    frames, ranges = {}, {}
    for symbol, first in (("SH600000", 0), ("SZ300001", 9)):
        f = random_bars(r, len(times) - first).astype("<f4")
        f.iloc[20:23] = np.nan
        (folder / "features" / symbol.lower()).mkdir()
        for k in FIELDS:
            FileFeatureStorage(instrument=symbol, field=k, freq="day").write(f[k].to_numpy(), first)
        frames[symbol], ranges[symbol] = (first, f), (times[first].strftime("%Y-%m-%d"), times[-1].strftime("%Y-%m-%d"))
    # FileInstrumentStorage writes the symbol last, which it does not read itself.
    (folder / "instruments/all.txt").write_text("".join("%s\t%s\t%s\n" % (s, *r) for s, r in ranges.items()))
    out, config = work / "prepared", work / "theirs.yaml"
    config.write_text(json.dumps({"data": {"source": {"path": str(folder)}, "features": {"indicators": {}}, "normalization": {"method": "none"}, "drop_undefined": False,
                                           "window": 2, "split": {"train": [str(times[0].date()), str(times[50].date())], "test": [str(times[51].date()), str(times[-1].date())]}}}))
    subprocess.run([onnxrl, "data", "prepare", str(config), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    manifest = json.loads((out / "manifest.json").read_text())
    prices = pq.read_table(out / manifest["files"]["prices"]["name"]).to_pydict()
    n = 0
    for i, symbol in enumerate(manifest["symbols"]):
        first, f = frames[symbol]
        status = np.asarray(prices["status"], int)[i :: len(frames)][first:]
        if not np.array_equal(status == 1, f.close.notna()):
            sys.exit(f"{symbol}: other bars are traded")
        for k in ("open", "high", "low", "close", "volume"):
            n += equal(f"{symbol} {k}", np.asarray(prices[k], float)[i :: len(frames)][first:][status == 1], f[k][f.close.notna()])
    return n


def main(onnxrl):
    days = pd.bdate_range("2020-01-01", periods=90)
    minutes = pd.DatetimeIndex([d + pd.Timedelta(minutes=571 + m) for d in days[:2] for m in range(60)])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        n = ours_by_qlib(onnxrl, work, "day", days), ours_by_qlib(onnxrl, work, "1min", minutes), theirs_by_us(onnxrl, work, days)
    print("equal bit for bit: %d daily and %d 1-minute numbers that Qlib reads, %d that onnxrl reads" % n)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
