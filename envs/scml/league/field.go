package league

import (
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The sizes of levels in tournaments.
const (
	smallest = 4
	largest  = 6
)

// Field is who sits where.
type Field struct {
	// Sizes are the numbers of factories of the levels.
	Sizes []int
	// Places are the indices of the factories that competitors have.
	Places []int
	// Defaults are the names of the agents of all factories; those of Places are empty.
	Defaults []string
}

// DrawField draws a field for a number of competitors.
func DrawField(key rng.Key, levels, competitors int) Field {
	s := key.Split("field").Stream()
	cut := func(total int) []int {
		bins := make([]int, levels)
		for range total {
			bins[s.IntN(levels)]++
		}
		return bins
	}
	defaults, own := cut(smallest*levels), cut(competitors)
	var names []string
	for _, k := range opponents.Kinds {
		if k.Default {
			names = append(names, k.Name)
		}
	}
	var f Field
	for level, a := range own {
		d := defaults[level]
		if a+d < smallest {
			d = smallest - a
		}
		if a+d > largest && d > 1 {
			d = max(1, smallest-a)
		}
		f.Sizes = append(f.Sizes, a+d)
		for i := range a + d {
			if i < a {
				f.Places = append(f.Places, len(f.Defaults))
				f.Defaults = append(f.Defaults, "")
			} else {
				f.Defaults = append(f.Defaults, names[s.IntN(len(names))])
			}
		}
	}
	return f
}
