package optim

import (
	"fmt"
	"math"
	"slices"
)

// Group is a range of parameters that share a learning rate and a decay.
type Group struct {
	Name   string    // appears in errors
	Params []float32 // updated in place by Step
	Grads  []float32 // same length as Params; read only, unless clipped by value

	// Offset is the position of Params in the layout that optimiser state
	// follows, in elements. If no group has an Offset, groups are laid out one
	// after another in the order given.
	Offset int

	LR      float32 // learning rate of the next step
	LRScale float32 // SetLR multiplies by it; 0 means 1
	Decay   float32 // weight decay; coupled or decoupled as the optimiser says

	// GradScale multiplies the gradient within the step; 0 means 1.
	// ClipGlobalNorm sets it.
	GradScale float32

	// Members are the named parameters inside, with Offsets in the same layout
	// as the group's. They may be nil; errors then name the group only.
	Members []Param
}

// SetLR sets every group's learning rate to lr times the group's LRScale.
func SetLR(groups []Group, lr float64) {
	for i := range groups {
		g := &groups[i]
		g.LR = float32(lr)
		if g.LRScale != 0 {
			g.LR = float32(lr * float64(g.LRScale))
		}
	}
}

// gradScale returns the factor of the gradient.
func (g *Group) gradScale() float32 {
	if g.GradScale == 0 {
		return 1
	}
	return g.GradScale
}

// label names group i in errors.
func (g *Group) label(i int) string {
	if g.Name != "" {
		return fmt.Sprintf("group %d (%s)", i, g.Name)
	}
	return fmt.Sprintf("group %d", i)
}

func (g *Group) check(i int) error {
	if len(g.Params) != len(g.Grads) {
		return fmt.Errorf("%s: %d gradients for %d parameters", g.label(i), len(g.Grads), len(g.Params))
	}
	if !nonNegative(g.LR) {
		return fmt.Errorf("%s: learning rate %g, want a finite number >= 0", g.label(i), g.LR)
	}
	if !nonNegative(g.Decay) {
		return fmt.Errorf("%s: decay %g, want a finite number >= 0", g.label(i), g.Decay)
	}
	if !nonNegative(g.GradScale) {
		return fmt.Errorf("%s: gradient scale %g, want a finite number >= 0", g.label(i), g.GradScale)
	}
	return nil
}

func nonNegative(x float32) bool { return x >= 0 && x <= math.MaxFloat32 }

// span is where a group lies in the layout of the state.
type span struct{ off, n int }

// layout places groups. It remembers what it placed, so that the usual case of
// unchanged groups costs one comparison each and allocates nothing.
type layout struct {
	spans []span // by group
	given []span // what the groups said when spans was computed
	end   int    // one past the last element of any group
	// sequential says that no group had an Offset; the state then belongs to
	// the order of the groups and they may not change shape.
	sequential bool
}

// unchanged reports whether groups are those placed last.
func (l *layout) unchanged(groups []Group) bool {
	if l.spans == nil || len(groups) != len(l.given) {
		return false
	}
	for i := range groups {
		if l.given[i] != (span{groups[i].Offset, len(groups[i].Params)}) {
			return false
		}
	}
	return true
}

// place returns the layout of groups.
func place(groups []Group) (layout, error) {
	l := layout{spans: make([]span, len(groups)), given: make([]span, len(groups)), sequential: len(groups) > 1}
	for i := range groups {
		l.given[i] = span{groups[i].Offset, len(groups[i].Params)}
		l.sequential = l.sequential && groups[i].Offset == 0
	}
	order := make([]int, len(groups))
	for i := range groups {
		order[i] = i
		l.spans[i] = l.given[i]
		if l.sequential {
			l.spans[i].off = l.end
			// Every group starts on a cache line of the state.
			l.end += roundUp(l.spans[i].n)
		}
		if l.given[i].off < 0 {
			return layout{}, fmt.Errorf("%s: offset %d is negative", groups[i].label(i), l.given[i].off)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return l.spans[a].off - l.spans[b].off })
	l.end = 0
	last := -1
	for _, i := range order {
		s := l.spans[i]
		if s.n == 0 {
			continue
		}
		if s.off < l.end {
			return layout{}, fmt.Errorf("%s overlaps %s at element %d", groups[i].label(i), groups[last].label(last), s.off)
		}
		l.end, last = s.off+s.n, i
	}
	return l, nil
}

// alignElems is one cache line in float32 elements.
const alignElems = 16

func roundUp(n int) int { return (n + alignElems - 1) &^ (alignElems - 1) }
