package observability

import "github.com/onnxrl/onnxrl/runtime/metrics"

func populationBoard() board {
	return board{
		name: "population", title: "onnxrl population", about: "Searches whose members evolve: onnxrl evolve, train population and league", part: metrics.Population,
		variables: []variable{{"search", "Search", "onnxrl_population_generation", "search"}, {"path", "Hyper-parameter", "onnxrl_member_hyperparameter", "path"}},
		rows: []row{
			{"Now", []panel{
				{kind: "stat", title: "Generations", about: "Finished, and planned", unit: "none", width: 6, queries: []query{{`onnxrl_population_generation{search=~"$search"}`, "{{search}}"}, {`onnxrl_population_generations_planned{search=~"$search"}`, "{{search}} planned"}}},
				{kind: "stat", title: "Best score", about: "Of the newest generation", unit: "none", width: 6, queries: one(`onnxrl_population_best_score{search=~"$search"}`, "{{search}}")},
				{kind: "stat", title: "Since the last generation", about: "Time since a generation has ended, or the process began", unit: "s", width: 6, queries: one(`time() - onnxrl_population_generation_timestamp_seconds{search=~"$search"}`, "{{search}}")},
				{kind: "stat", title: "Intervals that failed", about: "Members that diverged and were rolled back, and those whose failure ended the search", unit: "none", width: 6, red: 1, queries: one(`sum by (search) (onnxrl_population_intervals_total{search=~"$search",result!="finished"})`, "{{search}}")},
			}},
			{"Evolution", []panel{
				{kind: "timeseries", title: "Scores", about: "Of each member after every generation", unit: "none", width: 12, queries: []query{{`onnxrl_member_score{search=~"$search"}`, "{{search}} {{member}}"}, {`onnxrl_population_best_score{search=~"$search"}`, "{{search}} best"}}},
				{kind: "timeseries", title: "Diversity", about: "Mean action pairwise distance (MAPD) of the policies, and of each member to the others", unit: "none", width: 12, queries: []query{{`onnxrl_mapd{search=~"$search"}`, "{{search}} MAPD"}, {`onnxrl_member_distance{search=~"$search"}`, "{{search}} {{member}}"}}},
				{kind: "timeseries", title: "Hyper-parameters", about: "Of each member", unit: "none", width: 12, log: true, queries: one(`onnxrl_member_hyperparameter{search=~"$search",path=~"$path"}`, "{{path}} {{search}} {{member}}")},
				{kind: "timeseries", title: "What members began with", about: "begin, keep, clone, migrate and restart, since the process began", unit: "none", width: 6, queries: one(`sum by (search, action) (onnxrl_population_takes_total{search=~"$search"})`, "{{search}} {{action}}")},
				{kind: "timeseries", title: "Intervals", about: "Training intervals by how they ended, since the process began", unit: "none", width: 6, queries: one(`sum by (search, result) (onnxrl_population_intervals_total{search=~"$search"})`, "{{search}} {{result}}")},
			}},
			{"Members", []panel{
				{kind: "timeseries", title: "Episode reward", about: "Mean return of the last 100 episodes of members that train", unit: "none", width: 12, queries: one(`onnxrl_episode_reward{run=~"($search)/member-.*"}`, "{{run}}")},
				{kind: "timeseries", title: "Env steps a second", about: "Of members that train", unit: "none", width: 6, stacked: true, queries: one(`rate(onnxrl_env_steps_total{run=~"($search)/member-.*"}[$__rate_interval])`, "{{run}}")},
				{kind: "timeseries", title: "Time of an interval", about: "Mean, and the 90th percentile, over all members and the whole process", unit: "s", width: 6, queries: []query{
					{`onnxrl_population_interval_seconds_sum{search=~"$search"} / onnxrl_population_interval_seconds_count{search=~"$search"}`, "{{search}} mean"},
					{`histogram_quantile(0.9, sum by (le, search) (onnxrl_population_interval_seconds_bucket{search=~"$search"}))`, "{{search}} p90"},
				}},
				{kind: "timeseries", title: "Shared replay: whose transitions are drawn", about: "Share of the samples by the policy that recorded them", unit: "percentunit", width: 12, queries: one(`onnxrl_scalar{run=~"($search)/member-.*",tag=~"replay/policy_.*/share"}`, "{{run}} {{tag}}")},
				{kind: "timeseries", title: "Shared replay: how old they are", about: "Transitions that were recorded since, by all, on average", unit: "none", width: 12, queries: one(`onnxrl_scalar{run=~"($search)/member-.*",tag=~"replay/policy_.*/age"}`, "{{run}} {{tag}}")},
			}},
			process("onnxrl-population"),
		},
	}
}
