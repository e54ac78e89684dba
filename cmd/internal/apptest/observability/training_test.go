package observability

import "github.com/onnxrl/onnxrl/runtime/metrics"

// process are panels of the process itself, by its job.
func process(of string) row {
	return row{"Process", []panel{
		{kind: "timeseries", title: "Processor time", about: "Cores that the process keeps busy", unit: "none", width: 8, queries: one(`rate(process_cpu_seconds_total{job=~"`+of+`"}[$__rate_interval])`, "{{instance}}")},
		{kind: "timeseries", title: "Memory", about: "Resident memory", unit: "bytes", width: 8, queries: one(`process_resident_memory_bytes{job=~"`+of+`"}`, "{{instance}}")},
		{kind: "timeseries", title: "Goroutines", about: "Goroutines, which grow where something leaks", unit: "none", width: 8, queries: one(`go_goroutines{job=~"`+of+`"}`, "{{instance}}")},
	}}
}

func trainingBoard() board {
	return board{
		name: "training", title: "onnxrl training", about: "Runs of onnxrl train, fit, tune, ablate, walkforward and of the members of populations", part: metrics.Training,
		variables: []variable{{"run", "Run", "onnxrl_run_active", "run"}, {"tag", "Evaluation", `onnxrl_scalar{tag=~"eval/.*"}`, "tag"}},
		rows: []row{
			{"Now", []panel{
				{kind: "stat", title: "Runs", about: "Runs that are trained now", unit: "none", width: 3, queries: one(`sum(onnxrl_run_active{run=~"$run"})`, "")},
				{kind: "stat", title: "Env steps a second", about: "Of all runs together", unit: "none", width: 4, queries: one(`sum(rate(onnxrl_env_steps_total{run=~"$run"}[$__rate_interval]))`, "")},
				{kind: "stat", title: "Done", about: "Share of the planned env steps of all runs", unit: "percentunit", width: 4, queries: one(`sum(onnxrl_run_env_steps{run=~"$run"}) / sum(onnxrl_run_env_steps_planned{run=~"$run"})`, "")},
				{kind: "stat", title: "Time left", about: "Of the slowest run, at its present speed", unit: "s", width: 4, queries: one(`max((onnxrl_run_env_steps_planned{run=~"$run"} - onnxrl_run_env_steps{run=~"$run"}) / (rate(onnxrl_env_steps_total{run=~"$run"}[$__rate_interval]) > 0))`, "")},
				{kind: "stat", title: "Longest without progress", about: "Time since the run that stands still for longest went on, of those that are trained", unit: "s", width: 4, red: 600, queries: one(`max((time() - onnxrl_run_progress_timestamp_seconds{run=~"$run"}) * (onnxrl_run_active{run=~"$run"} == 1))`, "")},
				{kind: "stat", title: "Not finite", about: "Values of train/ tags that were NaN or infinite, and runs that have failed", unit: "none", width: 5, red: 1, queries: []query{{`sum(onnxrl_nonfinite_values_total{run=~"$run"})`, "values"}, {`sum(onnxrl_run_failures_total{run=~"$run"})`, "failed"}}},
			}},
			{"Learning", []panel{
				{kind: "timeseries", title: "Episode reward", about: "Mean return of the last 100 episodes", unit: "none", width: 12, queries: one(`onnxrl_episode_reward{run=~"$run"}`, "{{run}}")},
				{kind: "timeseries", title: "Evaluation", about: "What evaluations on the validation split have found", unit: "none", width: 12, queries: one(`onnxrl_scalar{run=~"$run",tag=~"$tag",tag=~"eval/.*"}`, "{{run}} {{tag}}")},
				{kind: "timeseries", title: "Losses", about: "Losses of the newest learner step before each record", unit: "none", width: 12, queries: one(`onnxrl_scalar{run=~"$run",tag=~"train/.*loss.*"}`, "{{run}} {{tag}}")},
				{kind: "timeseries", title: "Entropy", about: "Mean entropy of the policy; one that falls to nothing early explores no more", unit: "none", width: 6, queries: one(`onnxrl_entropy{run=~"$run"}`, "{{run}}")},
				{kind: "timeseries", title: "Policy KL", about: "How far an update moves the policy; more than a few hundredths is far for PPO", unit: "none", width: 6, queries: one(`onnxrl_policy_kl{run=~"$run"}`, "{{run}}")},
				{kind: "timeseries", title: "Constraint multipliers", about: "Lagrange multiplier of each constraint: 0 where it does not bind", unit: "none", width: 8, queries: one(`onnxrl_cost_lambda{run=~"$run"}`, "{{run}} {{constraint}}")},
				{kind: "timeseries", title: "Forbidden actions", about: "Share of the actions that masks forbid", unit: "percentunit", width: 8, queries: one(`onnxrl_mask_invalid_ratio{run=~"$run"}`, "{{run}}")},
				{kind: "timeseries", title: "Replay", about: "Transitions that can be drawn", unit: "short", width: 8, queries: one(`onnxrl_replay_size{run=~"$run"}`, "{{run}}")},
			}},
			{"Speed", []panel{
				{kind: "timeseries", title: "Env steps a second", about: "By run", unit: "none", width: 8, queries: one(`rate(onnxrl_env_steps_total{run=~"$run"}[$__rate_interval])`, "{{run}}")},
				{kind: "timeseries", title: "Learner steps a second", about: "By run", unit: "none", width: 8, queries: one(`rate(onnxrl_train_steps_total{run=~"$run"}[$__rate_interval])`, "{{run}}")},
				{kind: "timeseries", title: "Episodes a second", about: "By run", unit: "none", width: 8, queries: one(`rate(onnxrl_episodes_total{run=~"$run"}[$__rate_interval])`, "{{run}}")},
				{kind: "timeseries", title: "Where the time goes", about: "Seconds of each phase a second, of all runs", unit: "s", width: 12, stacked: true, queries: one(`sum by (phase) (rate(onnxrl_phase_seconds_total{run=~"$run"}[$__rate_interval]))`, "{{phase}}")},
				{kind: "timeseries", title: "Decisions", about: "Time of a decision for all environments of a run at once", unit: "s", width: 12, log: true, queries: []query{
					{`histogram_quantile(0.5, sum by (le, model) (rate(onnxrl_inference_seconds_bucket{model=~"$run",version=""}[$__rate_interval])))`, "{{model}} median"},
					{`histogram_quantile(0.99, sum by (le, model) (rate(onnxrl_inference_seconds_bucket{model=~"$run",version=""}[$__rate_interval])))`, "{{model}} p99"},
				}},
			}},
			process("onnxrl-train"),
		},
	}
}
