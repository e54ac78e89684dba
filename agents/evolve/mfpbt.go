package evolve

import (
	"fmt"
	"maps"
	"math"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The variants of MFPBT.
const (
	Paper = "paper"
	Owner = "owner"
)

// MFPBT is multi-frequency population-based training (arXiv 2506.03225). Sub-populations of equal
// size evolve after every so many generations. One that does ranks its members: the worst quarter
// become clones of the best quarter, rank by rank, whose hyper-parameters are multiplied by 0.8 or
// 1.25. The quarter before the worst takes the weights of better members of other sub-populations,
// and with them their hyper-parameters where those come from a slower one, or those of its own best
// member where they come from a faster one.
type MFPBT struct {
	// Variant is paper: quarters are exact, so that a sub-population is a multiple of 4, all
	// hyper-parameters of clones change, and none is kept within the bounds of the search space. Or
	// it is owner, for small populations: quarters are rounded, at least one member; each of a
	// clone's hyper-parameters changes with the probability Mutation and stays within its bounds.
	Variant string `yaml:"variant"`
	// Frequencies are the generations between two evolutions, ascending, one for each
	// sub-population. Empty is as many of 1, 10, 25, 50 as the population can be divided into, or
	// for the variant owner one sub-population that evolves in every generation.
	Frequencies []int `yaml:"frequencies,omitempty"`
	// Mutation is 1 for the variant paper, and by default 0.1 for owner.
	Mutation float64 `yaml:"mutation"`
}

// publishedFrequencies are those of the paper.
var publishedFrequencies = []int{1, 10, 25, 50}

func parseMFPBT(params configs.Section) (Strategy, error) {
	m := MFPBT{Variant: Paper, Mutation: 1}
	if s, ok := params.Lookup("variant"); ok && s.Decode(&m.Variant) == nil && m.Variant == Owner {
		m.Mutation = 0.1
	}
	err := params.Decode(&m)
	return m, err
}

// Validate reports all problems of the parameters.
func (m MFPBT) Validate() error {
	var p configs.Problems
	p.OneOf("variant", m.Variant, Paper, Owner)
	p.InRange("mutation", m.Mutation, 0, 1)
	p.Check(m.Variant != Paper || m.Mutation == 1, "mutation", "is %g; the variant %s changes all hyper-parameters of a clone", m.Mutation, Paper)
	for i, f := range m.Frequencies {
		p.Check(f > 0 && (i == 0 || f > m.Frequencies[i-1]), "frequencies", "are %v, expected ascending numbers of generations, of at least 1", m.Frequencies)
	}
	return p.Err()
}

// Check is the error of a population that cannot be divided.
func (m MFPBT) Check(members int) error {
	f := m.frequencies(members)
	size, of := 0, "a multiple of 4 members"
	if len(f) > 0 && members%len(f) == 0 {
		size = members / len(f)
	}
	if m.Variant == Owner {
		of = "at least 2 members"
	}
	if size < 2 || m.Variant == Paper && size%4 != 0 {
		return fmt.Errorf("a population of %d does not divide into %d equal sub-populations, each of %s, as mf_pbt of the variant %s needs", members, max(1, len(f)), of, m.Variant)
	}
	return nil
}

// frequencies are those of a population; nil where it cannot be divided.
func (m MFPBT) frequencies(members int) []int {
	switch {
	case len(m.Frequencies) > 0:
		return m.Frequencies
	case m.Variant == Owner:
		return publishedFrequencies[:1]
	}
	for n := len(publishedFrequencies); n > 0; n-- {
		if members%(4*n) == 0 {
			return publishedFrequencies[:n]
		}
	}
	return nil
}

// Next evolves the sub-populations whose generation it is.
func (m MFPBT) Next(history [][]Member, space tune.Space, s *rng.Stream) []Take {
	list := history[len(history)-1]
	every := m.frequencies(len(list))
	size := len(list) / len(every)
	quarter := max(1, int(math.Round(float64(size)/4)))
	order := ranked(list)
	rank := make([]int, len(list))
	for r, i := range order {
		rank[i] = r
	}
	takes := keep(list)
	for sub, own := range every {
		if len(history)%own != 0 {
			continue
		}
		var local, others []int
		for _, i := range order {
			if i/size == sub {
				local = append(local, i)
			} else {
				others = append(others, i)
			}
		}
		for k, a := range local[size-quarter:] {
			best := local[k]
			if math.IsNaN(list[best].Score) {
				continue
			}
			takes[a] = Take{Weights: best, Hyper: best, Values: m.perturb(list[best].Values, space, s), Action: Clone}
		}
		for _, a := range local[max(quarter, size-2*quarter) : size-quarter] {
			if len(others) == 0 || rank[others[0]] > rank[a] || math.IsNaN(list[others[0]].Score) {
				continue
			}
			from := others[0]
			others = others[1:]
			hyper := a
			switch out := every[from/size]; {
			case own < out:
				hyper = from
			case own > out:
				hyper = local[0]
			}
			takes[a] = Take{Weights: from, Hyper: hyper, Values: maps.Clone(list[hyper].Values), Action: Migrate}
		}
	}
	return takes
}

func (m MFPBT) perturb(v tune.Values, space tune.Space, s *rng.Stream) tune.Values {
	v = maps.Clone(v)
	for _, path := range space.Paths() {
		mutates, factor := s.Bernoulli(m.Mutation), 0.8
		if s.Bernoulli(0.5) {
			factor = 1.25
		}
		if mutates {
			set(v, path, space[path], v[path]*factor, m.Variant == Owner)
		}
	}
	return v
}
