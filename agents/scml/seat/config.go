package seat

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/configs"
)

// Worlds says what worlds are drawn.
type Worlds struct {
	// Levels and Days are the least and the most of a world.
	Levels []int `json:"levels" yaml:"levels"`
	Days   []int `json:"days" yaml:"days"`
	// Competitors is how many agents of a world are not the league's own, the learner included.
	Competitors []int `json:"competitors" yaml:"competitors"`
	// Rivals are names of agents, or directories of ours, one of which is drawn for each of the
	// other competitors.
	Rivals []string `json:"rivals" yaml:"rivals"`
}

// DefaultWorlds are those of the league, with the strongest agents that come with the program.
func DefaultWorlds() Worlds {
	return Worlds{Levels: []int{2, 4}, Days: []int{50, 200}, Competitors: []int{2, 4}, Rivals: []string{"penguin", "as0", "ultra", "baseline"}}
}

// Validate reports all that is wrong.
func (w Worlds) Validate() error {
	var p configs.Problems
	for _, r := range []struct {
		key         string
		list        []int
		least, most int
	}{{"levels", w.Levels, 2, 10}, {"days", w.Days, 1, 100_000}, {"competitors", w.Competitors, 1, 12}} {
		if len(r.list) != 2 || r.list[0] < r.least || r.list[1] < r.list[0] || r.list[1] > r.most {
			p.Addf(r.key, "is %v, expected the least and the most, between %d and %d", r.list, r.least, r.most)
		}
	}
	p.Check(len(w.Rivals) > 0, "rivals", "there are none")
	for i, name := range w.Rivals {
		if err := scml.Check(name); err != nil {
			p.Addf(fmt.Sprintf("rivals[%d]", i), "%v", err)
		}
	}
	return p.Err()
}

// GoalsConfig describes scml_goals.
type GoalsConfig struct {
	Worlds `yaml:",inline"`
	// Layers is the directory of an agent whose executor and coordinator work for the goals; absent
	// is the baseline alone.
	Layers string `yaml:"layers,omitempty"`
	// Goal is how many numbers a goal has: 4, of the day as a whole, or 16, of each of four buckets
	// of days of delivery.
	Goal int `yaml:"goal"`
	// Horizon is how many days after today are observed.
	Horizon int `yaml:"horizon"`
	// Scale multiplies rewards, which are relative to the initial balance otherwise.
	Scale float64 `yaml:"scale"`
	// Gamma is the discount of the potential, the learner's.
	Gamma float64 `yaml:"gamma"`
	// Inventory, Shortfall and Liquidity weigh the terms beside the money.
	Inventory float64 `yaml:"inventory"`
	Shortfall float64 `yaml:"shortfall"`
	Liquidity float64 `yaml:"liquidity"`
}

// DefaultGoals are goals of 16 numbers over 40 days.
func DefaultGoals() GoalsConfig {
	return GoalsConfig{Worlds: DefaultWorlds(), Goal: scml.FullGoal, Horizon: scml.Horizon, Scale: 100, Gamma: 0.99, Inventory: 1, Shortfall: 0.05, Liquidity: 0.002}
}

// Validate reports all that is wrong.
func (c GoalsConfig) Validate() error {
	var p configs.Problems
	p.Join("", c.Worlds.Validate())
	checkLayers(&p, c.Layers)
	p.Check(c.Goal == scml.WholeGoal || c.Goal == scml.FullGoal, "goal", "is %d, expected %d or %d", c.Goal, scml.WholeGoal, scml.FullGoal)
	p.InRange("horizon", c.Horizon, 0, 1000)
	p.Positive("scale", c.Scale)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.NonNegative("inventory", c.Inventory)
	p.NonNegative("shortfall", c.Shortfall)
	p.NonNegative("liquidity", c.Liquidity)
	return p.Err()
}

// ThreadsConfig describes scml_threads. See the package comment for the terms of the reward.
type ThreadsConfig struct {
	Worlds `yaml:",inline"`
	// Layers is the directory of an agent whose other layers play along: the manager, and the
	// coordinator where residuals are learnt, the executor where weights are; absent is the default
	// goal and the baseline.
	Layers string `yaml:"layers,omitempty"`
	// Action is residual, the executor's, or weights, the coordinator's.
	Action string `yaml:"action"`
	// Direct says that the executor's actions are answers, and no residuals.
	Direct bool `yaml:"direct"`
	// Scale multiplies rewards, which are relative to the initial balance otherwise.
	Scale float64 `yaml:"scale"`
	// Inventory is what a unit of stock counts of its trading price in the factory's worth.
	Inventory float64 `yaml:"inventory"`
	// Shared weighs what the factory's worth changes by, Own what an agent's own contracts add to
	// it.
	Shared float64 `yaml:"shared"`
	Own    float64 `yaml:"own"`
	// Price weighs how much better the prices of an agent's contracts are than the market's,
	// Liquidity how much is traded.
	Price     float64 `yaml:"price"`
	Liquidity float64 `yaml:"liquidity"`
	// TargetUnits weighs how far a day's units are from its goal, TargetPrices how far prices are.
	TargetUnits  float64 `yaml:"target_units"`
	TargetPrices float64 `yaml:"target_prices"`
}

// DefaultThreads are residuals whose reward is the factory's score, beside a little for whose
// contracts it comes from.
func DefaultThreads() ThreadsConfig {
	return ThreadsConfig{Worlds: DefaultWorlds(), Action: Residuals, Scale: 100, Inventory: 1, Shared: 1, Own: 0.5, Price: 0.1, Liquidity: 0.002, TargetUnits: 0.01, TargetPrices: 0.01}
}

// Validate reports all that is wrong.
func (c ThreadsConfig) Validate() error {
	var p configs.Problems
	p.Join("", c.Worlds.Validate())
	p.OneOf("action", c.Action, Residuals, Weights)
	p.Check(c.Action != Weights || !c.Direct, "direct", "answers are not weighed; action: %s is for residuals", Weights)
	d := checkLayers(&p, c.Layers)
	p.Check(c.Action != Weights || c.Layers == "" || d.Executor != "" && !d.Direct, "layers", needsExecutor, Weights)
	p.Positive("scale", c.Scale)
	p.NonNegative("inventory", c.Inventory)
	p.NonNegative("shared", c.Shared)
	p.NonNegative("own", c.Own)
	p.NonNegative("price", c.Price)
	p.NonNegative("liquidity", c.Liquidity)
	p.NonNegative("target_units", c.TargetUnits)
	p.NonNegative("target_prices", c.TargetPrices)
	return p.Err()
}

// needsExecutor says what layers must be; whether there are any is not looked at before an
// environment is made, so that a document may leave them open.
const needsExecutor = "action: %s needs the directory of an agent with an executor of residuals, which are what is weighed"

// checkLayers reports what is wrong with the directory of an agent at the key layers, and returns
// what it describes.
func checkLayers(p *configs.Problems, dir string) (d scml.Description) {
	if dir == "" {
		return d
	}
	d, err := scml.ReadDescription(dir)
	if err != nil {
		p.Addf("layers", "%v", err)
	}
	return d
}
