package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Pairs are resampled so often, for an interval of this confidence.
const (
	pairedSamples    = 2000
	pairedConfidence = 0.95
)

// Paired compares the returns of two policies in the same episodes; the JSON keys are stable.
type Paired struct {
	// Episodes is the number of pairs, and Differing that of those with different returns.
	Episodes  int `json:"episodes"`
	Differing int `json:"differing"`
	// First and Second are mean returns, and Difference that of the second less the first.
	First      float64 `json:"first"`
	Second     float64 `json:"second"`
	Difference float64 `json:"difference"`
	// Low and High are the bounds of the difference's percentile bootstrap interval of 95 % over
	// pairs, which a single one has none of.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// PairedEpisodes lets both policies act through n episodes as [Episodes] does, each with the same
// key, so that an episode begins alike and chance is the same for both.
func PairedEpisodes(ctx context.Context, f envs.Factory, split envs.Split, first, second Actors, n, limit int, key rng.Key) (Paired, error) {
	var lists [2][]vector.Episode
	for i, a := range []Actors{first, second} {
		r, err := Episodes(ctx, f, split, a, agents.Greedy, n, limit, key)
		if err != nil {
			return Paired{}, err
		}
		lists[i] = r.Episodes
		slices.SortStableFunc(lists[i], func(x, y vector.Episode) int {
			return cmp.Or(cmp.Compare(x.Env, y.Env), cmp.Compare(x.Number, y.Number))
		})
	}
	if len(lists[0]) != len(lists[1]) {
		return Paired{}, fmt.Errorf("evaluate in pairs: %d and %d episodes of agents in the same worlds", len(lists[0]), len(lists[1]))
	}
	p := Paired{Episodes: len(lists[0])}
	apart := make([]float64, p.Episodes)
	for i, x := range lists[0] {
		y := lists[1][i]
		if x.Env != y.Env || x.Number != y.Number {
			return Paired{}, fmt.Errorf("evaluate in pairs: environment %d has episode %d with one policy and environment %d episode %d with the other", x.Env, x.Number, y.Env, y.Number)
		}
		if apart[i] = y.Return - x.Return; apart[i] != 0 {
			p.Differing++
		}
		p.First += x.Return / float64(p.Episodes)
		p.Second += y.Return / float64(p.Episodes)
	}
	p.Difference = stat.Mean(apart, nil)
	if p.Episodes < 2 {
		return p, nil
	}
	draws, means := key.Split("bootstrap").Stream(), make([]float64, pairedSamples)
	for k := range means {
		for range apart {
			means[k] += apart[draws.IntN(len(apart))] / float64(len(apart))
		}
	}
	slices.Sort(means)
	low := stat.Quantile((1-pairedConfidence)/2, stat.LinInterp, means, nil)
	high := stat.Quantile((1+pairedConfidence)/2, stat.LinInterp, means, nil)
	p.Low, p.High = &low, &high
	return p, nil
}
