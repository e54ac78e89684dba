package offline

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Episode is one that a [Reader] reads or a [Writer] writes: T transitions, and T+1 observations.
type Episode struct {
	// Number counts the episodes of the data set from 0; Behaviour is the place in
	// Manifest.Behaviours.
	Number    int64
	Behaviour int
	// Obs has for each field the bytes of T+1 elements, and Rows, of fields that are windows
	// instead, the numbers of the windows' last rows.
	Obs  [][]byte
	Rows [][]int64
	// Mask has (T+1)·Manifest.Mask bytes, 1 for a valid action.
	Mask []byte
	// Action has the bytes of T elements of the action space.
	Action []byte
	// Reward, Discount and LogProb have T numbers; a log-probability that is not known is NaN. It
	// is the logarithm of the probability of the action, or of its density in the environment's
	// units.
	Reward, Discount, LogProb []float64
	// Cost has T·len(Manifest.Costs) numbers.
	Cost []float64
	// Truncated says that the episode was cut off, and Terminated that it came to its end; one that
	// is neither was not recorded to its end.
	Truncated, Terminated bool

	// where says of a step where it stands in the source that it is imported from; nil where that is
	// its number.
	where func(step int) string
}

// Len is the number of transitions.
func (e *Episode) Len() int { return len(e.Reward) }

// Return is the sum of the rewards, undiscounted.
func (e *Episode) Return() float64 {
	sum := 0.0
	for _, r := range e.Reward {
		sum += r
	}
	return sum
}

// reset makes room for another episode.
func (e *Episode) reset() {
	for f := range e.Obs {
		e.Obs[f], e.Rows[f] = e.Obs[f][:0], e.Rows[f][:0]
	}
	e.Mask, e.Action, e.Cost = e.Mask[:0], e.Action[:0], e.Cost[:0]
	e.Reward, e.Discount, e.LogProb = e.Reward[:0], e.Discount[:0], e.LogProb[:0]
	e.Truncated, e.Terminated = false, false
}

// column is what a data set has of a field, or of the action.
type column struct {
	name  string
	dtype tensor.DType
	// n is the number of elements of a row.
	n int
	// single says that rows are numbers and not lists.
	single bool
	// start are the first choices of a row's elements in files, which have the environment's
	// numbers, where episodes count from 0; nil is 0 for all.
	start []int64
}

// outside returns rows as files have them, those given where that is the same, and inside makes
// them those of an episode in place.
func (c column) outside(b []byte) []byte {
	if c.start == nil {
		return b
	}
	b = slices.Clone(b)
	c.shift(b, 1)
	return b
}

func (c column) inside(b []byte) { c.shift(b, -1) }

func (c column) shift(b []byte, sign int64) {
	if c.start == nil {
		return
	}
	for i := range len(b) / 8 {
		x := b[8*i:]
		binary.LittleEndian.PutUint64(x, binary.LittleEndian.Uint64(x)+uint64(sign*c.start[i%c.n]))
	}
}

// size is the number of bytes of a row.
func (c column) size() int { return c.dtype.Size() * c.n }

// columns are those of the observations and that of the action; manifests are valid.
func (m *Manifest) columns() (obs []column, action column) {
	of := func(name string, s artifact.Space) column {
		space, err := agents.SpaceOf(s)
		if err != nil {
			panic(fmt.Sprintf("offline: %s of a manifest that was checked: %v", name, err))
		}
		c := column{name: name, dtype: space.DType(), n: 1, single: len(space.Shape()) == 0, start: envs.Starts(space)}
		for _, d := range space.Shape() {
			c.n *= d
		}
		return c
	}
	for _, f := range m.Observation {
		c := of(obsPrefix+f.Name, f.Space)
		if f.Window != nil {
			c = column{name: c.name, dtype: tensor.Int64, n: 1, single: true}
		}
		obs = append(obs, c)
	}
	return obs, of(actionColumn, m.Action)
}

// newEpisode returns an empty episode of a data set.
func (m *Manifest) newEpisode() *Episode {
	return &Episode{Obs: make([][]byte, len(m.Observation)), Rows: make([][]int64, len(m.Observation))}
}
