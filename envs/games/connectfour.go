package games

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// connectFour is the name of the kind, and of the environment.
const connectFour = "connect_four"

// ConnectFourConfig describes games of connect four.
type ConnectFourConfig struct {
	// Opening is the largest number of moves that are drawn before a game begins: how many, and
	// which, is drawn for each; one that would win is not played, and none after it. 0 begins with
	// the empty board.
	Opening int `yaml:"opening,omitempty"`
}

// Validate reports all problems.
func (c ConnectFourConfig) Validate() error {
	var p configs.Problems
	p.InRange("opening", float64(c.Opening), 0, mostOpening)
	return p.Err()
}

// mostOpening leaves most of a game to the players.
const mostOpening = 20

// ConnectFour is a game of connect four. It implements envs.Multi.
type ConnectFour struct {
	c       ConnectFourConfig
	spec    envs.Spec
	board   board
	running bool
	closed  bool
	// moves are the columns that were played, opened how many of them before the game began.
	moves  []int
	opened int
	random rng.Stream
}

var (
	_ envs.Multi      = (*ConnectFour)(nil)
	_ envs.MultiSaver = (*ConnectFour)(nil)
)

// NewConnectFour returns a world.
func NewConnectFour(c ConnectFourConfig) (*ConnectFour, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", connectFour, err)
	}
	return &ConnectFour{c: c, moves: make([]int, 0, Rows*Columns), spec: envs.Spec{
		Name: connectFour, Observation: envs.Dict{{Name: "board", Space: envs.NewBox(0, 1, 2*Rows*Columns)}},
		Action: envs.Discrete{N: Columns}, Masked: true, Reward: envs.Range{Low: -1, High: 1}, MaxSteps: Rows * Columns, Random: c.Opening > 0,
	}}, nil
}

// Spec implements envs.Multi.
func (w *ConnectFour) Spec() envs.Spec { return w.spec }

// Agents implements envs.Multi.
func (w *ConnectFour) Agents() []string { return []string{"player_0", "player_1"} }

// Reset implements envs.Multi.
func (w *ConnectFour) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("reset %s: %w", connectFour, envs.ErrClosed)
	}
	w.board, w.moves, w.running = board{}, w.moves[:0], true
	if w.c.Opening > 0 {
		w.random.Seed(key)
		w.open(w.random.IntN(w.c.Opening + 1))
	}
	w.opened = len(w.moves)
	for i, ts := range steps {
		present[i] = true
		ts.Restart()
	}
	w.observe(steps)
	return nil
}

// open plays n moves that are drawn. One that would win ends the opening.
func (w *ConnectFour) open(n int) {
	for len(w.moves) < n {
		c := w.random.IntN(Columns)
		if !w.board.legal(c) {
			continue
		}
		w.board.drop(c)
		if four(w.board.discs[1-w.board.turn()]) {
			w.board.undo(c)
			return
		}
		w.moves = append(w.moves, c)
	}
}

// Step implements envs.Multi. The action of the player who waits has no meaning.
func (w *ConnectFour) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case w.closed:
		return fmt.Errorf("step %s: %w", connectFour, envs.ErrClosed)
	case !w.running:
		return fmt.Errorf("step %s: %w", connectFour, envs.ErrNoEpisode)
	}
	who := w.board.turn()
	if err := envs.CheckAction(&w.spec, actions[who]); err != nil {
		return err
	}
	w.play(w.nearest(int(actions[who].Int64s()[0])))
	switch {
	case four(w.board.discs[who]):
		steps[who].Terminate(1)
		steps[1-who].Terminate(-1)
		w.running = false
	case w.board.full():
		steps[0].Terminate(0)
		steps[1].Terminate(0)
		w.running = false
	default:
		steps[0].Continue(0)
		steps[1].Continue(0)
	}
	present[0], present[1] = true, true
	w.observe(steps)
	return nil
}

// nearest is the column next to one, or itself, that is not full.
func (w *ConnectFour) nearest(column int) int {
	for d := range Columns {
		for _, c := range [2]int{column - d, column + d} {
			if c >= 0 && c < Columns && w.board.legal(c) {
				return c
			}
		}
	}
	return column
}

func (w *ConnectFour) play(column int) {
	w.board.drop(column)
	w.moves = append(w.moves, column)
}

// observe writes what each player sees, and may do.
func (w *ConnectFour) observe(steps []*envs.TimeStep) {
	for i, ts := range steps {
		to := ts.Obs[0].Float32s()
		own, other := w.board.discs[i], w.board.discs[1-i]
		for r := range Rows {
			for c := range Columns {
				at := stride*c + Rows - 1 - r
				k := 2 * (Columns*r + c)
				to[k], to[k+1] = float32(own>>at&1), float32(other>>at&1)
			}
		}
		mask := ts.Mask.Bools()
		for c := range mask {
			if w.board.turn() == i {
				mask[c] = w.board.legal(c)
			} else {
				mask[c] = c == 0
			}
		}
		if !w.running {
			clear(mask)
		}
	}
}

// Close implements envs.Multi.
func (w *ConnectFour) Close() error {
	w.closed, w.running = true, false
	return nil
}

// savedGame is the form of a saved game.
type savedGame struct {
	Moves  []int `json:"moves"`
	Opened int   `json:"opened"`
}

// SaveState implements envs.MultiSaver.
func (w *ConnectFour) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save %s: %w", connectFour, envs.ErrNoEpisode)
	}
	return json.Marshal(savedGame{w.moves, w.opened})
}

// LoadState implements envs.MultiSaver.
func (w *ConnectFour) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("load %s: %w", connectFour, envs.ErrClosed)
	}
	var game savedGame
	if err := json.Unmarshal(data, &game); err != nil {
		return fmt.Errorf("load %s: %w", connectFour, err)
	}
	w.board, w.moves, w.opened, w.running = board{}, w.moves[:0], game.Opened, false
	for i, c := range game.Moves {
		if c < 0 || c >= Columns || !w.board.legal(c) || four(w.board.discs[0]) || four(w.board.discs[1]) {
			return fmt.Errorf("load %s: move %d into column %d is not possible", connectFour, i, c)
		}
		w.play(c)
	}
	if w.opened < 0 || w.opened > len(w.moves) {
		return fmt.Errorf("load %s: an opening of %d of %d moves", connectFour, w.opened, len(w.moves))
	}
	if w.board.full() || four(w.board.discs[0]) || four(w.board.discs[1]) {
		return fmt.Errorf("load %s: the game has ended", connectFour)
	}
	w.running = true
	for i, ts := range steps {
		if present[i] = true; len(w.moves) == w.opened {
			ts.Restart()
		} else {
			ts.Continue(0)
		}
	}
	w.observe(steps)
	return nil
}
