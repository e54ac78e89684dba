package performance

import (
	"math"
	"time"
)

type row struct {
	Definition
	of func(s *sample) float64
}

// table is every metric, in the order in which reports list them.
var table = []row{
	{Definition{"total_return", "Total return", Return, Percent, "last value / first value − 1"}, func(s *sample) float64 { return TotalReturn(s.r) }},
	{Definition{"cagr", "CAGR", Return, Percent, "(1 + total return)^(1/years) − 1, years = time between the first and the last value in days / 365.25"}, func(s *sample) float64 { return CAGR(s.r, s.years) }},
	{Definition{"expected_daily", "Expected day", Return, Percent, "geometric mean of daily returns"}, func(s *sample) float64 { return geometric(TotalReturn(s.r), len(s.day)) }},
	{Definition{"expected_monthly", "Expected month", Return, Percent, "geometric mean of calendar months, incomplete ones included"}, func(s *sample) float64 { return geometric(TotalReturn(s.r), len(s.months)) }},
	{Definition{"expected_yearly", "Expected year", Return, Percent, "geometric mean of calendar years, incomplete ones included"}, func(s *sample) float64 { return geometric(TotalReturn(s.r), len(s.calendar)) }},
	{Definition{"best_day", "Best day", Return, Percent, "largest daily return"}, func(s *sample) float64 { return largest(s.day) }},
	{Definition{"worst_day", "Worst day", Return, Percent, "smallest daily return"}, func(s *sample) float64 { return smallest(s.day) }},
	{Definition{"best_month", "Best month", Return, Percent, "largest return of a calendar month, incomplete ones included"}, func(s *sample) float64 { return largest(s.months) }},
	{Definition{"worst_month", "Worst month", Return, Percent, "smallest return of a calendar month, incomplete ones included"}, func(s *sample) float64 { return smallest(s.months) }},
	{Definition{"best_year", "Best year", Return, Percent, "largest return of a calendar year, incomplete ones included"}, func(s *sample) float64 { return largest(s.calendar) }},
	{Definition{"worst_year", "Worst year", Return, Percent, "smallest return of a calendar year, incomplete ones included"}, func(s *sample) float64 { return smallest(s.calendar) }},
	{Definition{"average_up_month", "Average up month", Return, Percent, "mean of calendar months above 0"}, func(s *sample) float64 { return AverageWin(s.months) }},
	{Definition{"average_down_month", "Average down month", Return, Percent, "mean of calendar months below 0"}, func(s *sample) float64 { return AverageLoss(s.months) }},

	{Definition{"volatility_daily", "Volatility (daily)", Risk, Percent, "standard deviation of daily returns, n−1"}, func(s *sample) float64 { return Volatility(s.day) }},
	{Definition{"volatility", "Volatility (annual)", Risk, Percent, "standard deviation of returns, n−1, × √(periods per year)"}, func(s *sample) float64 { return Volatility(s.r) * s.root }},
	{Definition{"downside_risk", "Downside risk (annual)", Risk, Percent, "√(mean of min(excess return, 0)²) × √(periods per year)"}, func(s *sample) float64 { return DownsideRisk(s.excess) * s.root }},
	{Definition{"max_drawdown", "Maximum drawdown", Risk, Percent, "largest loss from a peak, at the closes of bars; the start counts as a peak"}, func(s *sample) float64 { return MaxDrawdown(s.Value) }},
	{Definition{"longest_drawdown_days", "Longest drawdown", Risk, Days, "calendar days from peak to recovery, or to the end"}, longestDrawdown},
	{Definition{"average_drawdown", "Average drawdown", Risk, Percent, "mean depth of all times below a peak"}, averageDrawdown},
	{Definition{"average_drawdown_days", "Average drawdown length", Risk, Days, "mean calendar days from peak to recovery, or to the end"}, averageDrawdownDays},
	{Definition{"ulcer_index", "Ulcer index", Risk, Percent, "√(mean of squared drawdowns) over all values (Martin)"}, func(s *sample) float64 { return UlcerIndex(s.Value) }},
	{Definition{"var_95", "Daily VaR 95% (percentile)", Risk, Percent, "5% quantile of daily returns, linear interpolation (empyrical)"}, func(s *sample) float64 { return ValueAtRisk(s.day, 0.05) }},
	{Definition{"cvar_95", "Daily CVaR 95% (percentile)", Risk, Percent, "mean of daily returns not above the percentile VaR (empyrical)"}, func(s *sample) float64 { return ConditionalValueAtRisk(s.day, 0.05) }},
	{Definition{"var_95_normal", "Daily VaR 95% (normal)", Risk, Percent, "5% quantile of a normal distribution with the mean and deviation of daily returns (QuantStats)"}, func(s *sample) float64 { return NormalValueAtRisk(s.day, 0.05) }},
	{Definition{"cvar_95_normal", "Daily CVaR 95% (normal)", Risk, Percent, "mean of that normal distribution below its 5% quantile, in closed form (QuantStats since 0.0.83)"}, func(s *sample) float64 { return NormalConditionalValueAtRisk(s.day, 0.05) }},
	{Definition{"skew", "Skew", Risk, Ratio, "sample skewness of daily returns with bias correction (pandas)"}, func(s *sample) float64 { return Skew(s.day) }},
	{Definition{"kurtosis", "Excess kurtosis", Risk, Ratio, "sample kurtosis − 3 of daily returns with bias correction (pandas); 0 for a normal distribution"}, func(s *sample) float64 { return ExcessKurtosis(s.day) }},
	{Definition{"tail_ratio", "Tail ratio", Risk, Ratio, "|95% quantile| / |5% quantile| of daily returns"}, func(s *sample) float64 { return TailRatio(s.day) }},
	{Definition{"outlier_win", "Outlier win ratio", Risk, Ratio, "99% quantile of daily returns / average gain (QuantStats)"}, func(s *sample) float64 { return ratio(Quantile(s.day, 0.99), AverageWin(s.day)) }},
	{Definition{"outlier_loss", "Outlier loss ratio", Risk, Ratio, "1% quantile of daily returns / average loss (QuantStats)"}, func(s *sample) float64 { return ratio(Quantile(s.day, 0.01), AverageLoss(s.day)) }},
	{Definition{"risk_of_ruin", "Risk of ruin", Risk, Percent, "((1 − win rate)/(1 + win rate))^n, n days (QuantStats)"}, func(s *sample) float64 { return RiskOfRuin(s.day) }},

	{Definition{"sharpe_daily", "Sharpe (daily)", Adjusted, Ratio, "annual Sharpe / √(trading days per year); of the returns themselves where bars are longer than a day"}, func(s *sample) float64 { return Sharpe(s.excess) * s.root / math.Sqrt(s.daysPerYear) }},
	{Definition{"sharpe", "Sharpe (annual)", Adjusted, Ratio, "mean excess return / standard deviation (n−1) × √(periods per year)"}, func(s *sample) float64 { return Sharpe(s.excess) * s.root }},
	{Definition{"probabilistic_sharpe", "Probabilistic Sharpe", Adjusted, Percent, "probability that the true Sharpe is above 0, for one trial (Bailey & López de Prado)"}, probabilistic},
	{Definition{"smart_sharpe", "Smart Sharpe", Adjusted, Ratio, "annual Sharpe / autocorrelation penalty (QuantStats)"}, func(s *sample) float64 { return Sharpe(s.excess) * s.root / AutocorrelationPenalty(s.excess) }},
	{Definition{"sortino", "Sortino (annual)", Adjusted, Ratio, "mean excess return × √(periods per year) / downside risk of a period"}, func(s *sample) float64 { return Sortino(s.excess) * s.root }},
	{Definition{"smart_sortino", "Smart Sortino", Adjusted, Ratio, "annual Sortino / autocorrelation penalty (QuantStats)"}, func(s *sample) float64 { return Sortino(s.excess) * s.root / AutocorrelationPenalty(s.excess) }},
	{Definition{"sortino_sqrt2", "Sortino / √2", Adjusted, Ratio, "comparable with the Sharpe ratio (Schwager)"}, func(s *sample) float64 { return Sortino(s.excess) * s.root / math.Sqrt2 }},
	{Definition{"smart_sortino_sqrt2", "Smart Sortino / √2", Adjusted, Ratio, "annual Sortino / autocorrelation penalty / √2 (QuantStats)"}, func(s *sample) float64 {
		return Sortino(s.excess) * s.root / AutocorrelationPenalty(s.excess) / math.Sqrt2
	}},
	{Definition{"calmar", "Calmar", Adjusted, Ratio, "CAGR / |maximum drawdown| over the whole record"}, func(s *sample) float64 { return Calmar(s.r, s.years) }},
	{Definition{"omega", "Omega", Adjusted, Ratio, "sum of excess returns above 0 / |sum of those below 0|"}, func(s *sample) float64 { return Omega(s.excess, 0) }},
	{Definition{"gain_to_pain", "Gain to pain (daily)", Adjusted, Ratio, "sum of daily returns / |sum of losses|"}, func(s *sample) float64 { return GainToPain(s.day) }},
	{Definition{"gain_to_pain_monthly", "Gain to pain (monthly)", Adjusted, Ratio, "the same with returns of calendar months"}, func(s *sample) float64 { return GainToPain(s.months) }},
	{Definition{"recovery_factor", "Recovery factor", Adjusted, Ratio, "total return / |maximum drawdown|"}, func(s *sample) float64 { return ratio(TotalReturn(s.r), -MaxDrawdown(s.Value)) }},
	{Definition{"ulcer_performance_index", "Ulcer performance index", Adjusted, Ratio, "(CAGR − risk-free rate) / ulcer index (Martin)"}, func(s *sample) float64 { return ratio(CAGR(s.r, s.years)-s.RiskFree, UlcerIndex(s.Value)) }},
	{Definition{"serenity_index", "Serenity index", Adjusted, Ratio, "sum of excess returns / (ulcer index × |CVaR of drawdowns| / volatility of a period), the CVaR by percentile (after KeyQuant)"}, serenity},
	{Definition{"risk_adjusted_return", "Risk-adjusted return", Adjusted, Percent, "CAGR / time in market (QuantStats)"}, func(s *sample) float64 { return ratio(CAGR(s.r, s.years), timeInMarket(s)) }},
	{Definition{"risk_return_ratio", "Risk-return ratio", Adjusted, Ratio, "mean return / standard deviation, daily, no risk-free rate (QuantStats)"}, func(s *sample) float64 { return ratio(mean(s.day), spread(s.day)) }},
	{Definition{"stability", "Stability", Adjusted, Ratio, "R² of a line through cumulated log returns (empyrical)"}, func(s *sample) float64 { return Stability(s.r) }},
	{Definition{"common_sense_ratio", "Common sense ratio", Adjusted, Ratio, "profit factor × tail ratio"}, func(s *sample) float64 { return ProfitFactor(s.day) * TailRatio(s.day) }},
	{Definition{"cpc_index", "CPC index", Adjusted, Ratio, "profit factor × win rate × payoff"}, func(s *sample) float64 { return ProfitFactor(s.day) * WinRate(s.day) * Payoff(s.day) }},

	{Definition{"win_rate", "Winning days", Wins, Percent, "share of daily returns above 0 among those that are not 0"}, func(s *sample) float64 { return WinRate(s.day) }},
	{Definition{"win_rate_months", "Winning months", Wins, Percent, "share of calendar months above 0 among those that are not 0"}, func(s *sample) float64 { return WinRate(s.months) }},
	{Definition{"win_rate_quarters", "Winning quarters", Wins, Percent, "share of calendar quarters above 0 among those that are not 0"}, func(s *sample) float64 { return WinRate(s.quarters) }},
	{Definition{"win_rate_years", "Winning years", Wins, Percent, "share of calendar years above 0 among those that are not 0"}, func(s *sample) float64 { return WinRate(s.calendar) }},
	{Definition{"average_win", "Average gain", Wins, Percent, "mean of daily returns above 0"}, func(s *sample) float64 { return AverageWin(s.day) }},
	{Definition{"average_loss", "Average loss", Wins, Percent, "mean of daily returns below 0"}, func(s *sample) float64 { return AverageLoss(s.day) }},
	{Definition{"payoff", "Payoff", Wins, Ratio, "average gain / |average loss|"}, func(s *sample) float64 { return Payoff(s.day) }},
	{Definition{"profit_factor", "Profit factor", Wins, Ratio, "sum of gains / |sum of losses|, daily"}, func(s *sample) float64 { return ProfitFactor(s.day) }},
	{Definition{"kelly", "Kelly fraction", Wins, Percent, "win rate − (1 − win rate)/payoff"}, func(s *sample) float64 { return Kelly(s.day) }},
	{Definition{"longest_wins", "Longest winning run", Wins, Count, "days in a row above 0"}, func(s *sample) float64 { return float64(LongestRun(s.day, 1)) }},
	{Definition{"longest_losses", "Longest losing run", Wins, Count, "days in a row below 0"}, func(s *sample) float64 { return float64(LongestRun(s.day, -1)) }},

	{Definition{"time_in_market", "Time in market", Activity, Percent, "share of bars entered with a position"}, timeInMarket},
	{Definition{"exposure", "Exposure", Activity, Percent, "mean share of value that is not cash, at the start of a bar"}, exposure},
	{Definition{"turnover_daily", "Turnover (daily)", Activity, Percent, "(purchases + sales) / value at the start of the bar, mean of days; full replacement is 200%"}, func(s *sample) float64 { return turnover(s) * float64(len(s.r)) / float64(len(s.day)) }},
	{Definition{"turnover", "Turnover (annual)", Activity, Percent, "(purchases + sales) / value at the start of the bar, mean × periods per year"}, func(s *sample) float64 { return turnover(s) * s.PeriodsPerYear }},
	{Definition{"fees", "Fees", Activity, Percent, "sum of fees / first value"}, func(s *sample) float64 { return feesPaid(s) / s.Value[0] }},

	{Definition{"excess_return", "Excess total return", Benchmark, Percent, "total return − that of the benchmark"}, against(func(s *sample) float64 { return TotalReturn(s.r) - TotalReturn(s.bench) })},
	{Definition{"alpha", "Alpha (annual)", Benchmark, Percent, "(1 + mean of excess return − β·benchmark's)^(periods per year) − 1 (Jensen)"}, against(func(s *sample) float64 { return Alpha(s.excess, s.over, s.PeriodsPerYear) })},
	{Definition{"beta", "Beta", Benchmark, Ratio, "covariance with the benchmark / its variance, excess returns"}, against(func(s *sample) float64 { return Beta(s.excess, s.over) })},
	{Definition{"correlation", "Correlation", Benchmark, Ratio, "Pearson, of returns"}, against(func(s *sample) float64 { return Correlation(s.r, s.bench) })},
	{Definition{"r_squared", "R²", Benchmark, Ratio, "correlation squared"}, against(func(s *sample) float64 { c := Correlation(s.r, s.bench); return c * c })},
	{Definition{"tracking_error", "Tracking error (annual)", Benchmark, Percent, "standard deviation (n−1) of active returns × √(periods per year)"}, against(func(s *sample) float64 { return Volatility(Active(s.r, s.bench)) * s.root })},
	{Definition{"information_ratio", "Information ratio (annual)", Benchmark, Ratio, "mean active return / standard deviation × √(periods per year); empyrical's excess_sharpe is that of a period"}, against(func(s *sample) float64 { return InformationRatio(s.r, s.bench) * s.root })},
	{Definition{"treynor", "Treynor", Benchmark, Percent, "(CAGR − risk-free rate) / β"}, against(func(s *sample) float64 {
		return ratio(CAGR(s.r, s.years)-s.RiskFree, Beta(s.excess, s.over))
	})},
	{Definition{"up_capture", "Up capture", Benchmark, Percent, "geometric mean return in periods in which the benchmark rose / its own"}, against(func(s *sample) float64 { return Capture(s.r, s.bench, 1) })},
	{Definition{"down_capture", "Down capture", Benchmark, Percent, "geometric mean return in periods in which the benchmark fell / its own"}, against(func(s *sample) float64 { return Capture(s.r, s.bench, -1) })},

	{Definition{"mtd", "Month to date", Recent, Percent, "return since the last value of the month before"}, func(s *sample) float64 { return Since(s.Dates, s.Value, monthStart(s, 0)) }},
	{Definition{"3m", "3 months", Recent, Percent, "return since the last value 3 months before the end or earlier"}, trailing(3)},
	{Definition{"6m", "6 months", Recent, Percent, "return since the last value 6 months before the end or earlier"}, trailing(6)},
	{Definition{"ytd", "Year to date", Recent, Percent, "return since the last value of the year before"}, func(s *sample) float64 { return Since(s.Dates, s.Value, monthStart(s, 1)) }},
	{Definition{"1y", "1 year", Recent, Percent, "return since the last value 12 months before the end or earlier"}, trailing(12)},
	{Definition{"3y", "3 years (per year)", Recent, Percent, "the same for 36 months, per year"}, trailing(36)},
	{Definition{"5y", "5 years (per year)", Recent, Percent, "the same for 60 months, per year"}, trailing(60)},
	{Definition{"10y", "10 years (per year)", Recent, Percent, "the same for 120 months, per year"}, trailing(120)},
}

func longestDrawdown(s *sample) float64 {
	longest := 0
	for _, d := range s.drawdowns {
		longest = max(longest, d.Days(s.Dates))
	}
	return float64(longest)
}

func averageDrawdown(s *sample) float64 {
	var sum float64
	for _, d := range s.drawdowns {
		sum += d.Depth
	}
	return ratio(sum, float64(len(s.drawdowns)))
}

func averageDrawdownDays(s *sample) float64 {
	sum := 0
	for _, d := range s.drawdowns {
		sum += d.Days(s.Dates)
	}
	return ratio(float64(sum), float64(len(s.drawdowns)))
}

func probabilistic(s *sample) float64 {
	return ProbabilisticSharpe(Sharpe(s.excess), 0, len(s.excess), MomentsOf(s.excess))
}

func serenity(s *sample) float64 {
	var sum float64
	for _, e := range s.excess {
		sum += e
	}
	pitfall := ratio(-ConditionalValueAtRisk(s.underwater, 0.05), spread(s.r))
	return ratio(sum, UlcerIndex(s.Value)*pitfall)
}

// held is the share of value that counts as a position: less is rounding.
const held = 1e-9

func timeInMarket(s *sample) float64 {
	if s.Cash == nil {
		return math.NaN()
	}
	n := 0
	for _, c := range s.Cash[:len(s.r)] {
		if 1-c > held {
			n++
		}
	}
	return float64(n) / float64(len(s.r))
}

func exposure(s *sample) float64 {
	if s.Cash == nil {
		return math.NaN()
	}
	return 1 - mean(s.Cash[:len(s.r)])
}

func turnover(s *sample) float64 {
	if s.Turnover == nil {
		return math.NaN()
	}
	var sum float64
	for t, x := range s.Turnover {
		if s.Value[t] > 0 {
			sum += x / s.Value[t]
		}
	}
	return sum / float64(len(s.r))
}

func feesPaid(s *sample) float64 {
	if s.Fees == nil {
		return math.NaN()
	}
	var sum float64
	for _, x := range s.Fees {
		sum += x
	}
	return sum
}

// monthStart is the first moment of the last date's month, or of its year where month is 1.
func monthStart(s *sample, month time.Month) time.Time {
	last := s.Dates[len(s.Dates)-1]
	if month == 0 {
		month = last.Month()
	}
	return time.Date(last.Year(), month, 1, 0, 0, 0, 0, last.Location())
}
