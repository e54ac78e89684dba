package bake

import (
	"context"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// isState reports whether one of the states is given as that input.
func isState(list []models.State, input string) bool {
	for _, s := range list {
		if s.Input == input {
			return true
		}
	}
	return false
}

// remember compares rows that follow each other in episodes.
func (v *Prover) remember(ctx context.Context, rows int, begins []bool) error {
	w := &walk{v: v, rows: rows, trained: newTrace(v.trained.memory, rows), served: newTrace(v.served.memory, rows)}
	for row := range rows {
		if row == 0 || begins == nil || begins[row] {
			w.starts = append(w.starts, row)
		}
	}
	v.report.Episodes += len(w.starts)
	side := Batches[len(Batches)-2]
	if err := w.episodes(ctx, w.starts, side); err != nil {
		return err
	}
	if err := w.episodes(ctx, w.starts[:1], 1); err != nil {
		return err
	}
	size := Batches[len(Batches)-1]
	for from := 0; from < rows; from += size {
		if err := v.batch(ctx, from, min(size, rows-from), w.trained.rows, w.served.rows); err != nil {
			return err
		}
	}
	return nil
}

// walk leads both forms through episodes.
type walk struct {
	v               *Prover
	rows            int
	starts          []int
	trained, served *trace
}

// trace is the memory of one form: what each row was met with.
type trace struct {
	memory []models.State
	rows   []*tensor.Tensor // by state, [rows, …]
}

func newTrace(list []models.State, rows int) *trace {
	t := &trace{memory: list}
	for _, s := range list {
		t.rows = append(t.rows, s.Tensor(rows))
	}
	return t
}

// end is the row behind the episode that begins with a row.
func (w *walk) end(start int) int {
	for _, s := range w.starts {
		if s > start {
			return s
		}
	}
	return w.rows
}

// episodes goes through the episodes that begin at some rows, a number of them side by side. One
// that has ended makes room for the next.
func (w *walk) episodes(ctx context.Context, starts []int, side int) error {
	type lane struct{ row, end int }
	var lanes []lane
	for len(starts) > 0 || len(lanes) > 0 {
		for len(lanes) < side && len(starts) > 0 {
			lanes = append(lanes, lane{starts[0], w.end(starts[0])})
			starts = starts[1:]
		}
		at := make([]int, len(lanes))
		for i, l := range lanes {
			at[i] = l.row
		}
		raw := make([]*tensor.Tensor, len(w.v.inputs))
		for i := range raw {
			raw[i] = w.v.p.raw(i)
		}
		want, got, err := w.v.compare(ctx, gather(w.v.p.Samples, at), gather(raw, at), gather(w.trained.rows, at), gather(w.served.rows, at), len(at), func(row int) int { return at[row] })
		if err != nil {
			return err
		}
		kept := lanes[:0]
		for i, l := range lanes {
			if l.row++; l.row < l.end {
				w.trained.keep(w.v.trained, want, i, l.row)
				w.served.keep(w.v.served, got, i, l.row)
				kept = append(kept, l)
			}
		}
		lanes = kept
	}
	return nil
}

// keep makes the states that a form gave for a row of its outputs those of a row.
func (t *trace) keep(s side, out []*tensor.Tensor, from, to int) {
	for k, m := range t.memory {
		for i, port := range s.Outputs() {
			if port.Name == m.Output {
				copy(t.rows[k].Rows(to, to+1).Bytes(), out[i].Rows(from, from+1).Bytes())
			}
		}
	}
}

// gather copies rows of several tensors.
func gather(list []*tensor.Tensor, rows []int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(list))
	for i, t := range list {
		shape := append([]int{len(rows)}, t.Shape()[1:]...)
		out[i] = tensor.New(t.DType(), shape...)
		for k, row := range rows {
			copy(out[i].Rows(k, k+1).Bytes(), t.Rows(row, row+1).Bytes())
		}
	}
	return out
}
