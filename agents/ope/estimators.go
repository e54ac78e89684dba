package ope

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The estimators, as the package comment describes them. Behaviour is the mean return of the data.
const (
	Behaviour = "behaviour"
	PDIS      = "pdis"
	WPDIS     = "wpdis"
	DR        = "dr"
	WDR       = "wdr"
	FQE       = "fqe"
)

// Estimators lists the names of the estimators, in the order of tables.
func Estimators() []string { return []string{PDIS, WPDIS, DR, WDR, FQE} }

// weighs reports whether an estimator reads the ratios of probabilities.
func weighs(name string) bool { return name != FQE && name != Behaviour }

// fits reports whether an estimator reads a fitted q.
func fits(name string) bool { return name == DR || name == WDR || name == FQE }

// Estimate is the value of a policy by one estimator.
type Estimate struct {
	Estimator string
	// Value is NaN where there is none, and Low and High are then, too: the bounds of the interval.
	Value, Low, High float64
	// EffectiveSampleSize is that of the weights, and the number of episodes without any.
	EffectiveSampleSize float64
	// Note says why there is no value, or no interval, or that the value is not to be trusted.
	Note string
}

// Bootstrap says how intervals are made: by so many samples, drawn by a key.
type Bootstrap struct {
	Samples int
	// Level is the share of the samples' estimates within the interval, such as 0.95.
	Level float64
	Key   rng.Key
}

// Of estimates the value of a policy by an estimator, whose needs the episodes must have. ctx stops
// between two bootstrap samples.
func Of(ctx context.Context, name string, list []Trajectory, b Bootstrap) (Estimate, error) {
	e := Estimate{Estimator: name, EffectiveSampleSize: float64(len(list)), Low: math.NaN(), High: math.NaN()}
	if weighs(name) {
		e.EffectiveSampleSize = EffectiveSampleSize(list)
	}
	of := sampled(name, list)
	count := slices.Repeat([]float64{1}, len(list))
	if e.Value = of(count); !finite(e.Value) {
		e.Value, e.Note = math.NaN(), "the weights are too large or all 0: the data have nothing that the policy does"
		return e, nil
	}
	if len(list) < 2 {
		// Every sample of one episode is that episode.
		e.Note = "no interval: there is one episode"
		return e, nil
	}
	s, values := b.Key.Split("bootstrap").Stream(), make([]float64, b.Samples)
	for k := range values {
		if err := ctx.Err(); err != nil {
			return e, err
		}
		clear(count)
		for range list {
			count[s.IntN(len(list))]++
		}
		if values[k] = of(count); !finite(values[k]) {
			e.Note = "no interval: in some bootstrap samples no episode has what the policy does"
			return e, nil
		}
	}
	slices.Sort(values)
	if len(values) > 0 {
		e.Low = stat.Quantile((1-b.Level)/2, stat.LinInterp, values, nil)
		e.High = stat.Quantile((1+b.Level)/2, stat.LinInterp, values, nil)
	}
	return e, nil
}

// sampled returns the estimate of samples that have episode i count[i] times.
func sampled(name string, list []Trajectory) func(count []float64) float64 {
	if name == WPDIS || name == WDR {
		return newWeighted(list, name == WDR).estimate
	}
	of := map[string]func(*Trajectory) float64{
		Behaviour: (*Trajectory).gain, PDIS: (*Trajectory).perDecision, DR: (*Trajectory).doublyRobust, FQE: (*Trajectory).first,
	}[name]
	values := make([]float64, len(list))
	for i := range list {
		values[i] = of(&list[i])
	}
	return func(count []float64) float64 { return stat.Mean(values, count) }
}

func finite(x float64) bool { return x-x == 0 }

// missing is an estimate that there is none.
func missing(name string, why error) Estimate {
	nan := math.NaN()
	return Estimate{Estimator: name, Value: nan, Low: nan, High: nan, EffectiveSampleSize: nan, Note: why.Error()}
}
