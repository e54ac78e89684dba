"""Compares the indicators of envs/market/indicator with TA-Lib (pip install TA-Lib pyarrow).

    python cmd/peers/talib_compare.py reference envs/market/indicator/testdata/talib_252.json > envs/market/indicator/testdata/talib_reference.json
    python cmd/peers/talib_compare.py prepared DIR

reference writes what TA-Lib computes on the published bars and on a series with flat prices and bars without volume; a Go test compares
every number. prepared recomputes every feature of a folder that `onnxrl data prepare --set data.normalization.method=none` has written,
from the prices beside them. The folder holds float32, so about 1e-6 of a feature's spread is what can be expected.
"""
import json
import sys

import numpy as np
import talib


def compute(kind, p, o, h, l, c, v):
    """The outputs of one indicator, in the order of the Go table; None where TA-Lib does not have it."""
    p = list(p)
    ints = [int(x) for x in p]
    one = lambda x: [x]
    table = {
        "sma": lambda: one(talib.SMA(c, *ints)),
        "ema": lambda: one(talib.EMA(c, *ints)),
        "rsi": lambda: one(talib.RSI(c, *ints)),
        "macd": lambda: talib.MACD(c, *ints),
        "atr": lambda: one(talib.ATR(h, l, c, *ints)),
        "natr": lambda: one(talib.NATR(h, l, c, *ints)),
        "bbands": lambda: talib.BBANDS(c, ints[0], p[1], p[1]),
        "heikin_ashi": lambda: talib.HA(o, h, l, c),
        "supertrend": lambda: talib.SUPERTREND(h, l, c, ints[0], p[1]),
        "stddev": lambda: one(talib.STDDEV(c, *ints)),
        "roc": lambda: one(talib.ROC(c, *ints)),
        "obv": lambda: one(talib.OBV(c, v)) if ints[0] == 0 else None,
        "mfi": lambda: one(talib.MFI(h, l, c, v, *ints)),
        "stoch": lambda: talib.STOCH(h, l, c, ints[0], ints[1], 0, ints[2], 0),
        "cci": lambda: one(talib.CCI(h, l, c, *ints)),
        "willr": lambda: one(talib.WILLR(h, l, c, *ints)),
        "adx": lambda: (talib.ADX(h, l, c, *ints), talib.PLUS_DI(h, l, c, *ints), talib.MINUS_DI(h, l, c, *ints)),
        "donchian": lambda: talib.DONCHIAN(h, l, *ints),
        "keltner": lambda: talib.KC(h, l, c, ints[0], ints[2], p[1]),
    }
    if kind not in table:
        return None
    out = table[kind]()
    return None if out is None else [np.asarray(x, float) for x in out]


CASES = [
    ("sma", [20]), ("sma", [1]), ("ema", [2]), ("ema", [10]), ("rsi", [14]), ("rsi", [2]), ("macd", [12, 26, 9]), ("macd", [5, 35, 5]), ("atr", [14]), ("atr", [2]),
    ("natr", [14]), ("bbands", [20, 2]), ("bbands", [5, 1.5]), ("heikin_ashi", []), ("supertrend", [10, 3]), ("supertrend", [7, 1.5]),
    ("stddev", [20]), ("roc", [10]), ("obv", [0]), ("mfi", [14]), ("stoch", [5, 3, 3]), ("stoch", [14, 1, 3]), ("cci", [11]), ("cci", [20]),
    ("willr", [14]), ("adx", [14]), ("adx", [5]), ("donchian", [20]), ("keltner", [20, 2, 10]), ("keltner", [10, 1.5, 20]),
]


def series(path):
    bars = json.load(open(path))["bars"]
    yield "published", [np.asarray(bars[k], float) for k in ("open", "high", "low", "close", "volume")]
    r = np.random.default_rng(1)
    n = 160
    c = 50 * np.exp(np.cumsum(r.normal(0, 0.02, n)))
    o = c * np.exp(r.normal(0, 0.01, n))
    h = np.maximum(o, c) * (1 + 0.01 * r.random(n))
    l = np.minimum(o, c) * (1 - 0.01 * r.random(n))
    v = np.round(1e6 * r.random(n))
    # A stock without trading: flat from the first bars on for a while, and again later for longer than every window.
    for a, b in ((0, 6), (70, 110)):
        for x in (o, h, l, c):
            x[a:b] = round(c[a], 4)
        v[a:b] = 0
    o, h, l, c = (np.round(x, 4) for x in (o, h, l, c))
    yield "flat", [o, h, l, c, v]


def reference(path):
    doc = {"source": f"TA-Lib {talib.__ta_version__.decode()} by TA-Lib for Python {talib.__version__}; written by cmd/peers/talib_compare.py", "series": []}
    for name, (o, h, l, c, v) in series(path):
        cases = []
        for kind, p in CASES:
            out = compute(kind, p, o, h, l, c, v)
            first = max(int(np.argmax(~np.isnan(x))) for x in out)
            if kind == "supertrend":  # its direction is 0 before it is defined
                first = int(np.argmax(~np.isnan(out[0])))
            at = sorted(set(range(first, min(first + 4, len(c)))) | set(range(first, len(c), 9)) | {len(c) - 1})
            cases.append({"kind": kind, "params": p, "first": first, "at": at, "values": [[float(x[t]) for t in at] for x in out]})
        bars = {k: [float(x) for x in a] for k, a in zip(("open", "high", "low", "close", "volume"), (o, h, l, c, v))}
        doc["series"].append({"name": name, "bars": bars, "cases": cases})
    json.dump(doc, sys.stdout, separators=(",", ":"))
    print()


def prepared(folder):
    import os

    import pyarrow.parquet as pq

    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    price = pq.read_table(os.path.join(folder, manifest["files"]["prices"]["name"])).to_pydict()
    feature = pq.read_table(os.path.join(folder, manifest["files"]["features"]["name"]))
    if manifest["normalization"]["method"] != "none" or manifest["dropped_rows"] != 0:
        sys.exit("prepare with normalization.method=none and drop_undefined=false, so that values can be compared from the first bar on")
    n = len(manifest["symbols"])
    worst, compared, skipped = 0.0, 0, set()
    for i, symbol in enumerate(manifest["symbols"]):
        status = np.asarray(price["status"], int)[i::n]
        first = int(np.argmax(status > 0))
        o, h, l, c, v = (np.asarray(price[k], float)[i::n][first:] for k in ("open", "high", "low", "close", "volume"))
        seen = {}
        for f in manifest["features"]:
            if f["group"] != "indicators":
                continue
            key = (f["kind"], tuple(f.get("params") or ()))
            if key not in seen:
                seen[key] = compute(f["kind"], key[1], o, h, l, c, v)
            if seen[key] is None:
                skipped.add(f["name"])
                continue
            want = seen[key][f["output"]]
            got = np.asarray(feature[f["name"]], float)[i::n][first:]
            # Rows are zero until every feature of the stock is defined.
            rows = np.asarray(price["defined"], bool)[i::n][first:]
            error = np.abs(got - want)[rows] / max(np.nanstd(want), 1e-12)
            if not np.all(error < 1e-4):
                print(f"{symbol} {f['name']}: differs by {np.nanmax(error):.3g} standard deviations")
            worst = max(worst, float(np.nanmax(error)))
            compared += int(rows.sum())
    print(f"{compared} values compared, largest difference {worst:.3g} standard deviations; not in TA-Lib: {', '.join(sorted(skipped)) or 'none'}")


if __name__ == "__main__":
    {"reference": reference, "prepared": prepared}[sys.argv[1]](sys.argv[2])
