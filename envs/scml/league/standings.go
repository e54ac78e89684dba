package league

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Standing is what a competitor has come to.
type Standing struct {
	Name string `json:"competitor"`
	// Score is the truncated mean that competitors are ranked by; Mean and Error are the plain mean
	// and its standard error, which one world has none of: nil, null in JSON.
	Score    float64  `json:"score"`
	Mean     float64  `json:"mean"`
	Error    *float64 `json:"standard_error"`
	Worlds   int      `json:"worlds"`
	Bankrupt int      `json:"bankrupt"`
	// WinRate is the share of worlds in which no other competitor scored more. Short is the share
	// of days on which less was made than owed, and Overflow the mean of rows'; the others are sums
	// of rows'.
	WinRate  float64 `json:"win_rate"`
	Short    float64 `json:"short"`
	Overflow float64 `json:"overflow"`
	Actions  int     `json:"actions"`
	Unsafe   int     `json:"unsafe"`
	world.Faults
	// Places is the score in chains of each length, and after each of these at their levels.
	Places []Place `json:"places"`
}

// Place is what a competitor scored in one group of worlds.
type Place struct {
	Group
	Score  float64 `json:"score"`
	Worlds int     `json:"worlds"`
}

// Standings ranks competitors, the best first.
func Standings(rows []Row) []Standing {
	at, list, best := map[string]int{}, []Standing{}, map[int]float64{}
	for i := range rows {
		r := &rows[i]
		if b, ok := best[r.World]; !ok || r.Score > b {
			best[r.World] = r.Score
		}
	}
	for i := range rows {
		r := &rows[i]
		k, ok := at[r.Name]
		if !ok {
			k = len(list)
			at[r.Name], list = k, append(list, Standing{Name: r.Name, Places: []Place{}})
		}
		st := &list[k]
		st.Worlds++
		if r.Bankrupt {
			st.Bankrupt++
		}
		if r.Score >= best[r.World] {
			st.WinRate++
		}
		st.Short += r.Short
		st.Overflow += r.Overflow
		st.Actions, st.Unsafe = st.Actions+r.Actions, st.Unsafe+r.Unsafe
		st.Faults.Add(r.Faults)
	}
	all := groups(rows)
	for k := range list {
		st := &list[k]
		n := float64(st.Worlds)
		st.WinRate, st.Short, st.Overflow = st.WinRate/n, st.Short/n, st.Overflow/n
		for _, g := range all {
			var scores []float64
			for i := range rows {
				if r := &rows[i]; r.Name == st.Name && g.holds(r) {
					scores = append(scores, r.Score)
				}
			}
			if g == Everything {
				st.Score = TruncatedMean(scores)
				mean, deviation := moments(scores)
				if st.Mean = mean; len(scores) > 1 {
					st.Error = &deviation
				}
			} else if len(scores) > 0 {
				st.Places = append(st.Places, Place{g, TruncatedMean(scores), len(scores)})
			}
		}
	}
	slices.SortFunc(list, func(a, b Standing) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// Spread shows the standard error, or dash where there is none.
func (s *Standing) Spread(dash string) string {
	if s.Error == nil {
		return dash
	}
	return fmt.Sprintf("%.3f", *s.Error)
}

// moments returns the mean and its standard error, 0 for a single value.
func moments(list []float64) (mean, standardError float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	if len(list) < 2 {
		return mean, 0
	}
	sum := 0.0
	for _, x := range list {
		sum += (x - mean) * (x - mean)
	}
	n := float64(len(list))
	return mean, math.Sqrt(sum / (n - 1) / n)
}
