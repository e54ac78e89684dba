package games

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// matrixGame is the name of the kind.
const matrixGame = "matrix_game"

// MatrixConfig describes a matrix game: two players choose at the same time, once.
type MatrixConfig struct {
	// Game is one of those that come with the program: rock_paper_scissors, biased_rps, in which
	// rock earns 2 of scissors, or matching_pennies; empty where Payoff is given.
	Game string `yaml:"game,omitempty"`
	// Payoff [rows][columns] is what player_0, who chooses the row, earns, and player_1, who
	// chooses the column, loses.
	Payoff [][]float64 `yaml:"payoff,omitempty"`
}

// shipped are the games that have names.
var shipped = map[string][][]float64{
	"rock_paper_scissors": {{0, -1, 1}, {1, 0, -1}, {-1, 1, 0}},
	"biased_rps":          {{0, -1, 2}, {1, 0, -1}, {-2, 1, 0}},
	"matching_pennies":    {{1, -1}, {-1, 1}},
}

// DefaultMatrix returns rock, paper, scissors.
func DefaultMatrix() MatrixConfig { return MatrixConfig{Game: "rock_paper_scissors"} }

// Validate reports all problems.
func (c MatrixConfig) Validate() error {
	var p configs.Problems
	if len(c.Payoff) == 0 {
		p.OneOf("game", c.Game, "rock_paper_scissors", "biased_rps", "matching_pennies")
		return p.Err()
	}
	for i, row := range c.Payoff {
		p.Check(len(row) == len(c.Payoff[0]) && len(row) > 0, fmt.Sprintf("payoff[%d]", i), "has %d columns, expected as many as the first row, and at least one", len(row))
		for k, x := range row {
			p.Check(!math.IsNaN(x) && !math.IsInf(x, 0), fmt.Sprintf("payoff[%d][%d]", i, k), "is %g, expected a finite number", x)
		}
	}
	return p.Err()
}

// Matrix returns what player_0 earns, [rows][columns].
func (c MatrixConfig) Matrix() [][]float64 {
	if len(c.Payoff) > 0 {
		return c.Payoff
	}
	return shipped[c.Game]
}

// Matrix is a matrix game. It implements envs.Multi.
type Matrix struct {
	payoff  [][]float64
	choices [2]int
	spec    envs.Spec
	running bool
	closed  bool
}

var (
	_ envs.Multi      = (*Matrix)(nil)
	_ envs.MultiSaver = (*Matrix)(nil)
)

// NewMatrix returns a world.
func NewMatrix(c MatrixConfig) (*Matrix, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", matrixGame, err)
	}
	m := c.Matrix()
	rows, columns := len(m), len(m[0])
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range m {
		low, high = min(low, slices.Min(row)), max(high, slices.Max(row))
	}
	most := max(math.Abs(low), math.Abs(high))
	return &Matrix{payoff: m, choices: [2]int{rows, columns}, spec: envs.Spec{
		Name: matrixGame, Observation: envs.Dict{{Name: "player", Space: envs.Discrete{N: 2}}}, Action: envs.Discrete{N: max(rows, columns)},
		Masked: rows != columns, Reward: envs.Range{Low: -most, High: most}, MaxSteps: 1,
	}}, nil
}

// Spec implements envs.Multi.
func (w *Matrix) Spec() envs.Spec { return w.spec }

// Agents implements envs.Multi.
func (w *Matrix) Agents() []string { return []string{"player_0", "player_1"} }

// Reset implements envs.Multi.
func (w *Matrix) Reset(_ rng.Key, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("reset %s: %w", matrixGame, envs.ErrClosed)
	}
	w.begin(steps, present)
	return nil
}

func (w *Matrix) begin(steps []*envs.TimeStep, present []bool) {
	w.running = true
	for i, ts := range steps {
		present[i] = true
		ts.Restart()
		w.observe(i, ts)
	}
}

func (w *Matrix) observe(i int, ts *envs.TimeStep) {
	ts.Obs[0].Int64s()[0] = int64(i)
	if ts.Mask != nil {
		for a := range ts.Mask.Bools() {
			ts.Mask.Bools()[a] = w.running && a < w.choices[i]
		}
	}
}

// Step implements envs.Multi.
func (w *Matrix) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case w.closed:
		return fmt.Errorf("step %s: %w", matrixGame, envs.ErrClosed)
	case !w.running:
		return fmt.Errorf("step %s: %w", matrixGame, envs.ErrNoEpisode)
	}
	var chosen [2]int
	for i, a := range actions {
		if err := envs.CheckAction(&w.spec, a); err != nil {
			return err
		}
		chosen[i] = min(int(a.Int64s()[0]), w.choices[i]-1)
	}
	earned := w.payoff[chosen[0]][chosen[1]]
	steps[0].Terminate(earned)
	steps[1].Terminate(-earned)
	w.running = false
	for i, ts := range steps {
		present[i] = true
		w.observe(i, ts)
	}
	return nil
}

// Close implements envs.Multi.
func (w *Matrix) Close() error {
	w.closed, w.running = true, false
	return nil
}

// SaveState implements envs.MultiSaver.
func (w *Matrix) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save %s: %w", matrixGame, envs.ErrNoEpisode)
	}
	return json.Marshal(struct{}{})
}

// LoadState implements envs.MultiSaver.
func (w *Matrix) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("load %s: %w", matrixGame, envs.ErrClosed)
	}
	if err := json.Unmarshal(data, &struct{}{}); err != nil {
		return fmt.Errorf("load %s: %w", matrixGame, err)
	}
	w.begin(steps, present)
	return nil
}

// MixedConfig describes a player of matrix games who draws.
type MixedConfig struct {
	// Probabilities has the weight of each choice; they need not sum to 1.
	Probabilities []float64 `yaml:"probabilities"`
}

// Validate reports all problems.
func (c MixedConfig) Validate() error {
	var p configs.Problems
	sum := 0.0
	for i, x := range c.Probabilities {
		p.NonNegative(fmt.Sprintf("probabilities[%d]", i), x)
		sum += x
	}
	p.Check(sum > 0, "probabilities", "sum to %g, expected more than 0", sum)
	return p.Err()
}

// mixed implements envs.Player.
type mixed struct {
	weights []float64
	sum     float64
}

// Act implements envs.Player.
func (p *mixed) Act(w envs.Multi, agent int, _ *envs.TimeStep, random *rng.Stream, action *tensor.Tensor) error {
	g, ok := w.(*Matrix)
	if !ok || len(p.weights) != g.choices[agent] {
		return fmt.Errorf("probabilities: %d, expected those of %s for each choice of agent %d", len(p.weights), matrixGame, agent)
	}
	at := random.Float64() * p.sum
	k := 0
	for k < len(p.weights)-1 && at >= p.weights[k] {
		at -= p.weights[k]
		k++
	}
	action.Int64s()[0] = int64(k)
	return nil
}

// Exploitability is how much a player of best responses earns of two strategies in the mean of both
// sides, beyond what they earn of each other: 0 exactly at an equilibrium, (NashConv)/2 of Lanctot
// et al. 2017 (arXiv 1711.00832). rows and columns are probabilities.
func Exploitability(payoff [][]float64, rows, columns []float64) float64 {
	best, worst := math.Inf(-1), math.Inf(1)
	for _, row := range payoff {
		x := 0.0
		for k, v := range row {
			x += columns[k] * v
		}
		best = max(best, x)
	}
	for k := range payoff[0] {
		x := 0.0
		for i, row := range payoff {
			x += rows[i] * row[k]
		}
		worst = min(worst, x)
	}
	return (best - worst) / 2
}
