package league

import (
	"math"
	"slices"
	"strings"
)

// Standing is what a competitor has come to.
type Standing struct {
	Name string `json:"competitor"`
	// Score is the truncated mean that competitors are ranked by; Mean and Error are the plain mean
	// and its standard error.
	Score    float64 `json:"score"`
	Mean     float64 `json:"mean"`
	Error    float64 `json:"standard_error"`
	Worlds   int     `json:"worlds"`
	Bankrupt int     `json:"bankrupt"`
	// Places is the score at each level, from the first to the last, of chains of each length.
	Places []Place `json:"places"`
}

// Place is what a competitor scored at one level of chains of one length.
type Place struct {
	Levels int     `json:"levels"`
	Level  int     `json:"level"`
	Score  float64 `json:"score"`
	Worlds int     `json:"worlds"`
}

// Standings ranks competitors, the best first.
func Standings(rows []Row) []Standing {
	scores := map[string][]float64{}
	places := map[string]map[[2]int][]float64{}
	bankrupt := map[string]int{}
	for _, r := range rows {
		scores[r.Name] = append(scores[r.Name], r.Score)
		if places[r.Name] == nil {
			places[r.Name] = map[[2]int][]float64{}
		}
		at := [2]int{r.Levels, r.Level}
		places[r.Name][at] = append(places[r.Name][at], r.Score)
		if r.Bankrupt {
			bankrupt[r.Name]++
		}
	}
	var list []Standing
	for name, all := range scores {
		st := Standing{Name: name, Score: TruncatedMean(all), Worlds: len(all), Bankrupt: bankrupt[name], Places: []Place{}}
		st.Mean, st.Error = moments(all)
		for at, some := range places[name] {
			st.Places = append(st.Places, Place{Levels: at[0], Level: at[1], Score: TruncatedMean(some), Worlds: len(some)})
		}
		slices.SortFunc(st.Places, func(a, b Place) int { return 100*(a.Levels-b.Levels) + a.Level - b.Level })
		list = append(list, st)
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

// moments returns the mean and its standard error.
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
