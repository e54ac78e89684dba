package exporter

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/metrics/names"
)

var _ metrics.Sink = (*Run)(nil)

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
	taken, position Position
	scalars         map[string]float64
	nonFinite       uint64
	failures        map[string]uint64
	phases          map[string]time.Duration
	inference       Times
}

// Position is where a run is.
type Position struct {
	// EnvSteps of Planned, TrainSteps and Episodes are those since the beginning of the run.
	// Planned is 0 for what takes no env steps, as a fit.
	EnvSteps, Planned, TrainSteps, Episodes int64
	// Reward is the mean return of the last episodes, NaN before the first has ended.
	Reward float64
}

// Times are durations in the buckets of names.Inference. It is not safe for concurrent use.
type Times struct {
	// counts has one more than there are bounds.
	counts []uint64
	sum    time.Duration
}

// Add counts a duration. It allocates nothing after the first.
func (t *Times) Add(d time.Duration) {
	bounds := names.Inference.Buckets
	if t.counts == nil {
		t.counts = make([]uint64, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	t.counts[i]++
	t.sum += d
}

// Reset begins to count anew.
func (t *Times) Reset() {
	clear(t.counts)
	t.sum = 0
}

// merge adds what another one has.
func (t *Times) merge(o *Times) {
	if t.counts == nil {
		t.counts = make([]uint64, len(names.Inference.Buckets)+1)
	}
	for i, n := range o.counts {
		t.counts[i] += n
	}
	t.sum += o.sum
}

// Begin begins the run at a position, from which on it counts, or begins it again.
func (r *Run) Begin(at Position) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.ended, r.at, r.position = false, r.now(), at
	r.mu.Unlock()
	r.of.begin(r)
}

// Progress tells where the run is. What it has taken since is counted. It allocates nothing.
func (r *Run) Progress(p Position) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.taken.EnvSteps += max(0, p.EnvSteps-r.position.EnvSteps)
	r.taken.TrainSteps += max(0, p.TrainSteps-r.position.TrainSteps)
	r.taken.Episodes += max(0, p.Episodes-r.position.Episodes)
	r.position, r.at = p, r.now()
	r.mu.Unlock()
}

// Spent adds times that phases have taken and decisions that were made, to what was told before.
func (r *Run) Spent(phases map[string]time.Duration, decisions *Times) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range phases {
		r.phases[name] += d
	}
	r.inference.merge(decisions)
}

// Sink is what is told of metrics: the run, or nil where nobody listens.
func (r *Run) Sink() metrics.Sink {
	if r == nil {
		return nil
	}
	return r
}

// Scalars implements metrics.Sink: it keeps the newest value of each tag. What is not finite among
// those of train/ is counted too.
func (r *Run) Scalars(_ int64, values map[string]float64) error {
	if r == nil {
		return nil
	}
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

// End says that the run is over; failure, unless empty, is one of names.FailureReasons.
func (r *Run) End(failure string) {
	if r == nil {
		return
	}
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
		scalars: maps.Clone(r.scalars), failures: maps.Clone(r.failures), phases: maps.Clone(r.phases), inference: Times{slices.Clone(r.inference.counts), r.inference.sum},
	}
}

// defined reports whether a reward is known.
func (p *Position) defined() bool { return !math.IsNaN(p.Reward) }
