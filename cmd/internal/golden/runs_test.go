package golden

import "slices"

// runs are all golden runs.
var runs = slices.Concat(agentRuns(), dataRuns())

// variedRuns are the runs that are performed with another seed, at least, and tableLines are the
// digests that there are.
const (
	variedRuns = 20
	tableLines = 150
)

// agentRuns train an agent of every kind, and evaluate it.
func agentRuns() (list []golden) {
	for _, name := range []string{"a2c", "appo", "awac", "awr", "bc", "cma_es", "cql", "ddpg", "discrete_cql", "dqn", "impala", "ippo", "iql", "mappo", "maskable_ppo", "openai_es", "ppo", "replay_prioritised", "sac", "td3", "td3_bc"} {
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
