package learning

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Summary is what the seeds of a task come to; the JSON keys are stable.
type Summary struct {
	// IQM is the interquartile mean of the scores (Agarwal et al. 2021, arXiv 2108.13264): of 5
	// seeds the mean of the middle 3. Low and High bound it with 95 % confidence, by 10,000
	// bootstrap samples of the seeds; a single seed has no bounds.
	IQM  float64  `json:"iqm"`
	Low  *float64 `json:"ci95_low"`
	High *float64 `json:"ci95_high"`
	// Reached is the number of seeds whose score reaches the target, and Passed the verdict of the
	// rule at Task.
	Reached int  `json:"reached"`
	Passed  bool `json:"passed"`
}

const resamples = 10_000

// Summarize applies the rule at Task to the scores of its seeds, of which there is at least one.
func Summarize(scores []float64, target float64) Summary {
	s := Summary{IQM: iqm(scores)}
	for _, x := range scores {
		if x >= target {
			s.Reached++
		}
	}
	s.Passed = s.IQM >= target && s.Reached >= len(scores)-len(scores)/5
	if len(scores) < 2 {
		return s
	}
	stream := rng.New(0).Split("bootstrap").Stream()
	means, sample := make([]float64, resamples), make([]float64, len(scores))
	for i := range means {
		for k := range sample {
			sample[k] = scores[stream.IntN(len(scores))]
		}
		means[i] = iqm(sample)
	}
	slices.Sort(means)
	low, high := stat.Quantile(0.025, stat.Empirical, means, nil), stat.Quantile(0.975, stat.Empirical, means, nil)
	s.Low, s.High = &low, &high
	return s
}

// Interval shows the bounds of scores, each as show does, or a dash where there are none.
func Interval(low, high *float64, show func(x float64) string) string {
	if low == nil || high == nil {
		return "-"
	}
	return show(*low) + " to " + show(*high)
}

// iqm is the mean without the lowest and the highest quarter, whose sizes are rounded down, as in
// SciPy's trim_mean.
func iqm(scores []float64) float64 {
	x := slices.Sorted(slices.Values(scores))
	cut := int(math.Floor(0.25 * float64(len(x))))
	return stat.Mean(x[cut:len(x)-cut], nil)
}
