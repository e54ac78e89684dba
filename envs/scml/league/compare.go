package league

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Group is what scores are compared in; the JSON keys are stable.
type Group struct {
	// Levels is the length of the chains, 0 for all; Level is the place in them, −1 for all.
	Levels int `json:"levels"`
	Level  int `json:"level"`
}

// Everything is the group of all worlds.
var Everything = Group{Levels: 0, Level: -1}

func (g Group) holds(r *Row) bool {
	return (g.Levels == 0 || g.Levels == r.Levels) && (g.Level < 0 || g.Level == r.Level)
}

// order puts all worlds first, and chains before their places.
func (g Group) order(o Group) int {
	return cmp.Or(cmp.Compare(g.Levels, o.Levels), cmp.Compare(g.Level, o.Level))
}

// groups are all that rows have.
func groups(rows []Row) []Group {
	list := []Group{Everything}
	for i := range rows {
		list = append(list, Group{rows[i].Levels, -1}, Group{rows[i].Levels, rows[i].Level})
	}
	slices.SortFunc(list, Group.order)
	return slices.Compact(list)
}

// Difference is how much one competitor scores more than another one; the JSON keys are stable.
type Difference struct {
	Name    string `json:"competitor"`
	Against string `json:"against"`
	Group
	// Difference is that of the truncated means.
	Difference float64 `json:"difference"`
	// Low and High are its interval of 95 %, Error its standard error, and Ahead the share of
	// resamples in which it is above 0. All are nil, and null in JSON, where one of the two has a
	// single configuration of chains of some length: what is drawn from it is always the same, as if
	// it were known.
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Error *float64 `json:"standard_error"`
	Ahead *float64 `json:"ahead"`
	// Configs is how many configurations both have scores of, and Needed how many it would take
	// for an interval that ends at 0, if the difference is what it seems; 0 where it seems none,
	// nil where there is no interval.
	Configs int  `json:"configs"`
	Needed  *int `json:"configs_needed"`
}

// Interval shows the interval, or dash where there is none.
func (d *Difference) Interval(dash string) string {
	if d.Low == nil || d.High == nil {
		return dash
	}
	return fmt.Sprintf("%+.3f to %+.3f", *d.Low, *d.High)
}

// Cells shows the bounds of the interval, the share of resamples in which the first is ahead, and
// how many configurations are needed, or dash for each.
func (d *Difference) Cells(dash string) (low, high, ahead, needed string) {
	if d.Low == nil || d.High == nil || d.Ahead == nil || d.Needed == nil {
		return dash, dash, dash, dash
	}
	return fmt.Sprintf("%+.3f", *d.Low), fmt.Sprintf("%+.3f", *d.High), fmt.Sprintf("%.0f %%", 100**d.Ahead), fmt.Sprint(*d.Needed)
}

// How intervals are made.
const (
	resamples  = 2000
	confidence = 0.95
	// enough is the share of resamples in which both need scores for there to be an interval.
	enough = 0.9
)

// Differences compares each two competitors, in all worlds, in chains of each length and at each of
// their levels, in the order of names. In a pair the first is the one that is named first.
//
// Intervals are percentiles of the bootstrap over configurations (Efron 1979), as many of each
// length of chains as there are: all worlds of a configuration, and so all competitors, are drawn
// together, and truncated means are computed for each draw. There is no interval where one of a pair
// has scores of a single configuration of some length, where both share fewer than two, or where too
// few resamples have scores of both. A pair that shares none in a group is left out. The numbers
// depend on the rows and the seed alone.
func Differences(rows []Row, names []string, seed uint64) []Difference {
	b := newBootstrap(rows, seed)
	list := []Difference{}
	for _, g := range groups(rows) {
		all := make([]sampled, len(names))
		for i, name := range names {
			all[i] = b.of(rows, name, g)
		}
		for i := range names {
			for j := i + 1; j < len(names); j++ {
				if d, ok := all[i].minus(&all[j], b.levels); ok {
					d.Name, d.Against, d.Group = names[i], names[j], g
					list = append(list, d)
				}
			}
		}
	}
	return list
}

// bootstrap has how often each configuration is drawn, by resample.
type bootstrap struct {
	times [][]int
	// levels is the length of the chains of each configuration.
	levels map[int]int
}

func newBootstrap(rows []Row, seed uint64) *bootstrap {
	most := 0
	byLevels, levels := map[int][]int{}, map[int]int{}
	for i := range rows {
		most = max(most, rows[i].Config+1)
		byLevels[rows[i].Levels] = append(byLevels[rows[i].Levels], rows[i].Config)
		levels[rows[i].Config] = rows[i].Levels
	}
	var strata [][]int
	for _, list := range sorted.All(byLevels) {
		slices.Sort(list)
		strata = append(strata, slices.Compact(list))
	}
	s := rng.New(seed).Split("bootstrap").Stream()
	b := &bootstrap{times: make([][]int, resamples), levels: levels}
	for r := range b.times {
		b.times[r] = make([]int, most)
		for _, list := range strata {
			for range list {
				b.times[r][list[s.IntN(len(list))]]++
			}
		}
	}
	return b
}

// sampled is a competitor's truncated mean, and that of each resample.
type sampled struct {
	configs   []int
	score     float64
	resamples []float64
}

func (b *bootstrap) of(rows []Row, name string, g Group) (s sampled) {
	var list []scored
	for i := range rows {
		if r := &rows[i]; r.Name == name && g.holds(r) {
			list = append(list, scored{r.Score, r.Config})
			s.configs = append(s.configs, r.Config)
		}
	}
	ascending(list)
	slices.Sort(s.configs)
	s.configs = slices.Compact(s.configs)
	if len(list) == 0 {
		return s
	}
	once := make([]int, len(b.times[0]))
	for i := range once {
		once[i] = 1
	}
	s.score = truncated(list, once)
	for _, times := range b.times {
		s.resamples = append(s.resamples, truncated(list, times))
	}
	return s
}

// single reports whether there is a single configuration of chains of some length.
func (s *sampled) single(levels map[int]int) bool {
	of := map[int]int{}
	for _, c := range s.configs {
		of[levels[c]]++
	}
	return slices.Contains(slices.Collect(maps.Values(of)), 1)
}

// minus compares, if there is a configuration to compare in. levels is the length of the chains of
// each.
func (s *sampled) minus(o *sampled, levels map[int]int) (d Difference, ok bool) {
	for _, c := range s.configs {
		if _, found := slices.BinarySearch(o.configs, c); found {
			d.Configs++
		}
	}
	if d.Configs == 0 {
		return d, false
	}
	d.Difference = s.score - o.score
	if d.Configs < 2 || s.single(levels) || o.single(levels) {
		return d, true
	}
	var list []float64
	ahead := 0.0
	for i, x := range s.resamples {
		if x -= o.resamples[i]; !math.IsNaN(x) {
			list = append(list, x)
			if x > 0 {
				ahead++
			}
		}
	}
	if float64(len(list)) < enough*resamples {
		return d, true
	}
	slices.Sort(list)
	n := float64(len(list))
	ahead /= n
	_, ofMean := moments(list)
	tail, deviation, needed := (1-confidence)/2, ofMean*math.Sqrt(n), 0
	low, high := quantile(list, tail), quantile(list, 1-tail)
	if far := math.Abs(d.Difference); far > 0 {
		half := (high - low) / 2
		needed = int(min(math.Ceil(float64(d.Configs)*half*half/(far*far)), 1e9))
	}
	d.Low, d.High, d.Error, d.Ahead, d.Needed = &low, &high, &deviation, &ahead, &needed
	return d, true
}

// quantile interpolates linearly in ascending values.
func quantile(list []float64, q float64) float64 {
	at := float64(q * float64(len(list)-1))
	i := int(at)
	if i+1 >= len(list) {
		return list[len(list)-1]
	}
	return list[i] + float64((at-float64(i))*(list[i+1]-list[i]))
}
