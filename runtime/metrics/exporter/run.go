package exporter

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

var _ metrics.RunWatcher = (*Run)(nil)

// Run is what a training tells.
type Run struct {
	name string
	of   *runs
	now  func() time.Time

	mu sync.Mutex
	// ended says that it is over, and at when it last went on.
	ended bool
	at    time.Time
	// taken are what this process has counted, and position is where the run is.
	taken, position metrics.Position
	scalars         map[string]float64
	nonFinite       uint64
	failures        map[string]uint64
	phases          map[string]time.Duration
	inference       metrics.Times
}

// Begin begins the run at a position, from which on it counts, or begins it again.
func (r *Run) Begin(at metrics.Position) {
	r.mu.Lock()
	r.ended, r.at, r.position = false, r.now(), at
	r.mu.Unlock()
	r.of.begin(r)
}

// Progress tells where the run is. What it has taken since is counted. It allocates nothing.
func (r *Run) Progress(p metrics.Position) {
	r.mu.Lock()
	r.taken.EnvSteps += max(0, p.EnvSteps-r.position.EnvSteps)
	r.taken.TrainSteps += max(0, p.TrainSteps-r.position.TrainSteps)
	r.taken.Episodes += max(0, p.Episodes-r.position.Episodes)
	r.position, r.at = p, r.now()
	r.mu.Unlock()
}

// Spent adds times that phases have taken and decisions that were made, to what was told before.
func (r *Run) Spent(phases map[string]time.Duration, decisions *metrics.Times) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range phases {
		r.phases[name] += d
	}
	r.inference.Merge(decisions)
}

// Scalars implements metrics.Sink: it keeps the newest value of each tag. What is not finite among
// those of train/ is counted too.
func (r *Run) Scalars(_ int64, values map[string]float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tag, v := range values {
		r.scalars[tag] = v
		if v-v != 0 && strings.HasPrefix(tag, "train/") {
			r.nonFinite++
		}
	}
	return nil
}

// Close implements metrics.Sink. The run may go on with a sink that is opened later; [Run.End] says
// that it is over.
func (r *Run) Close() error { return nil }

// End says that the run is over; failure, unless empty, is one of metrics.FailureReasons.
func (r *Run) End(failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if failure != "" {
		r.failures[failure]++
	}
}

// over reports whether the run has ended, and when it last went on.
func (r *Run) over() (at time.Time, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.ended
}

// snapshot returns a copy that does not change.
func (r *Run) snapshot() *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Run{
		name: r.name, ended: r.ended, at: r.at, taken: r.taken, position: r.position, nonFinite: r.nonFinite,
		scalars: maps.Clone(r.scalars), failures: maps.Clone(r.failures), phases: maps.Clone(r.phases), inference: metrics.Times{Counts: slices.Clone(r.inference.Counts), Sum: r.inference.Sum},
	}
}
