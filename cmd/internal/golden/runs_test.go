package golden

import "slices"

// runs are all golden runs.
var runs = slices.Concat(agentRuns(), dataRuns(), replayRuns(), studyRuns(), marketRuns(), leagueRuns(), exportRuns())

// variedRuns are the runs that are performed with another seed, at least, and tableLines are the
// digests that there are.
const (
	variedRuns = 20
	tableLines = 300
)

// agentRuns train an agent of every kind, and evaluate it.
func agentRuns() (list []golden) {
	for _, name := range []string{"a2c", "appo", "awac", "awr", "bc", "cma_es", "cql", "ddpg", "discrete_cql", "dqn", "impala", "ippo", "iql", "mappo", "maskable_ppo", "openai_es", "ppo", "qrdqn", "replay_prioritised", "sac", "td3", "td3_bc", "wide"} {
		g := trained(name)
		if name == "cma_es" {
			// It has no optimiser.
			g.results = without(g.results, "optimiser")
		}
		list = append(list, g)
	}
	return list
}

// trained is a run that trains the document of its name, and evaluates what it has published.
func trained(name string) golden {
	return golden{
		name:      name,
		documents: []string{name + ".yaml"},
		lines:     []string{"train $DIR/" + name + ".yaml --out $DIR/run", "evaluate $DIR/run --no-report --json"},
		results:   slices.Concat(training("run"), said("evaluated", 1)),
	}
}

// dataRuns record what policies do.
func dataRuns() []golden {
	record := func(name, of string) golden {
		return golden{
			name:    name,
			lines:   []string{"record " + of + "/run --episodes 6 --random-episodes 0.5 --envs 2 --seed $SEED -o $DIR/data", "dataset inspect $DIR/data --json"},
			results: slices.Concat(tables("decisions", "data", "dataset.json", "*.parquet"), said("inspected", 1)),
		}
	}
	return []golden{record("pendulum_data", "$sac"), record("cartpole_data", "$dqn")}
}

// replayRuns draw from a replay that members share, and from tables of a server.
func replayRuns() []golden {
	served := func(name string) golden {
		g := trained(name)
		g.documents = append(g.documents, "tables.yaml")
		g.server = "replay serve $DIR/tables.yaml --listen 127.0.0.1:0"
		// The transitions are the server's.
		return g
	}
	return []golden{evolved("replay_shared", "sharing.yaml"), served("served_plain"), served("served_ranked")}
}

// evolved is a run of the population of the document of its name, and what else it names.
func evolved(name string, more ...string) golden {
	return golden{
		name:      name,
		documents: append([]string{name + ".yaml"}, more...),
		lines:     []string{"evolve $DIR/" + name + ".yaml --parallel 2 --out $DIR/run", "evolve tree $DIR/run --json"},
		results:   slices.Concat(without(training("run"), "policy"), tables("members", "run", "members.jsonl"), said("tree", 1)),
	}
}

// studyRuns train several runs to compare, evolve or combine them.
func studyRuns() (list []golden) {
	for _, name := range []string{"evolve_mf_pbt", "evolve_owner", "evolve_pb2", "evolve_pbt", "evolve_random_search"} {
		list = append(list, evolved(name, "member.yaml"))
	}
	return append(list,
		golden{
			name:      "walkforward",
			documents: []string{"walkforward.yaml", "market.yaml"},
			lines:     []string{"walkforward $DIR/walkforward.yaml --parallel 2 --out $DIR/run"},
			results:   slices.Concat(without(training("run"), "policy"), tables("tables", "run", "*.csv", "*.md")),
		},
		golden{
			name:      "ablation",
			documents: []string{"ablation.yaml", "market.yaml"},
			lines:     []string{"ablate $DIR/ablation.yaml --calibrate 0 --parallel 2 --out $DIR/run"},
			results:   slices.Concat(without(training("run"), "policy"), tables("tables", "run", "*.csv", "*.md")),
		},
		golden{
			name:      "population",
			documents: []string{"population.yaml", "expert.yaml"},
			lines:     []string{"train population $DIR/population.yaml --parallel 2 --out $DIR/run"},
			results:   slices.Concat(training("run"), tables("members", "run", "members.jsonl")),
		},
		golden{
			name:      "router",
			documents: []string{"router.yaml", "router_expert.yaml"},
			lines: []string{
				"train $DIR/router_expert.yaml --set wrappers.skill.fixed=1 --out $DIR/one",
				"train $DIR/router_expert.yaml --set wrappers.skill.fixed=2 --out $DIR/two",
				"train $DIR/router.yaml --out $DIR/run",
				"evaluate $DIR/run --no-report --json",
			},
			results: slices.Concat(training("run"), training("one"), said("evaluated", 3)),
		},
		golden{
			name:      "curriculum",
			documents: []string{"curriculum.yaml"},
			lines:     []string{"train scml $DIR/curriculum.yaml --out $DIR/run"},
			results:   slices.Concat(training("run"), tables("rounds", "run", "trial.json", "evaluation.json", "agent.json", "*.jsonl")),
			slow:      true,
		})
}

// marketRuns train in a market, and act in it as a service; and play worlds of a league of
// factories.
func marketRuns() []golden {
	market := trained("market")
	market.lines[1] = "evaluate $DIR/run --out $DIR/report --json"
	market.results = slices.Concat(market.results, tables("report", "report", "*.csv", "*.json"))
	return []golden{
		market,
		{
			name:      "live",
			documents: []string{"trader.yaml", "live.yaml"},
			lines: []string{
				"train $DIR/trader.yaml --out $DIR/run",
				"data feed $DIR/run --bars shipped:market/us5_daily.parquet --to $DIR/bars.jsonl",
				"live $DIR/live.yaml --json",
				"live $DIR/live.yaml --replay",
			},
			results: slices.Concat(training("run"), texts("decisions", "records", "*.jsonl"), said("account", 2)),
		},
		{
			name:    "scml_world",
			lines:   []string{"scml run --levels 3 --days 12 --agents penguin,as0,greedy,random,syncrandom,ultra,hash,hashsync --seed $SEED -o $DIR/world.json --json"},
			results: slices.Concat(texts("world", ".", "world.json"), said("scores", 0)),
		},
		{
			name:    "scml_tournament",
			lines:   []string{"scml tournament penguin greedy random --configs 2 --processes 2,3 --days 6,8 --seed $SEED --json"},
			results: said("standings", 0),
		},
	}
}

// leagueRuns train by self-play.
func leagueRuns() []golden {
	return []golden{
		trained("connect_four"),
		{
			name:      "league",
			documents: []string{"league.yaml"},
			lines:     []string{"league $DIR/league.yaml --out $DIR/run", "league table $DIR/run --json"},
			results:   slices.Concat(training("run"), tables("games", "run", "members.jsonl", "matches.jsonl"), said("ratings", 1)),
		},
	}
}

// exportRuns write what was trained in every form.
func exportRuns() (list []golden) {
	export := func(name, of, flags string, results []result) {
		list = append(list, golden{name: name, lines: []string{"export " + of + " --rows 64 --seed $SEED " + flags}, results: results})
	}
	export("export_onnx", "$ppo/run", "--format onnx --sample --allow-ties -o $DIR/out/policy.onnx", tables("policy", "out", "*.onnx"))
	export("export_triton", "$ppo/run", "--format triton --allow-ties -o $DIR/out", tables("repository", "out", "*"))
	export("export_python", "$sac/run", "--format python -o $DIR/out", tables("folder", "out", "*"))
	export("export_oci", "$sac/run", "--format oci -o $DIR/out", stored("version", "out"))
	export("export_int8", "$wide/run", "--precision int8 --allow-ties -o $DIR/out/policy.onnx", tables("policy", "out", "*.onnx"))
	export("export_fp16", "$wide/run", "--precision fp16 --allow-ties -o $DIR/out/policy.onnx", tables("policy", "out", "*.onnx"))
	return append(list, golden{
		name:    "export_scml",
		lines:   []string{"export $curriculum/run/agent --format scml --out $DIR/lita"},
		results: tables("package", "lita", "*"),
		slow:    true,
	})
}
