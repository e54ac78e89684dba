package league

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Rating is the strength of a member; the JSON keys are stable.
type Rating struct {
	Name string `json:"name"`
	// Elo is the rating, with a mean of 0 over the league, and Low and High are an interval of 95 %
	// around it, nil and null in JSON for who has played fewer than two games.
	Elo  float64  `json:"elo"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Games are those that it has played, and Score the share of the points that it has of them.
	Games int     `json:"games"`
	Score float64 `json:"score"`
}

// eloScale is the rating of odds of e to 1.
const eloScale = 400 / math.Ln10

// Rate returns the ratings of members by all matches between them, in the order of names.
//
// They are those of the greatest likelihood in the model of Bradley and Terry (1952), in which a
// member beats another with odds of 10^(difference/400), a draw counts as half a win and half a
// loss, and each has drawn one game with an average member beside those of the record, so that who
// has won or lost everything has a rating. Members do not change, and so it does not matter when
// games were played, which it does for Elo's updates. Intervals are of the Fisher information.
func Rate(names []string, matches []Match) []Rating {
	n := len(names)
	at := make(map[string]int, n)
	list := make([]Rating, n)
	for i, name := range names {
		at[name], list[i].Name = i, name
	}
	games, points := mat.NewDense(max(n, 1), max(n, 1), nil), make([]float64, n)
	for _, m := range matches {
		i, ok := at[m.A]
		k, known := at[m.B]
		if !ok || !known {
			continue
		}
		t := m.Total()
		g, won := float64(t.Games()), float64(t.Wins)+float64(t.Draws)/2
		games.Set(i, k, games.At(i, k)+g)
		games.Set(k, i, games.At(k, i)+g)
		points[i] += won
		points[k] += g - won
		list[i].Games += t.Games()
		list[k].Games += t.Games()
	}
	r := make([]float64, n)
	var info *mat.SymDense
	for range 100 {
		// Newton's method on a concave function.
		grad := mat.NewVecDense(max(n, 1), nil)
		info = mat.NewSymDense(max(n, 1), nil)
		for i := range n {
			p := logistic(r[i])
			g, d := points[i]+0.5-p, p*(1-p)
			for k := range n {
				if w := games.At(i, k); w > 0 {
					p := logistic(r[i] - r[k])
					g -= w * p
					d += w * p * (1 - p)
					info.SetSym(i, k, -w*p*(1-p))
				}
			}
			grad.SetVec(i, g)
			info.SetSym(i, i, d)
		}
		var step mat.VecDense
		var c mat.Cholesky
		if n == 0 || !c.Factorize(info) || c.SolveVecTo(&step, grad) != nil {
			break
		}
		most := 0.0
		for i := range r {
			// A step of more than e in odds is out of what the quadratic says.
			d := max(-1, min(1, step.AtVec(i)))
			r[i] += d
			most = max(most, math.Abs(d))
		}
		if most < 1e-10 {
			break
		}
	}
	mean := 0.0
	for _, x := range r {
		mean += x / float64(n)
	}
	var c mat.Cholesky
	var cov mat.SymDense
	known := n > 0 && c.Factorize(info) && c.InverseTo(&cov) == nil
	// The variances of differences from the mean.
	rows, all := make([]float64, n), 0.0
	for i := 0; known && i < n; i++ {
		for k := range n {
			rows[i] += cov.At(i, k) / float64(n)
		}
		all += rows[i] / float64(n)
	}
	for i := range list {
		l := &list[i]
		l.Elo = eloScale * (r[i] - mean)
		if known && l.Games > 1 {
			half := 1.96 * eloScale * math.Sqrt(max(0, cov.At(i, i)-2*rows[i]+all))
			low, high := l.Elo-half, l.Elo+half
			l.Low, l.High = &low, &high
		}
		if l.Games > 0 {
			l.Score = points[i] / float64(l.Games)
		}
	}
	return list
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
