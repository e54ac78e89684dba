package observability

import "github.com/onnxrl/onnxrl/runtime/metrics"

func tradingBoard() board {
	stat := func(title, about, unit, expr string, red float64) panel {
		return panel{kind: "stat", title: title, about: about, unit: unit, width: 3, red: red, queries: one(expr, "{{instance}}")}
	}
	return board{
		name: "trading", title: "onnxrl trading", about: "Portfolios that trade live, and those of data live by node_exporter's textfile collector", part: metrics.Trading,
		variables: []variable{{"instance", "Instance", "onnxrl_portfolio_value", "instance"}},
		rows: []row{
			{"Now", []panel{
				stat("Killed", "1 while the kill switch forbids all orders", "none", `onnxrl_killed{instance=~"$instance"}`, 1),
				stat("Value", "Of the portfolio at the close of the bar of the last decision", "none", `onnxrl_portfolio_value{instance=~"$instance"}`, 0),
				stat("Profit and loss", "Since trading began", "none", `onnxrl_portfolio_pnl{instance=~"$instance"}`, 0),
				stat("Drawdown", "Fall from the highest value", "percentunit", `onnxrl_portfolio_drawdown{instance=~"$instance"}`, 0.15),
				stat("Staleness", "Age of the newest bar while the market is open", "s", `onnxrl_data_staleness_seconds{instance=~"$instance"}`, 60),
				stat("Position mismatch", "Symbols whose position differs from the broker's", "none", `onnxrl_position_mismatch{instance=~"$instance"}`, 1),
				stat("Since the last decision", "Time since the bar of the last decision", "s", `time() - onnxrl_portfolio_decision_timestamp_seconds{instance=~"$instance"}`, 0),
				stat("Orders a minute", "Orders of the last minute; the limit is on the right of the orders below", "none", `sum by (instance) (increase(onnxrl_orders_total{instance=~"$instance"}[1m]))`, 0),
			}},
			{"Portfolio", []panel{
				{kind: "timeseries", title: "Value", about: "Of the portfolio", unit: "none", width: 12, queries: one(`onnxrl_portfolio_value{instance=~"$instance"}`, "{{instance}}")},
				{kind: "timeseries", title: "Profit and loss", about: "Since trading began, costs included", unit: "none", width: 12, queries: one(`onnxrl_portfolio_pnl{instance=~"$instance"}`, "{{instance}}")},
				{kind: "timeseries", title: "Risk", about: "Drawdown, and CVaR of daily returns at 95 % and at the level of risk.cvar, as fractions", unit: "percentunit", width: 12, queries: []query{{`onnxrl_portfolio_drawdown{instance=~"$instance"}`, "{{instance}} drawdown"}, {`onnxrl_portfolio_cvar95{instance=~"$instance"}`, "{{instance}} CVaR95"}, {`onnxrl_portfolio_cvar{instance=~"$instance"}`, "{{instance}} CVaR"}}},
				{kind: "timeseries", title: "Limits at work", about: "1 while no purchase is allowed, while exposure is cut, and while all is killed; bars at which a limit changed what was traded", unit: "none", width: 12, queries: []query{{`onnxrl_portfolio_stopped{instance=~"$instance"}`, "{{instance}} no purchases"}, {`onnxrl_portfolio_cut{instance=~"$instance"}`, "{{instance}} cut"}, {`onnxrl_killed{instance=~"$instance"}`, "{{instance}} killed"}, {`increase(onnxrl_portfolio_limit_bars_total{instance=~"$instance"}[$__rate_interval])`, "{{instance}} {{limit}}"}}},
			}},
			{"Orders and bars", []panel{
				{kind: "timeseries", title: "Orders", about: "By side and what became of them, a minute, and the limit", unit: "none", width: 12, queries: []query{{`sum by (side, status) (rate(onnxrl_orders_total{instance=~"$instance"}[$__rate_interval])) * 60`, "{{side}} {{status}}"}, {`onnxrl_orders_per_minute_limit{instance=~"$instance"}`, "{{instance}} limit"}}},
				{kind: "timeseries", title: "Why orders were refused or cancelled", about: "By reason, since the process began", unit: "none", width: 12, queries: one(`sum by (status, reason) (onnxrl_orders_total{instance=~"$instance",reason!=""})`, "{{status}} {{reason}}")},
				{kind: "timeseries", title: "Bars", about: "By the rule that was applied to them", unit: "none", width: 12, queries: one(`sum by (rule) (rate(onnxrl_bars_total{instance=~"$instance"}[$__rate_interval]))`, "{{rule}}")},
				{kind: "timeseries", title: "Alerts", about: "Risk events for the webhook by what became of them, since the process began", unit: "none", width: 12, queries: one(`sum by (result) (onnxrl_alerts_total{instance=~"$instance"})`, "{{result}}")},
				{kind: "timeseries", title: "From bar to order", about: "Time from a bar's arrival until its orders were handed over", unit: "s", width: 12, log: true, queries: []query{
					{`histogram_quantile(0.5, sum by (le, instance) (rate(onnxrl_decision_seconds_bucket{instance=~"$instance"}[$__rate_interval])))`, "{{instance}} median"},
					{`histogram_quantile(0.99, sum by (le, instance) (rate(onnxrl_decision_seconds_bucket{instance=~"$instance"}[$__rate_interval])))`, "{{instance}} p99"},
				}},
				{kind: "timeseries", title: "Drift of observations", about: "Population stability index of the feature that has moved farthest from what the policy was published on", unit: "none", width: 12, queries: one(`onnxrl_portfolio_observation_drift{instance=~"$instance"}`, "{{instance}}")},
				{kind: "timeseries", title: "The feature that has drifted", about: "Its number over all inputs, from 0", unit: "none", width: 12, queries: one(`onnxrl_portfolio_observation_drift_feature{instance=~"$instance"}`, "{{instance}}")},
			}},
			process("onnxrl-live"),
		},
	}
}
