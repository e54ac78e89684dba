"""Compares expressions of envs/market/expression with Qlib's (pip install pyqlib==0.9.7).

    python cmd/peers/qlib_expression.py reference > envs/market/expression/testdata/qlib_reference.json
    python cmd/peers/qlib_expression.py prepared DIR

reference writes what Qlib computes with every operator and for Alpha158 and Alpha360, on a random walk with missing bars, flat prices and
bars without volume; a Go test compares every number. prepared recomputes every factor of a folder that `onnxrl data prepare --set
data.normalization.method=none` has written, from the prices beside them. Qlib is given these in float64: in the float32 of its files two
highs may be equal that are not, and the number of bars since the highest one is another.
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import pandas as pd

ELEMENTWISE = [
    "Abs($close-$open)", "Log($volume+1)", "Sign($close-$open)", "$close+$open*2-1", "$close/$open", "($close-$open)/($high-$low)", "$close**2", "Power($close, 0.5)",
    "Greater($open, $close)", "Less($open, $close)", "$close>$open", "$close>=$open", "$close<$open", "$close<=$open", "$close==$open", "$close!=$open",
    "($close>$open)&($volume>1000)", "($close>$open)|($volume>1000)", "Not($close>$open)", "If($close>$open, $high, $low)", "If($close>$open, 1, $low)",
    "2-$close", "1/$close", "$close*-1", "-1*$close+Abs($open)**2/3",
]
WINDOWS = [
    "Ref($close, %d)", "Delta($close, %d)", "Sum($volume, %d)", "Mean($close, %d)", "Std($close, %d)", "Var($close, %d)", "Max($high, %d)", "Min($low, %d)",
    "IdxMax($high, %d)", "IdxMin($low, %d)", "Quantile($close, %d, 0.8)", "Quantile($close, %d, 0)", "Med($close, %d)", "Mad($close, %d)", "Rank($close, %d)",
    "Count($close, %d)", "Slope($close, %d)", "Rsquare($close, %d)", "Resi($close, %d)", "WMA($close, %d)", "EMA($close, %d)", "Corr($close, $volume, %d)",
    "Cov($close, $volume, %d)", "Mean($close>Ref($close, 1), %d)", "Std(Log($volume/Ref($volume, 1)), %d)", "Skew($close, %d)", "Kurt($close, %d)",
]
NESTED = ["Mean(Ref(Std($close, 5), 3)/Mean($volume, 7), 4)", "EMA(Delta($close, 1), 3)", "EMA($close, 0.3)", "Corr($close/Ref($close,1), Log($volume/Ref($volume, 1)+1), 5)"]


def series(n=150):
    """Fields as Qlib stores them: float32, NaN on days without trading."""
    r = np.random.default_rng(7)
    close = 10 * np.exp(np.cumsum(r.normal(0, 0.02, n)))
    close[60:70] = close[60]
    open_ = close * np.exp(r.normal(0, 0.01, n))
    high, low = np.maximum(open_, close) * 1.01, np.minimum(open_, close) * 0.99
    volume = np.exp(r.normal(7, 0.5, n)).round()
    volume[80:83] = 0
    vwap = (high + low + close) / 3
    fields = dict(open=open_, high=high, low=low, close=close, volume=volume, vwap=vwap)
    for at in (20, 21, 100):
        for f in fields.values():
            f[at] = np.nan
    return {k: v.astype("<f4") for k, v in fields.items()}


def store(folder, fields, dates):
    root = pathlib.Path(folder)
    for name in ("calendars", "instruments", "features/sh600000"):
        (root / name).mkdir(parents=True)
    (root / "calendars/day.txt").write_text("\n".join(d.strftime("%Y-%m-%d") for d in dates) + "\n")
    (root / "instruments/all.txt").write_text(f"SH600000\t{dates[0]:%Y-%m-%d}\t{dates[-1]:%Y-%m-%d}\n")
    for name, values in fields.items():
        np.concatenate([[0], values]).astype("<f4").tofile(root / f"features/sh600000/{name}.day.bin")


def reference():
    import qlib
    from qlib.contrib.data.loader import Alpha158DL, Alpha360DL
    from qlib.data import D

    fields = series()
    n = len(fields["close"])
    dates = pd.bdate_range("2020-01-01", periods=n)
    texts = ELEMENTWISE + [w % d for w in WINDOWS for d in (5, 20)] + NESTED
    with tempfile.TemporaryDirectory() as folder:
        store(folder, fields, dates)
        qlib.init(provider_uri=folder, region="cn", kernels=1, expression_cache=None, dataset_cache=None, logging_level=40)

        def compute(texts, every):
            table = D.features(["SH600000"], texts, dates[0], dates[-1]).droplevel(0).reindex(dates)
            return [[None if not np.isfinite(x) else float(x) for x in table.iloc[::every, i].astype(float)] for i in range(len(texts))]

        doc = {"fields": {k: [None if np.isnan(x) else float(x) for x in v] for k, v in fields.items()}, "expressions": []}
        for every, names in ((1, [(t, t) for t in texts]), (7, zip(*reversed(Alpha158DL.get_feature_config()))), (37, zip(*reversed(Alpha360DL.get_feature_config())))):
            names = list(names)
            for (name, text), values in zip(names, compute([t for _, t in names], every)):
                doc["expressions"].append({"name": name, "text": text, "every": every, "values": values})
    write(doc)


def prepared(folder):
    import qlib
    import pyarrow.parquet as pq
    from qlib.data import D, base

    root = pathlib.Path(folder)
    manifest = json.loads((root / "manifest.json").read_text())
    price = pq.read_table(root / manifest["files"]["prices"]["name"]).to_pydict()
    feature = pq.read_table(root / manifest["files"]["features"]["name"])
    if manifest["normalization"]["method"] != "none" or manifest["dropped_rows"] != 0:
        sys.exit("prepare with normalization.method=none and drop_undefined=false, so that values can be compared from the first bar on")
    n, factors = len(manifest["symbols"]), [f for f in manifest["features"] if f.get("expression")]
    compared, worst = 0, 0.0
    for i, symbol in enumerate(manifest["symbols"]):
        status = np.asarray(price["status"], int)[i::n]
        first = int(np.argmax(status > 0))
        fields = {k: np.asarray(price[k], float)[i::n][first:] for k in ("open", "high", "low", "close", "volume")}
        for v in fields.values():
            v[status[first:] != 1] = np.nan  # only bars with trading have values in Qlib
        rows = np.asarray(price["defined"], bool)[i::n][first:]
        dates = pd.bdate_range("1980-01-01", periods=len(rows))
        with tempfile.TemporaryDirectory() as data:
            store(data, fields, dates)
            qlib.init(provider_uri=data, region="cn", kernels=1, expression_cache=None, dataset_cache=None, logging_level=40)
            base.Feature._load_internal = lambda f, _, lo, hi, *args: pd.Series(fields[f._name], index=range(len(rows))).loc[lo:hi]
            table = D.features(["SH600000"], [f["expression"] for f in factors], dates[0], dates[-1]).droplevel(0).reindex(dates)
        for k, f in enumerate(factors):
            want, got = table.iloc[:, k].to_numpy(float)[rows], np.asarray(feature[f["name"]], float)[i::n][first:][rows]
            error = np.abs(got - want) / max(np.nanmax(np.abs(want[np.isfinite(want)])), 1e-12)
            if not np.all(error < 1e-6):
                print(f"{symbol} {f['name']}: differs by {np.nanmax(error):.3g} of its largest value in {int((~(error < 1e-6)).sum())} of {len(error)} rows")
            worst, compared = max(worst, float(np.nanmax(error))), compared + len(error)
    print(f"{compared} values of {len(factors)} factors compared, the largest difference is {worst:.3g} of a factor's largest value")


def write(doc):
    rounded = json.loads(json.dumps(doc), parse_float=lambda s: float("%.9g" % float(s)))
    print("{\"fields\":", json.dumps(rounded["fields"]), ",\n\"expressions\": [")
    print(",\n".join(json.dumps(e, separators=(",", ":")) for e in rounded["expressions"]))
    print("]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["reference"]:
        reference()
    elif len(sys.argv) == 3 and sys.argv[1] == "prepared":
        prepared(sys.argv[2])
    else:
        sys.exit(__doc__)
