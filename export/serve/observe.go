package serve

import (
	"time"

	"github.com/onnxrl/onnxrl/models/drift"
)

// Observer receives every request that was answered, from the goroutine that answers it: it must
// be quick, allocate nothing and be safe for concurrent use.
type Observer interface {
	Observe(o Observation)
}

// Observation is one answered request.
type Observation struct {
	Model, Version string
	// Rows are those of the request; Timing.Rows those of the run.
	Rows   int
	Timing Timing
	// Total is from Infer's begin to its return.
	Total time.Duration
	// Err is nil where the request succeeded.
	Err error
}

// Statistics are a version's since it was loaded first; a version that comes back goes on counting.
type Statistics struct {
	Model, Version string
	// Success counts requests that were answered, Failed all others, by class in Failures.
	Success, Failed Durations
	Failures        map[Code]uint64
	// NonFinite counts the failed requests that were refused for NaN, an infinity or a choice that there is not in an input.
	NonFinite uint64
	// Queue, Input, Infer and Output divide the time of successful requests.
	Queue, Input, Infer, Output Durations
	// Inferences counts rows, Executions runs.
	Inferences, Executions uint64
	// Pending is the number of requests that wait or run.
	Pending int
	// LastInference is when the last request was answered; zero before the first.
	LastInference time.Time
	LastError     string
	Batches       []BatchStatistics
	// Latency is the distribution of the successful requests' total time.
	Latency Latency
	// Inference is the distribution of the time of the runs.
	Inference Latency
	// Sequences is the number of live sequences on the version.
	Sequences int
	// Drift is how far observations are from those that the version was published on, and
	// DriftFeature the name of the feature that has moved most; zero and empty where nothing is
	// known.
	Drift        drift.Drift
	DriftFeature string
	// Shadows compare this version, as the one that answered, with those that ran in its shadow.
	Shadows []Comparison
}

// Durations is a number of events and the time that they took together.
type Durations struct {
	Count uint64
	Total time.Duration
}

// BatchStatistics are those of all runs of one number of rows.
type BatchStatistics struct {
	Rows int
	// Input, Infer and Output have one event for each run.
	Input, Infer, Output Durations
}

// Latency is a histogram with buckets that widen by an eighth of an octave at most, so that
// quantiles are within 12.5 %.
type Latency struct {
	Count uint64
	Max   time.Duration
	// Bounds are the upper bounds of the buckets that are not empty, ascending, and Counts how many
	// lie in each.
	Bounds []time.Duration
	Counts []uint64
}

// Comparison of the answers of two versions on the same requests.
type Comparison struct {
	// Shadow is the version that ran in the shadow.
	Shadow string
	// Compared requests, Dropped ones because the shadow's queue was full, and Failed ones that it
	// did not answer.
	Compared, Dropped, Failed uint64
	// MaxDelta is the largest |Δ| over all floating-point outputs.
	MaxDelta float64
	// Rows were compared; in DifferentActions of them an integer or boolean output, or the output
	// "action", was not the same.
	Rows, DifferentActions uint64
	// PrimaryInfer and ShadowInfer are the times of the runs.
	PrimaryInfer, ShadowInfer time.Duration
}

// Quantile returns the latency that a share q in [0, 1] of the requests do not exceed, 0 without
// requests.
func (l Latency) Quantile(q float64) time.Duration {
	want := uint64(q*float64(l.Count) + 0.9999999)
	for i, n := range l.Counts {
		if want <= n {
			return min(l.Bounds[i], l.Max)
		}
		want -= n
	}
	return l.Max
}
