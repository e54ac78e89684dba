package offline

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Checker looks at episodes one by one: whether observations and actions lie in their spaces, all
// numbers are such, actions are valid by the mask, and discounts agree with how an episode ended.
type Checker struct {
	d      *Dataset
	obs    []envs.Space
	action envs.Space
	// x and a are room for an element of each.
	x []*tensor.Tensor
	a *tensor.Tensor
}

// NewChecker returns a checker of a data set.
func NewChecker(d *Dataset) (*Checker, error) {
	c := &Checker{d: d}
	for i, f := range d.Observation {
		s, err := agents.SpaceOf(f.Space)
		if err != nil {
			return nil, fmt.Errorf("observation[%d].space: %w", i, err)
		}
		c.obs, c.x = append(c.obs, s), append(c.x, tensor.New(s.DType(), s.Shape()...))
	}
	var err error
	if c.action, err = agents.SpaceOf(d.Action); err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	c.a = tensor.New(c.action.DType(), c.action.Shape()...)
	return c, nil
}

// Check returns the first problem of an episode, nil where there is none.
func (c *Checker) Check(e *Episode) error {
	n := e.Len()
	at := func(step int, format string, args ...any) error {
		what := fmt.Sprintf(format, args...)
		if e.where != nil {
			return fmt.Errorf("%s: %s", e.where(min(step, n-1)), what)
		}
		return fmt.Errorf("episode %d, step %d: %s", e.Number, step, what)
	}
	for f, s := range c.obs {
		name := c.d.Observation[f].Name
		if w := c.d.Observation[f].Window; w != nil {
			for i, row := range e.Rows[f] {
				if row < 0 || row >= int64(w.Rows) {
					return at(i, "observation %q is the window that ends with row %d of a table of %d", name, row, w.Rows)
				}
			}
			continue
		}
		size := len(c.x[f].Bytes())
		for i := range n + 1 {
			copy(c.x[f].Bytes(), e.Obs[f][i*size:])
			if err := s.Check(c.x[f]); err != nil {
				return at(i, "observation %q: %v", name, err)
			}
		}
	}
	size := len(c.a.Bytes())
	for i := range n {
		copy(c.a.Bytes(), e.Action[i*size:])
		if err := c.action.Check(c.a); err != nil {
			return at(i, "action: %v", err)
		}
		if r := e.Reward[i]; math.IsNaN(r) || math.IsInf(r, 0) {
			return at(i, "the reward is %v", r)
		}
		if err := agents.CheckLogProb(c.action.DType(), e.LogProb[i]); err != nil {
			return at(i, "%v", err)
		}
		if d := e.Discount[i]; !(d >= 0 && d <= 1) {
			return at(i, "the discount is %v, expected one between 0 and 1", d)
		}
		if ends := i == n-1 && e.Terminated; ends != (e.Discount[i] == 0) {
			return at(i, "the discount is %v, and terminated %t", e.Discount[i], ends)
		}
	}
	for i, x := range e.Cost {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return at(i/len(c.d.Costs), "the cost is %v", x)
		}
	}
	switch {
	case e.Terminated && e.Truncated:
		return at(n-1, "the episode is both terminated and truncated")
	case !e.Terminated && !e.Truncated:
		return at(n-1, "the last transition is neither terminated nor truncated")
	}
	return c.masked(e, at)
}

// masked checks that actions are valid.
func (c *Checker) masked(e *Episode, at func(step int, format string, args ...any) error) error {
	if c.d.Mask == 0 {
		return nil
	}
	n := c.d.Mask
	for i, b := range e.Mask {
		if b > 1 {
			return at(i/n, "mask: %d, expected 0 or 1", b)
		}
	}
	size := len(c.a.Bytes())
	for i := range e.Len() {
		offset := 0
		for k, choices := range envs.Heads(c.action) {
			a := int(choice(c.action, e.Action[i*size:], k))
			if e.Mask[i*n+offset+a] == 0 {
				if s := envs.Starts(c.action); s != nil {
					a += int(s[k])
				}
				return at(i, "the action %d is not valid", a)
			}
			offset += choices
		}
	}
	return nil
}

// choice is that of head k of an action with these bytes.
func choice(s envs.Space, b []byte, k int) int64 {
	if _, ok := s.(envs.MultiBinary); ok {
		return int64(b[k])
	}
	return int64(binary.LittleEndian.Uint64(b[8*k:]))
}
