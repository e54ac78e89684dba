package onpolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
)

// present is the name of the array that says which rows were there.
const present = "present"

// Version implements agents.Unroller.
func (l *Learner) Version() int64 { return l.Updates }

// Adopt implements agents.Unroller.
func (l *Learner) Adopt(version int64) {
	l.Updates = version
	l.Replaced++
}

// TakeUnroll copies the arrays of a complete rollout, in which numbers of samples are
// [rounds · rows · …], and those whose names end with bootstrap [rows · …], and begins the
// next one.
func (l *Learner) TakeUnroll(arrays network.Arrays) (*agents.Unroll, error) {
	r := l.Rollout
	if !r.Full() {
		return nil, fmt.Errorf("%s: unroll: %d of %d rounds are recorded", l.Name, r.T, r.Rounds)
	}
	u := &agents.Unroll{Version: l.Updates, Rows: r.Envs, Arrays: map[string]any{}}
	for name, a := range arrays {
		switch x := a.(type) {
		case []bool:
			u.Arrays[name] = slices.Clone(x)
		case []byte:
			u.Arrays[name] = slices.Clone(x)
		case []int64:
			u.Arrays[name] = slices.Clone(x)
		case []float32:
			u.Arrays[name] = slices.Clone(x)
		case []float64:
			u.Arrays[name] = slices.Clone(x)
		default:
			return nil, fmt.Errorf("%s: unroll: array %q is %T", l.Name, name, a)
		}
	}
	r.Clear()
	return u, nil
}

// JoinUnroll copies an unroll to the rows from first on. arrays lists those of a complete rollout.
func (l *Learner) JoinUnroll(u *agents.Unroll, first int, arrays func() network.Arrays) error {
	r := l.Rollout
	if first == 0 {
		r.Clear()
	}
	if r.T != 0 {
		return fmt.Errorf("%s: join: %d rounds are recorded already", l.Name, r.T)
	}
	if u.Rows < 1 || first < 0 || first+u.Rows > r.Envs {
		return fmt.Errorf("%s: join: an unroll of %d rows from row %d on, and there are %d", l.Name, u.Rows, first, r.Envs)
	}
	here, some := u.Arrays[present].([]bool)
	if some && r.Present == nil {
		r.setPresent()
	}
	r.T = r.Rounds
	all := arrays()
	r.T = 0
	for name, dst := range all {
		src, ok := u.Arrays[name]
		if name == present && !some {
			src, ok = slices.Repeat([]bool{true}, r.Rounds*u.Rows), true
		}
		if !ok {
			return fmt.Errorf("%s: join: the unroll has no %q", l.Name, name)
		}
		rounds := r.Rounds
		if strings.HasSuffix(name, "bootstrap") {
			rounds = 1
		}
		at := rows{rounds: rounds, from: u.Rows, first: first, to: r.Envs}
		if !at.copy(dst, src) {
			return fmt.Errorf("%s: join: %q is %T of other length than %d rows of a rollout of %d rounds have", l.Name, name, src, u.Rows, r.Rounds)
		}
	}
	if some && len(here) != r.Rounds*u.Rows {
		return fmt.Errorf("%s: join: %d rows are there or not, expected %d", l.Name, len(here), r.Rounds*u.Rows)
	}
	if first+u.Rows == r.Envs {
		r.T = r.Rounds
	}
	return nil
}

// rows says which of an array's rows are copied: those of from environments to the ones from first
// on, of to, in each round.
type rows struct{ rounds, from, first, to int }

// copy reports whether both are of one type and as long as they should be.
func (x rows) copy(dst, src any) bool {
	switch d := dst.(type) {
	case []bool:
		s, ok := src.([]bool)
		return ok && copyRows(d, s, x)
	case []byte:
		s, ok := src.([]byte)
		return ok && copyRows(d, s, x)
	case []int64:
		s, ok := src.([]int64)
		return ok && copyRows(d, s, x)
	case []float32:
		s, ok := src.([]float32)
		return ok && copyRows(d, s, x)
	case []float64:
		s, ok := src.([]float64)
		return ok && copyRows(d, s, x)
	}
	return false
}

func copyRows[E any](dst, src []E, x rows) bool {
	size := len(dst) / (x.rounds * x.to)
	if len(src) != x.rounds*x.from*size {
		return false
	}
	for t := range x.rounds {
		copy(dst[(t*x.to+x.first)*size:], src[t*x.from*size:(t+1)*x.from*size])
	}
	return true
}
