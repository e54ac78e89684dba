package metrics

// Metrics of a portfolio that trades. Money is in the currency of the account.
var (
	DecisionTime    = gauge(Trading, "onnxrl_portfolio_decision_timestamp_seconds", "Time of the bar of the last decision")
	PortfolioValue  = gauge(Trading, "onnxrl_portfolio_value", "Value of the portfolio at that bar's close")
	PnL             = gauge(Trading, "onnxrl_portfolio_pnl", "Profit and loss since trading began, costs included")
	Drawdown        = gauge(Trading, "onnxrl_portfolio_drawdown", "Fall from the highest value of risk.drawdown.window, else of 30 days, a fraction")
	CVaR            = gauge(Trading, "onnxrl_portfolio_cvar", "CVaR of the daily returns of risk.cvar.window, else of 250 days, at the level of risk.cvar, else 95 %, positive for a loss; 0 before there are days enough")
	CVaR95          = gauge(Trading, "onnxrl_portfolio_cvar95", "CVaR of the same returns at 95 %, positive for a loss; 0 before there are days enough")
	PurchaseStopped = gauge(Trading, "onnxrl_portfolio_stopped", "1 while the drawdown allows no purchase")
	ExposureCut     = gauge(Trading, "onnxrl_portfolio_cut", "1 while the CVaR cuts exposure")
	LimitBars       = counter(Trading, "onnxrl_portfolio_limit_bars_total", "Bars at which a limit on risk has changed what was traded", "limit")

	PortfolioDrift        = gauge(Trading, "onnxrl_portfolio_observation_drift", "Population stability index of the feature that has moved farthest from what the policy was published on, over the last 256 decisions; 0 before there are as many")
	PortfolioDriftFeature = gauge(Trading, "onnxrl_portfolio_observation_drift_feature", "Number of that feature over all inputs, from 0")

	Orders           = counter(Trading, "onnxrl_orders_total", "Orders by what became of them; reason is empty but for those refused or cancelled", "side", "status", "reason")
	OrdersPerMinute  = gauge(Trading, "onnxrl_orders_per_minute_limit", "Limit of the risk monitor on orders a minute, 0 for none")
	PositionMismatch = gauge(Trading, "onnxrl_position_mismatch", "Symbols whose position differs from the broker's")
	Bars             = counter(Trading, "onnxrl_bars_total", "Bars by the rule that was applied to them: used where they count, else late, duplicate, malformed, unknown, ahead, outside, impossible; and revised, missing, out_of_order, closed, unpriced, expired", "rule")
	DataStaleness    = gauge(Trading, "onnxrl_data_staleness_seconds", "Age of the newest bar while the market is open, 0 while it is closed")
	DecisionSeconds  = buckets(Trading, "onnxrl_decision_seconds", "Time from a bar's arrival until its orders were handed over", latencies)
	Alerts           = counter(Trading, "onnxrl_alerts_total", "Risk events for the webhook by what became of them: delivered, failed after all attempts, dropped from a full queue", "result")
	Killed           = gauge(Trading, "onnxrl_killed", "1 while the kill switch forbids all orders")
)
