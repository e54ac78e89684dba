package metrics

import (
	"slices"
	"time"
)

// Watcher shows runs and searches while they go. Package exporter has the one for Prometheus. Its
// methods, and those of what they return, are safe for concurrent use.
type Watcher interface {
	// Run returns the watcher of the run of a name. A run that begins under the name of one before it
	// goes on with its counters. Two that go on at once need names of their own.
	Run(name string) RunWatcher
	// Search begins a search under a name, of which so many generations are finished and planned.
	Search(name string, finished, planned int) SearchWatcher
}

// RunWatcher shows one run. As a Sink it keeps the newest value of each tag; Close does not end the
// run, which may go on with a sink that is opened later.
type RunWatcher interface {
	Sink
	// Begin begins the run at a position, from which on it counts, or begins it again.
	Begin(at Position)
	// Progress shows where the run is, and counts what it has taken since. It allocates nothing.
	Progress(at Position)
	// Spent adds durations of phases by name, and of decisions.
	Spent(phases map[string]time.Duration, decisions *Times)
	// End ends the run; failure, unless empty, is one of FailureReasons.
	End(failure string)
}

// SearchWatcher shows a population whose members evolve.
type SearchWatcher interface {
	// Begins counts an action that a member begins a generation with.
	Begins(action string)
	// Interval counts the interval of a member by its result, one of IntervalResults, and the
	// time that it took.
	Interval(result string, took time.Duration)
	// Generation shows that so many generations are finished, and of the newest its best score, its
	// mean action pairwise distance and its members. A NaN is not shown.
	Generation(finished int, best, mapd float64, members []Member)
}

// Position is where a run is.
type Position struct {
	// EnvSteps of Planned, TrainSteps and Episodes are those since the beginning of the run.
	// Planned is 0 for a run without env steps, such as a fit.
	EnvSteps, Planned, TrainSteps, Episodes int64
	// Reward is the mean return of the last episodes, NaN before the first has ended.
	Reward float64
}

// Member is a member after a generation. Score and Distance are NaN where they are not known.
type Member struct {
	Score, Distance float64
	// Hyper are its hyper-parameters by path.
	Hyper map[string]float64
}

// Times are durations in the buckets of Inference. It is not safe for concurrent use.
type Times struct {
	// Counts has one more element than there are bounds, or none before the first duration.
	Counts []uint64
	Sum    time.Duration
}

// Add counts a duration. It allocates nothing after the first.
func (t *Times) Add(d time.Duration) {
	bounds := Inference.Buckets
	if t.Counts == nil {
		t.Counts = make([]uint64, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	t.Counts[i]++
	t.Sum += d
}

// Reset sets all counts to 0.
func (t *Times) Reset() {
	clear(t.Counts)
	t.Sum = 0
}

// Merge adds another's durations.
func (t *Times) Merge(o *Times) {
	if t.Counts == nil {
		t.Counts = make([]uint64, len(Inference.Buckets)+1)
	}
	for i, n := range o.Counts {
		t.Counts[i] += n
	}
	t.Sum += o.Sum
}

// Unwatched is a RunWatcher and a SearchWatcher that shows nothing.
type Unwatched struct{}

// Scalars implements Sink.
func (Unwatched) Scalars(int64, map[string]float64) error { return nil }

// Close implements Sink.
func (Unwatched) Close() error { return nil }

// Begin implements RunWatcher.
func (Unwatched) Begin(Position) {}

// Progress implements RunWatcher.
func (Unwatched) Progress(Position) {}

// Spent implements RunWatcher.
func (Unwatched) Spent(map[string]time.Duration, *Times) {}

// End implements RunWatcher.
func (Unwatched) End(string) {}

// Begins implements SearchWatcher.
func (Unwatched) Begins(string) {}

// Interval implements SearchWatcher.
func (Unwatched) Interval(string, time.Duration) {}

// Generation implements SearchWatcher.
func (Unwatched) Generation(int, float64, float64, []Member) {}
