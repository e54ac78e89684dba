package agents

import "time"

// Phase names a part of the work of a run, as "onnxrl bench learn --profile" shows it.
type Phase uint8

// The phases. A loop that drives an agent measures Acting, Stepping, Recording and Syncing; a
// learner measures what its Step consists of, and what it does not measure counts as the rest of
// the learner step.
const (
	// Acting is Actor.Act: networks, and drawing actions.
	Acting Phase = iota
	// Stepping is the environments' step.
	Stepping
	// Recording is Recorder.Begin and Recorder.End.
	Recording
	// Sampling is a learner's: drawing and gathering a batch, and the targets of the loss.
	Sampling
	// Gradient is a learner's: running the programs that give losses and gradients, target networks
	// included.
	Gradient
	// Optimising is a learner's: clipping, the optimiser, target networks following.
	Optimising
	// Learning is the rest of Learner.Step.
	Learning
	// Syncing is Actor.Sync.
	Syncing
	// Waiting is for what actors of their own play meanwhile.
	Waiting
	phases
)

// String returns the phase as tables show it.
func (p Phase) String() string {
	return [phases]string{"act", "env", "record", "sample", "gradient", "optimiser", "learner rest", "sync", "wait"}[p]
}

// Phases lists all phases in the order of a round.
func Phases() []Phase {
	list := make([]Phase, phases)
	for i := range list {
		list[i] = Phase(i)
	}
	return list
}

// Profile adds up where the time of a run goes; Setup.Profile hands it to an agent. The nil Profile
// measures nothing, and reads no clock: code that is measured calls it unconditionally. It is not
// safe for concurrent use; of what goes on at once, one goroutine measures.
//
//	watch := l.profile.Start()
//	… // gather a batch
//	watch = watch.Lap(agents.Sampling)
//	… // run the program
//	watch = watch.Lap(agents.Gradient)
type Profile struct {
	now   func() time.Time
	spent [phases]time.Duration
	calls [phases]int64
	acted func(time.Duration)
}

// NewProfile returns a profile that measures by a clock, which is time.Now outside of tests.
func NewProfile(now func() time.Time) *Profile { return &Profile{now: now} }

// Acted has each time that is counted for Acting told, by the goroutine that measures.
func (p *Profile) Acted(f func(took time.Duration)) { p.acted = f }

// Start begins to measure. It allocates nothing.
func (p *Profile) Start() Stopwatch {
	if p == nil {
		return Stopwatch{}
	}
	return Stopwatch{p, p.now()}
}

// Stopwatch is a measurement that is going on.
type Stopwatch struct {
	p     *Profile
	since time.Time
}

// Lap counts the time since the lap began for a phase, and returns the stopwatch at the beginning
// of the next lap.
func (w Stopwatch) Lap(phase Phase) Stopwatch {
	if w.p == nil {
		return w
	}
	now := w.p.now()
	took := now.Sub(w.since)
	w.p.spent[phase] += took
	w.p.calls[phase]++
	if phase == Acting && w.p.acted != nil {
		w.p.acted(took)
	}
	return Stopwatch{w.p, now}
}

// LapRest counts for a phase what the time since the lap began has beyond what was meanwhile
// counted for others: before is [Profile.Total] as of the beginning.
func (w Stopwatch) LapRest(phase Phase, before time.Duration) Stopwatch {
	if w.p == nil {
		return w
	}
	now := w.p.now()
	w.p.spent[phase] += max(0, now.Sub(w.since)-(w.p.Total()-before))
	w.p.calls[phase]++
	return Stopwatch{w.p, now}
}

// Total returns the sum over all phases; 0 for nil.
func (p *Profile) Total() (sum time.Duration) {
	if p == nil {
		return 0
	}
	for _, d := range p.spent {
		sum += d
	}
	return sum
}

// Spent returns the time that was counted for a phase, and how often; 0 for nil.
func (p *Profile) Spent(phase Phase) (time.Duration, int64) {
	if p == nil {
		return 0, 0
	}
	return p.spent[phase], p.calls[phase]
}

// ByName returns the time of every phase that was measured, by the names of tables.
func (p *Profile) ByName() map[string]time.Duration {
	out := map[string]time.Duration{}
	if p != nil {
		for i, d := range p.spent {
			if p.calls[i] > 0 {
				out[Phase(i).String()] = d
			}
		}
	}
	return out
}
