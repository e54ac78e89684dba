package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Label is what programs that watch several runs, or searches, call the one in a directory: its
// path below the folder runs, with slashes, or else its last two elements.
func Label(dir string) string {
	list := strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")
	for i := len(list) - 2; i >= 0; i-- {
		if list[i] == "runs" {
			return strings.Join(list[i+1:], "/")
		}
	}
	return strings.TrimPrefix(strings.Join(list[max(0, len(list)-2):], "/"), "/")
}

// watch shows how a run goes, from the goroutine that trains it. The nil watch tells
// nobody.
type watch struct {
	to      metrics.RunWatcher
	profile *agents.Profile
	// decisions and what the profile has beyond spent are reported at intervals, at told for the
	// last time.
	decisions metrics.Times
	spent     map[string]time.Duration
	told      time.Time
	// stopped says that a hook has ended the run, which is no failure.
	stopped bool
}

// watchEvery is how often the times of phases and decisions are reported.
const watchEvery = 100 * time.Millisecond

// watched is nil where nobody watches.
func (r *Run) watched() *watch {
	o := r.plan.o
	if o.Watch == nil {
		return nil
	}
	return &watch{to: o.Watch.Run(r.label(r.path)), spent: map[string]time.Duration{}}
}

// label is what the run in a directory is called among others.
func (r *Run) label(dir string) string {
	if id := r.plan.job.ID; id != "" {
		return id
	}
	if dir == "" {
		return r.plan.name
	}
	return Label(dir)
}

// measure returns the profile that the run's agent is to fill, nil where nobody watches.
func (w *watch) measure() *agents.Profile {
	if w == nil {
		return nil
	}
	w.profile = agents.NewProfile(time.Now)
	w.profile.Acted(w.decisions.Add)
	return w.profile
}

// sink returns the receiver of metrics.
func (w *watch) sink() metrics.Sink {
	if w == nil {
		return nil
	}
	return w.to
}

func position(p train.Progress) metrics.Position {
	return metrics.Position{EnvSteps: p.EnvSteps, Planned: p.TotalEnvSteps, TrainSteps: p.LearnerSteps, Episodes: p.Episodes, Reward: p.EpisodeReward}
}

func (w *watch) begin(p train.Progress) {
	if w != nil {
		w.to.Begin(position(p))
	}
}

func (w *watch) progress(p train.Progress) {
	if w == nil {
		return
	}
	w.to.Progress(position(p))
	if now := time.Now(); now.Sub(w.told) >= watchEvery {
		w.told = now
		w.tell()
	}
}

// tell hands over what was measured since the last time.
func (w *watch) tell() {
	more := map[string]time.Duration{}
	for name, d := range w.profile.ByName() {
		more[name] = d - w.spent[name]
		w.spent[name] = d
	}
	w.to.Spent(more, &w.decisions)
	w.decisions.Reset()
}

// stop says that the program ends the run by an error of a hook.
func (w *watch) stop() {
	if w != nil {
		w.stopped = true
	}
}

// end says that the run is over, and how. What was measured is left alone where an environment that
// does not answer may still be at it.
func (w *watch) end(ctx context.Context, err error) {
	if w == nil {
		return
	}
	if err == nil && ctx.Err() == nil {
		w.tell()
	}
	if w.stopped {
		err = nil
	}
	w.to.End(Failure(err))
}

// Failure is what an error that has ended a training is, as the label reason of
// metrics.RunFailures has it: empty without one, and where the training was interrupted.
func Failure(err error) string {
	var diverged *agents.DivergedError
	var gradient *optim.NonFiniteError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case errors.As(err, &diverged), errors.As(err, &gradient):
		return metrics.FailureDiverged
	}
	return metrics.FailureError
}
