package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Stretch is what a snapshot of a replay has of one environment without a hole: T transitions of
// one policy, and the observation after the last of them. It begins with an episode, or where an
// older part has been overwritten.
type Stretch struct {
	// Policy is the number of the policy, 0 where the replay was one learner's own.
	Policy int32
	// Ended says that the last observation is the final one of an episode.
	Ended bool
	// Obs has for each field the bytes of T+1 observations, and Rows, of fields that are windows
	// instead, the numbers of the windows' last rows. Mask has the bytes of T+1 masks.
	Obs  [][]byte
	Rows [][]int64
	Mask []byte
	// Action has the bytes of T actions in the form of the layout's column. LogProb is nil where it
	// was not recorded; Cost has the costs of T steps.
	Action                          []byte
	Reward, Discount, LogProb, Cost []float32
}

// Snapshot is a replay as a checkpoint has it, read for its transitions.
type Snapshot struct {
	// Layout is that of the rows; Layout.Action says in which form actions are.
	Layout Layout
	u      *Uniform
	s      *Shared
}

// OpenSnapshot reads the replay of environments of a spec out of a checkpoint of [Uniform],
// [Prioritised] or [Shared], whose scope r is; the caller closes it.
func OpenSnapshot(r *checkpoint.Reader, spec envs.Spec) (*Snapshot, error) {
	var rec recorded
	if r.Has("recorder") {
		if err := r.JSON("recorder", &rec); err != nil {
			return nil, err
		}
		if rec.Store != "" {
			return nil, &ElsewhereError{rec.Store}
		}
	}
	switch {
	case r.Has("replay"):
		var s saved
		if err := r.JSON("replay", &s); err != nil {
			return nil, err
		}
		l, err := layoutOf(s.Columns, spec)
		if err != nil {
			return nil, err
		}
		if len(s.N) == 0 || s.Size < 3 || s.Size > math.MaxInt32/len(s.N) {
			return nil, fmt.Errorf("replay: the snapshot has %d environments of %d rows", len(s.N), s.Size)
		}
		u, err := NewUniform(l, Config{Capacity: (s.Size - 1) * len(s.N), Envs: len(s.N)})
		if err != nil {
			return nil, err
		}
		if err := u.LoadState(r); err != nil {
			return nil, errors.Join(err, u.Close())
		}
		return &Snapshot{Layout: l, u: u}, nil
	case r.Has("shared"):
		var in savedShared
		if err := r.JSON("shared", &in); err != nil {
			return nil, err
		}
		l, err := layoutOf(in.Columns, spec)
		if err != nil {
			return nil, err
		}
		if in.ChunkRows < 4 || len(in.Chunks) < 2 || len(in.Chunks) > math.MaxInt32/in.ChunkRows {
			return nil, fmt.Errorf("replay: the snapshot has %d chunks of %d rows", len(in.Chunks), in.ChunkRows)
		}
		s, err := NewShared(l, SharedConfig{Capacity: len(in.Chunks) * (in.ChunkRows - 1), ChunkRows: in.ChunkRows})
		if err != nil {
			return nil, err
		}
		if err := s.LoadState(r); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return &Snapshot{Layout: l, s: s}, nil
	}
	return nil, errors.New("replay: the checkpoint has no replay")
}

// layoutOf is the layout of columns that were saved, of environments of a spec.
func layoutOf(list []savedColumn, spec envs.Spec) (Layout, error) {
	l := LayoutOf(spec, Column{})
	at := len(l.Obs)
	if l.Mask > 0 {
		at++
	}
	// Costs are there only where a learner has asked for them.
	l.Costs = 0
	for _, c := range list[min(at, len(list)):] {
		d, err := tensor.ParseDType(c.DType)
		if err != nil {
			return l, fmt.Errorf("replay: column %q: %w", c.Name, err)
		}
		col := Column{c.Name, d, slices.Clone(c.Shape)}
		switch c.Name {
		case "reward", "discount", "time":
		case "log_prob":
			l.LogProb = true
		case "logits":
			l.Logits = lenOf(c.Shape)
		case "skill":
			l.Skill = &col
		case "cost":
			l.Costs = lenOf(c.Shape)
		default:
			if l.Action.Name != "" {
				return l, fmt.Errorf("replay: the column %q is not one of environments such as %s", c.Name, spec.Name)
			}
			l.Action = col
		}
	}
	if l.Action.Name == "" {
		return l, errors.New("replay: the snapshot has no actions")
	}
	return l, nil
}

// Policies lists the numbers of the policies that have transitions, in ascending order.
func (p *Snapshot) Policies() []int32 {
	if p.u != nil {
		return []int32{0}
	}
	var list []int32
	for k := range p.s.chunks {
		if c := &p.s.chunks[k]; c.used {
			list = append(list, c.policy)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Stretches are those of a policy, each overwritten by the next one: those of an environment in the
// order of time. A shared store has one for each of its chunks and episodes, the oldest chunks
// first.
func (p *Snapshot) Stretches(policy int32) iter.Seq[*Stretch] {
	return func(yield func(*Stretch) bool) {
		x := &Stretch{Policy: policy}
		if p.u != nil {
			for e, st := range p.u.streams {
				list := make([]int, st.n)
				for k := range list {
					list[k] = p.u.at1(e, k)
				}
				if !x.cut(p.u.rows, list, p.u.finals.has, yield) {
					return
				}
			}
			return
		}
		order := slices.Clone(p.s.queue)
		for k := range p.s.chunks {
			if c := &p.s.chunks[k]; c.used && !c.sealed {
				order = append(order, k)
			}
		}
		for _, k := range order {
			if p.s.chunks[k].policy != policy {
				continue
			}
			filled, _ := p.s.chunks[k].rows()
			list := make([]int, 0, filled+1)
			for i := range min(filled+1, p.s.c.ChunkRows) {
				list = append(list, k<<p.s.shift+i)
			}
			if !x.cut(p.s.rows, list, p.s.isFinal, yield) {
				return
			}
		}
	}
}

// cut divides rows that follow each other into stretches. What follows the last row is not there.
func (x *Stretch) cut(r *rows, list []int, final func(row int) bool, yield func(*Stretch) bool) bool {
	for begin, i := 0, 0; i < len(list); i++ {
		ended := final(list[i])
		if !ended && i < len(list)-1 {
			continue
		}
		if i > begin {
			x.take(r, list[begin:i+1], ended)
			if !yield(x) {
				return false
			}
		}
		begin = i + 1
	}
	return true
}

// take copies rows, of which the last is an observation alone.
func (x *Stretch) take(r *rows, list []int, ended bool) {
	x.Ended = ended
	x.Obs, x.Rows = slices.Grow(x.Obs[:0], len(r.obs))[:len(r.obs)], slices.Grow(x.Rows[:0], len(r.obs))[:len(r.obs)]
	for f := range r.obs {
		x.Obs[f], x.Rows[f] = x.Obs[f][:0], x.Rows[f][:0]
	}
	x.Mask, x.Action = x.Mask[:0], x.Action[:0]
	x.Reward, x.Discount, x.LogProb, x.Cost = x.Reward[:0], x.Discount[:0], x.LogProb[:0], x.Cost[:0]
	for i, at := range list {
		row := r.row(at)
		for f := range r.obs {
			if p := &r.obs[f]; p.window != nil {
				x.Rows[f] = append(x.Rows[f], int64(binary.LittleEndian.Uint32(row[p.off:])))
			} else {
				x.Obs[f] = append(x.Obs[f], row[p.off:p.off+p.size]...)
			}
		}
		x.Mask = append(x.Mask, row[r.mask.off:r.mask.off+r.mask.size]...)
		if i == len(list)-1 {
			continue
		}
		x.Action = append(x.Action, row[r.action.off:r.action.off+r.action.size]...)
		x.Reward, x.Discount = append(x.Reward, r.float(at, r.reward)), append(x.Discount, r.float(at, r.discount))
		if r.logProb.size > 0 {
			x.LogProb = append(x.LogProb, r.float(at, r.logProb))
		}
		for k := range r.cost.size / 4 {
			x.Cost = append(x.Cost, float32At(r.data, at*r.stride+r.cost.off+4*k))
		}
	}
}

// Close frees the rows.
func (p *Snapshot) Close() error {
	if p.u != nil {
		return p.u.Close()
	}
	return p.s.Close()
}
