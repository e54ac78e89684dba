package cmaes

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// State is all that later generations depend on, beside the configuration.
type State struct {
	Generation int
	Sigma      float64
	// Mean, PC and PS are [n]; Factor is the upper triangle of the covariance's Cholesky factor by
	// rows, [n·(n+1)/2].
	Mean, PC, PS, Factor []float64
}

// State returns a state, whose slices but the factor are the strategy's.
func (s *Strategy) State() State {
	factor := make([]float64, 0, s.n*(s.n+1)/2)
	a := s.chol.RawU()
	for i := range s.n {
		for j := i; j < s.n; j++ {
			factor = append(factor, a.At(i, j))
		}
	}
	return State{s.generation, s.sigma, s.mean, s.pc, s.ps, factor}
}

// SetState makes the strategy one of a state that State returned, of which it copies everything,
// and draws the members of its generation.
func (s *Strategy) SetState(from State) error {
	if len(from.Mean) != s.n || len(from.PC) != s.n || len(from.PS) != s.n || len(from.Factor) != s.n*(s.n+1)/2 {
		return fmt.Errorf("cmaes: a state of %d coordinates with paths of %d and %d and a factor of %d numbers, expected %d coordinates", len(from.Mean), len(from.PC), len(from.PS), len(from.Factor), s.n)
	}
	if from.Generation < 0 || !(from.Sigma > 0) {
		return fmt.Errorf("cmaes: a state of generation %d with a step size of %g", from.Generation, from.Sigma)
	}
	a, at := mat.NewTriDense(s.n, mat.Upper, nil), 0
	for i := range s.n {
		if !(from.Factor[at] > 0) {
			return fmt.Errorf("cmaes: element %d of the factor's diagonal is %g, expected more than 0", i, from.Factor[at])
		}
		for j := i; j < s.n; j++ {
			a.SetTri(i, j, from.Factor[at])
			at++
		}
	}
	s.chol.SetFromU(a)
	s.generation, s.sigma = from.Generation, from.Sigma
	copy(s.mean, from.Mean)
	copy(s.pc, from.PC)
	copy(s.ps, from.PS)
	s.draw()
	return nil
}
