package seat

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The fields of the manager's observation.
const (
	fieldStatic = iota
	fieldTemporal
	fieldRole
	fieldMarket
)

// The diagnostics.
const (
	infoScore = iota
	infoBreach
	infoOverflow
	infoWin
	infos
)

var infoNames = []string{"score", "breach", "overflow", "win"}

// Goals is the environment of the manager. It implements envs.Env.
type Goals struct {
	seat
	c       GoalsConfig
	spec    envs.Spec
	before  before
	running bool
	closed  bool
}

// before is what a day's reward is measured from.
type before struct {
	Balance   float64 `json:"balance"`
	Potential float64 `json:"potential"`
	First     bool    `json:"first,omitempty"`
	// Missing is what was missing on the day before.
	Missing int `json:"missing,omitempty"`
}

var (
	_ envs.Env   = (*Goals)(nil)
	_ envs.Saver = (*Goals)(nil)
)

// NewGoals returns an environment. The roster opens what directories of agents the configuration
// names, and outlives it; nil is enough where there is none.
func NewGoals(c GoalsConfig, r *scml.Roster) (*Goals, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("scml_goals: %w", err)
	}
	var layers scml.Layers
	if c.Layers != "" {
		var err error
		if layers, err = r.Layers(c.Layers); err != nil {
			return nil, fmt.Errorf("scml_goals: layers: %w", err)
		}
	}
	inf := math.Inf(1)
	return &Goals{seat: seat{w: c.Worlds, roster: r, agent: scml.NewAgent(layers)}, c: c, spec: envs.Spec{
		Name: "scml_goals", Observation: envs.Dict{
			{Name: "static", Space: envs.Unbounded(scml.StaticFeatures)},
			{Name: "temporal", Space: envs.Unbounded((c.Horizon + 1) * scml.TemporalFeatures)},
			{Name: "role", Space: envs.NewBox(0, 1, scml.RoleFeatures)},
			{Name: "market", Space: envs.Unbounded(Market), Central: true},
		},
		Action: envs.NewBox(-1, 1, c.Goal), Joint: true, Reward: envs.Range{Low: -inf, High: inf}, MaxSteps: c.Days[1], Info: infoNames, Random: true,
	}}, nil
}

// Spec implements envs.Env.
func (e *Goals) Spec() envs.Spec { return e.spec }

// Reset implements envs.Env.
func (e *Goals) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset scml_goals: %w", envs.ErrClosed)
	}
	e.running = false
	if err := e.begin(key, e.w); err != nil {
		return fmt.Errorf("reset scml_goals: %w", err)
	}
	e.next()
	e.running = true
	e.before = before{Balance: e.v.Balance(), Potential: e.potential(), First: true}
	e.observe(ts)
	ts.Restart()
	return nil
}

// potential is the stock at its trading price.
func (e *Goals) potential() float64 {
	return float64(e.table.Stock(e.place)) * e.table.TradingPrice(e.v.Level())
}

// Step implements envs.Env.
func (e *Goals) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case e.closed:
		return fmt.Errorf("step scml_goals: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step scml_goals: %w", envs.ErrNoEpisode)
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	e.agent.Set(scml.DecodeGoal(action.Float32s(), e.agent.Today()))
	over := false
	for asking := true; asking; {
		q := e.next()
		if asking = q.Event == world.AskFirst || q.Event == world.AskCounters; !asking {
			over = q.Event == world.Over
			continue
		}
		if err := e.agent.Ask(e.agent.Prepare(q.Heard, q.Event == world.AskFirst, len(q.Replies))); err != nil {
			e.running = false
			return fmt.Errorf("step scml_goals: %w", err)
		}
		e.agent.Finish(q.Replies)
	}
	_, agreed := e.agent.Goal()
	balance, potential := e.table.Balance(e.place), e.potential()
	if over {
		potential = 0
	}
	money := balance - e.before.Balance + e.c.Inventory*(e.c.Gamma*potential-e.before.Potential) - e.c.Shortfall*e.predicted(over) + e.c.Liquidity*e.traded(agreed)
	reward := e.c.Scale * money / e.v.InitialBalance()
	e.before = before{Balance: balance, Potential: potential, Missing: e.table.Outcome(e.place).Missing}
	e.observe(ts)
	if over {
		e.running = false
		ts.Info[infoWin] = bit(e.won())
		ts.Terminate(reward)
	} else {
		ts.Continue(reward)
	}
	return nil
}

// predicted is the penalties for what would be missing on the days ahead.
func (e *Goals) predicted(over bool) float64 {
	if over {
		return 0
	}
	d := e.agent.Today()
	return float64(d.Missing()) * d.Shortfall * d.Out.Trading
}

// traded is what was agreed on the day, at trading prices.
func (e *Goals) traded(agreed *[2][scml.Buckets]int) (money float64) {
	for side, list := range agreed {
		for _, q := range list {
			money += float64(q) * e.table.TradingPrice(e.v.Level()+side)
		}
	}
	return money
}

// observe writes the observation of a morning; after the last one it is that of the last day.
func (e *Goals) observe(ts *envs.TimeStep) {
	e.agent.Today().Write(ts.Obs[fieldStatic].Float32s(), ts.Obs[fieldTemporal].Float32s(), ts.Obs[fieldRole].Float32s())
	Levels(e.table.World, ts.Obs[fieldMarket].Float32s())
	ts.Info[infoScore], ts.Info[infoBreach], ts.Info[infoOverflow], ts.Info[infoWin] = e.table.Score(e.place), float64(e.before.Missing), e.overflow(), 0
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Close implements envs.Env.
func (e *Goals) Close() error {
	e.closed, e.running = true, false
	return nil
}

// savedGoals is the form of a saved episode.
type savedGoals struct {
	Seat   savedSeat `json:"seat"`
	Before before    `json:"before"`
}

// SaveState implements envs.Saver.
func (e *Goals) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save scml_goals: %w", envs.ErrNoEpisode)
	}
	s, err := e.save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(savedGoals{s, e.before})
}

// LoadState implements envs.Saver.
func (e *Goals) LoadState(data []byte, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("load scml_goals: %w", envs.ErrClosed)
	}
	e.running = false
	var s savedGoals
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load scml_goals: %w", err)
	}
	q, err := e.load(s.Seat)
	if err != nil {
		return fmt.Errorf("load scml_goals: %w", err)
	}
	if q.Event != world.DayBegins || q.Agent != e.place {
		return fmt.Errorf("load scml_goals: the world is not in the morning of a day of %s", e.table.Config().Factories[e.place].ID)
	}
	e.before, e.running = s.Before, true
	e.observe(ts)
	if ts.Restart(); !s.Before.First {
		ts.Continue(0)
	}
	return nil
}
