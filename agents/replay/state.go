package replay

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// saved is what a replay's rows mean, to be compared when they are restored.
type saved struct {
	Columns []savedColumn `json:"columns"`
	Stride  int           `json:"stride"`
	Size    int           `json:"size"`
	// NSteps and Gamma say how it was sampled from; what is recorded does not depend on them.
	NSteps int     `json:"n_steps"`
	Gamma  float64 `json:"gamma"`
	Begin  []int   `json:"begin"`
	N      []int   `json:"n"`
}

type savedColumn struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Rows  int    `json:"window_rows,omitempty"`
}

// columns describes the columns of a table; of a window, the length of its table too, since the
// rows are numbers into it.
func (r *rows) columns() []savedColumn {
	var list []savedColumn
	add := func(p *part) {
		if p.size == 0 {
			return
		}
		c := savedColumn{Name: p.col.Name, DType: p.col.DType.String(), Shape: slices.Clone(p.col.Shape)}
		if p.window != nil {
			c.Rows = p.window.Table().Shape()[0]
		}
		list = append(list, c)
	}
	for f := range r.obs {
		add(&r.obs[f])
	}
	for _, p := range []*part{&r.mask, &r.reward, &r.discount, &r.logProb, &r.action, &r.time, &r.logits, &r.skill, &r.cost} {
		add(p)
	}
	return list
}

// same reports whether two lists of columns are the same.
func same(a, b []savedColumn) bool {
	return slices.EqualFunc(a, b, func(x, y savedColumn) bool {
		return x.Name == y.Name && x.DType == y.DType && slices.Equal(x.Shape, y.Shape) && x.Rows == y.Rows
	})
}

// recorded is what is saved of recording.
type recorded struct {
	Rounds int64 `json:"rounds"`
	// Store is the identity of a store that is not the learner's own.
	Store string `json:"store,omitempty"`
	// Clock is the number of transitions that were ever recorded in that store.
	Clock int64 `json:"clock,omitempty"`
}

// SaveState implements checkpoint.Stater. Only what is filled is saved. A round that has begun and
// not ended is left out.
func (u *Uniform) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("recorder", recorded{Rounds: u.rounds})
	s := saved{Columns: u.columns(), Stride: u.stride, Size: u.size, NSteps: u.c.NSteps, Gamma: u.c.Gamma}
	for e, st := range u.streams {
		s.Begin, s.N = append(s.Begin, st.begin), append(s.N, st.n)
		// A ring that has not been full begins with its first row.
		w.Scope("rows").PutBytes(strconv.Itoa(e), u.data[e*u.size*u.stride:][:st.n*u.stride], st.n, u.stride)
	}
	w.PutUint64s("finals", u.finals)
	w.PutJSON("replay", s)
	return nil
}

// LoadState implements checkpoint.Stater.
func (u *Uniform) LoadState(r *checkpoint.Reader) error {
	var rec recorded
	if err := r.JSON("recorder", &rec); err != nil {
		return err
	}
	if rec.Store != "" {
		return &ElsewhereError{rec.Store}
	}
	var s saved
	if err := r.JSON("replay", &s); err != nil {
		return err
	}
	if s.Stride != u.stride || s.Size != u.size || len(s.N) != len(u.streams) || len(s.Begin) != len(u.streams) || !same(s.Columns, u.columns()) {
		return fmt.Errorf("replay: restore: the checkpoint has %d environments of %d rows with columns %v; expected %d of %d with %v",
			len(s.N), s.Size, s.Columns, len(u.streams), u.size, u.columns())
	}
	for e := range u.streams {
		st := stream{s.Begin[e], s.N[e]}
		if st.n < 0 || st.n > u.size || st.begin < 0 || st.begin >= u.size || st.begin > 0 && st.n < u.size {
			return fmt.Errorf("replay: restore: environment %d has %d rows that begin at %d of %d", e, st.n, st.begin, u.size)
		}
		if err := r.Scope("rows").BytesInto(strconv.Itoa(e), u.data[e*u.size*u.stride:][:st.n*u.stride], st.n, u.stride); err != nil {
			return err
		}
		// Old rows behind the restored ones would come into later checkpoints. Memory that was
		// never used stays untouched.
		if old := u.streams[e].n; old > st.n {
			clear(u.data[(e*u.size+st.n)*u.stride:][:(old-st.n)*u.stride])
		}
		u.streams[e] = st
	}
	if err := r.Uint64sInto("finals", u.finals); err != nil {
		return err
	}
	u.count()
	u.rounds, u.open = rec.Rounds, false
	return nil
}

// count counts the transitions, and finds the rows that show the present.
func (u *Uniform) count() {
	u.len = 0
	clear(u.shown)
	for e, st := range u.streams {
		if st.n > 0 {
			u.shown.set(u.newest(e))
		}
		for k := range st.n - 1 {
			if !u.finals.has(u.at1(e, k)) {
				u.len++
			}
		}
	}
}
