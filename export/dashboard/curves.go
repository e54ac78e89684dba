package dashboard

import (
	"math"
	"slices"
)

// Band is the course of a tag over the runs of a group: at each of Steps, of so many runs N, the
// mean between the least and the greatest. Runs that do not reach so far are not counted there.
type Band struct {
	Group string   `json:"group"`
	Tag   string   `json:"tag"`
	Runs  []string `json:"runs"`
	// Seeds is how many different seeds the runs have; 0 where one does not say its seed.
	Seeds int       `json:"seeds"`
	Steps []int64   `json:"steps"`
	N     []int     `json:"n"`
	Min   []float64 `json:"min"`
	Max   []float64 `json:"max"`
	Mean  []float64 `json:"mean"`
}

// mostGrid is the most steps of a band of runs that were not logged at the same steps.
const mostGrid = 400

// Series are the series of the given tags and runs that there are.
func (b *Board) Series(runs, tags []string) ([]*SeriesData, error) {
	list := []*SeriesData{}
	for _, id := range runs {
		r, err := b.run(id)
		if err != nil {
			return nil, err
		}
		for _, tag := range tags {
			if d := r.data(tag); d != nil {
				list = append(list, d)
			}
		}
	}
	return list, nil
}

// Bands are the bands of a tag of the groups that the runs are of, in their order, over those of
// the runs that have it.
func (b *Board) Bands(runs []string, tag string) ([]Band, error) {
	groups := map[string][]*SeriesData{}
	seeds, silent := map[string]map[uint64]bool{}, map[string]bool{}
	var order []string
	for _, id := range runs {
		r, err := b.run(id)
		if err != nil {
			return nil, err
		}
		d := r.data(tag)
		if d == nil || len(d.Steps) == 0 {
			continue
		}
		r.mu.Lock()
		g, seed := r.about.group, r.about.seed
		r.mu.Unlock()
		if groups[g] == nil {
			order = append(order, g)
			seeds[g] = map[uint64]bool{}
		}
		if seed == nil {
			silent[g] = true
		} else {
			seeds[g][*seed] = true
		}
		groups[g] = append(groups[g], d)
	}
	bands := []Band{}
	for _, g := range order {
		one := band(g, tag, groups[g])
		if !silent[g] {
			one.Seeds = len(seeds[g])
		}
		bands = append(bands, one)
	}
	return bands, nil
}

// band joins the series of a group. Those that were logged at the same steps are joined at these;
// others are interpolated, each between its first and its last step.
func band(group, tag string, list []*SeriesData) Band {
	out := Band{Group: group, Tag: tag}
	for _, d := range list {
		out.Runs = append(out.Runs, d.Run)
	}
	for _, step := range grid(list) {
		n, low, high, sum := 0, math.Inf(1), math.Inf(-1), 0.0
		for _, d := range list {
			v, ok := d.at(step)
			if !ok {
				continue
			}
			n++
			low, high, sum = min(low, v), max(high, v), sum+v
		}
		if n == 0 {
			continue
		}
		out.Steps, out.N = append(out.Steps, step), append(out.N, n)
		out.Min, out.Max, out.Mean = append(out.Min, low), append(out.Max, high), append(out.Mean, sum/float64(n))
	}
	return out
}

// grid is the steps at which series are compared: those of the longest where it has all that the
// others have, and else equally spaced ones.
func grid(list []*SeriesData) []int64 {
	longest := list[0]
	for _, d := range list[1:] {
		if len(d.Steps) > len(longest.Steps) {
			longest = d
		}
	}
	same := true
	first, last := longest.Steps[0], longest.Steps[len(longest.Steps)-1]
	for _, d := range list {
		first, last = min(first, d.Steps[0]), max(last, d.Steps[len(d.Steps)-1])
		for _, step := range d.Steps {
			if _, ok := slices.BinarySearch(longest.Steps, step); !ok {
				same = false
			}
		}
	}
	if same || first == last {
		return longest.Steps
	}
	steps := make([]int64, mostGrid)
	for i := range steps {
		steps[i] = first + int64(math.Round(float64(last-first)*float64(i)/(mostGrid-1)))
	}
	return slices.Compact(steps)
}

// at interpolates the means at a step; ok is false outside of the series.
func (d *SeriesData) at(step int64) (v float64, ok bool) {
	i, found := slices.BinarySearch(d.Steps, step)
	switch {
	case found:
		return d.Mean[i], true
	case i == 0 || i == len(d.Steps):
		return 0, false
	}
	t := float64(step-d.Steps[i-1]) / float64(d.Steps[i]-d.Steps[i-1])
	return d.Mean[i-1] + t*(d.Mean[i]-d.Mean[i-1]), true
}
