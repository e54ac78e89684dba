"""Writes what QuantStats, pandas and SciPy say about two records, to compare with export/report/performance.

    pip install --target DIR --no-deps quantstats==0.0.86
    PYTHONPATH=DIR python cmd/peers/report_metrics.py > export/report/performance/testdata/quantstats.json

QuantStats wants to plot and to download when it is imported; both are replaced by nothing here. Returns are uniform noise with some dependence on the one before, from a linear congruential generator.
"""

import json
import sys
from unittest.mock import MagicMock

for name in ("yfinance", "matplotlib", "matplotlib.pyplot", "matplotlib.dates", "matplotlib.font_manager", "matplotlib.ticker", "matplotlib.figure", "seaborn", "tabulate", "IPython", "IPython.display", "quantstats.plots", "quantstats.reports", "quantstats._plotting"):
    sys.modules[name] = MagicMock()

import numpy as np
import pandas as pd
import quantstats.stats as qs
from scipy import stats


def noise(n, phi, seed, drift):
    r, x = [], 0.0
    for _ in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        x = phi * x + (seed >> 11) / 2**53 - 0.5
        r.append(x * 0.04 + drift)
    return np.array(r)


def measure(r, b):
    month = r.resample("ME").apply(qs.comp)
    quarter = r.resample("QE").apply(qs.comp)
    year = r.resample("YE").apply(qs.comp)
    value = (1 + r).cumprod()
    out = {
        "total_return": qs.comp(r),
        "volatility_daily": r.std(),
        "volatility": qs.volatility(r),
        "sharpe": qs.sharpe(r),
        "smart_sharpe": qs.sharpe(r, smart=True),
        "sortino": qs.sortino(r),
        "smart_sortino": qs.sortino(r, smart=True),
        "sortino_sqrt2": qs.adjusted_sortino(r),
        "omega": qs.omega(r),
        "gain_to_pain": qs.gain_to_pain_ratio(r),
        "risk_return_ratio": qs.risk_return_ratio(r),
        "win_rate": qs.win_rate(r),
        "win_rate_months": (month > 0).sum() / (month != 0).sum(),
        "win_rate_quarters": (quarter > 0).sum() / (quarter != 0).sum(),
        "win_rate_years": (year > 0).sum() / (year != 0).sum(),
        "average_win": qs.avg_win(r),
        "average_loss": qs.avg_loss(r),
        "payoff": qs.payoff_ratio(r),
        "profit_factor": qs.profit_factor(r),
        "cpc_index": qs.cpc_index(r),
        "common_sense_ratio": qs.common_sense_ratio(r),
        "tail_ratio": qs.tail_ratio(r),
        "outlier_win": qs.outlier_win_ratio(r),
        "outlier_loss": qs.outlier_loss_ratio(r),
        "kelly": qs.kelly_criterion(r),
        "risk_of_ruin": qs.risk_of_ruin(r),
        "var_95_normal": qs.value_at_risk(r),
        "cvar_95_normal": qs.expected_shortfall(r),
        "var_95": np.percentile(r, 5),
        "cvar_95": r[r <= np.percentile(r, 5)].mean(),
        "skew": qs.skew(r),
        "kurtosis": qs.kurtosis(r),
        "longest_wins": qs.consecutive_wins(r),
        "longest_losses": qs.consecutive_losses(r),
        "best_day": r.max(),
        "worst_day": r.min(),
        "best_month": month.max(),
        "worst_month": month.min(),
        "best_year": year.max(),
        "worst_year": year.min(),
        "expected_daily": qs.expected_return(r),
        "expected_monthly": qs.expected_return(r, aggregate="ME"),
        "expected_yearly": qs.expected_return(r, aggregate="YE"),
        "information_ratio": qs.information_ratio(r, b) * np.sqrt(252),
        "beta": stats.linregress(b, r).slope,
        "correlation": r.corr(b),
        "r_squared": qs.r_squared(r, b),
        "max_drawdown": min(0, (value / np.maximum(1, value.cummax()) - 1).min()),
        "stability": stats.linregress(np.arange(len(r)), np.log1p(r).cumsum()).rvalue ** 2,
    }
    return {k: float(v) for k, v in out.items()}


cases = []
for n, phi, seed, drift in ((750, 0.2, 21, 0.0005), (520, -0.1, 22, -0.0003)):
    dates = pd.bdate_range("2019-01-03", periods=n)
    r, b = pd.Series(noise(n, phi, seed, drift), dates), pd.Series(noise(n, 0, seed + 100, 0.0002), dates)
    b = 0.5 * b + 0.5 * r
    cases.append({"n": n, "phi": phi, "seed": seed, "drift": drift, "metrics": measure(r, b)})
json.dump({"source": "QuantStats 0.0.86, pandas, SciPy; see cmd/peers/report_metrics.py", "cases": cases}, sys.stdout, indent=1)
print()
