package flight

import (
	"fmt"
	"math"
)

// Rate says how often transitions are sampled for each that is inserted, as Reverb's
// SampleToInsertRatio does. Whoever is ahead waits: a sampler for writers, and a writer, whose
// stream then is not read any more, for samplers.
type Rate struct {
	// SamplesPerInsert is the number of samples of each insert; 0 lets nobody wait but for MinSize.
	SamplesPerInsert float64 `yaml:"samples_per_insert"`
	// MinSize is the number of transitions before the first sample.
	MinSize int `yaml:"min_size"`
	// ErrorBuffer is by how many samples the two may differ from the ratio, at least
	// 2·max(1, samples_per_insert); 0 is as much as MinSize inserts. A batch of either kind is let
	// in as a whole when its first row is, so that they may differ by another batch.
	ErrorBuffer float64 `yaml:"error_buffer"`
}

// check reports what is wrong.
func (r *Rate) check() error {
	least := 2 * max(1, r.SamplesPerInsert)
	if r.ErrorBuffer == 0 {
		r.ErrorBuffer = max(least, r.SamplesPerInsert*float64(r.MinSize))
	}
	if !(r.SamplesPerInsert >= 0) || math.IsInf(r.SamplesPerInsert, 0) || r.MinSize < 0 || r.SamplesPerInsert > 0 && !(r.ErrorBuffer >= least) {
		return fmt.Errorf("rate: samples_per_insert %g, min_size %d and error_buffer %g; expected no negative numbers, and a buffer of at least %g", r.SamplesPerInsert, r.MinSize, r.ErrorBuffer, least)
	}
	return nil
}

// limiter counts what was inserted and sampled.
type limiter struct {
	Rate
	inserts, samples int64
}

func (l *limiter) mayInsert() bool {
	if l.SamplesPerInsert == 0 || l.inserts < int64(l.MinSize) {
		return true
	}
	return l.ahead(l.inserts+1, l.samples) <= l.ErrorBuffer
}

func (l *limiter) maySample(size int) bool {
	if size < max(1, l.MinSize) {
		return false
	}
	return l.SamplesPerInsert == 0 || l.ahead(l.inserts, l.samples+1) >= -l.ErrorBuffer
}

// ahead is by how many samples the writers are ahead.
func (l *limiter) ahead(inserts, samples int64) float64 {
	return l.SamplesPerInsert*float64(inserts-int64(l.MinSize)) - float64(samples)
}
