package app

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// trainBar shows how far all runs of a plan have come together. It is shown from when the first of
// them begins; without a start it never is.
type trainBar struct {
	plan  *trainPlan
	start func() *progress.Progress

	mu    sync.Mutex
	shown *progress.Progress
	total int64
	done  map[uint64]int64
	drawn time.Time
	// updating is when a seed's present update was first seen, and long says that one has taken so
	// long that updates are shown.
	updating map[uint64]time.Time
	long     bool
	// watch, unless nil, is told the env steps of a run after every learner step.
	watch func(envSteps int64)
}

func (a *app) newBar(p *trainPlan) *trainBar {
	b := &trainBar{plan: p, done: map[uint64]int64{}, updating: map[uint64]time.Time{}}
	var initial int64
	for _, seed := range p.seeds() {
		b.total += p.cfg.Train.TotalEnvSteps
		if list, err := checkpoint.List(filepath.Join(p.dirOf(seed), checkpointDir)); err == nil && len(list) > 0 {
			b.done[seed] = list[len(list)-1].Step
			if i := slices.IndexFunc(list, func(e checkpoint.Entry) bool { return e.Path == p.from }); i >= 0 {
				b.done[seed] = list[i].Step
			}
			initial += b.done[seed]
		}
	}
	b.start = func() *progress.Progress {
		return progress.Start(a.err, progress.Options{Label: "train", Unit: "env steps", Total: b.total, Initial: initial, Quiet: a.quiet})
	}
	return b
}

// begin shows the bar.
func (b *trainBar) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil && b.start != nil {
		b.shown = b.start()
	}
}

// end shows the final state.
func (b *trainBar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Finish()
}

// above returns a writer for lines, which are shown above the bar once there is one.
func (b *trainBar) above(w io.Writer) io.Writer { return barWriter{b, w} }

type barWriter struct {
	bar *trainBar
	to  io.Writer
}

func (w barWriter) Write(line []byte) (int, error) {
	w.bar.mu.Lock()
	defer w.bar.mu.Unlock()
	return w.bar.shown.Lines(w.to).Write(line)
}

// step shows where a run is. Texts are made only as often as they can be seen.
func (b *trainBar) step(r *trainRun, p train.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.drawn) >= 100*time.Millisecond || p.EnvSteps >= p.TotalEnvSteps {
		b.drawn = now
		b.fields(r, p)
		b.update(now, r, p)
	}
	b.count(r, p)
}

// update shows how far an update has come that takes longer than an eye does.
func (b *trainBar) update(now time.Time, r *trainRun, p train.Progress) {
	began, ok := b.updating[r.seed]
	switch {
	case p.Update == 0:
		delete(b.updating, r.seed)
		if b.long {
			b.shown.FieldText("update", "-")
		}
	case !ok:
		b.updating[r.seed] = now
	case b.long || now.Sub(began) > time.Second:
		b.long = true
		b.shown.FieldText("update", fmt.Sprintf("%.1f%%", 100*p.Update))
	}
}

// settle shows where a run has ended, as its summary says it.
func (b *trainBar) settle(r *trainRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := r.tr.Progress()
	b.fields(r, p)
	b.update(time.Now(), r, p)
	b.count(r, p)
}

// fields shows what a run is known by.
func (b *trainBar) fields(r *trainRun, p train.Progress) {
	if r.plan.group() {
		b.shown.FieldText("seed", fmt.Sprint(r.seed))
	}
	for _, f := range []struct{ key, tag string }{{"loss", "train/loss"}, {"entropy", "train/entropy"}} {
		if v, ok := p.Metrics[f.tag]; ok {
			b.shown.Field(f.key, v)
		}
	}
	switch key := "val " + r.cfg.Train.Validation.Metric; {
	case p.Validation != nil:
		b.shown.Field(key, p.Validation.Score)
	case r.cfg.Train.Validation.EverySteps > 0:
		b.shown.FieldText(key, "-") // A resumed run has none at first; what it is known by keeps its place.
	}
	if !math.IsNaN(p.EpisodeReward) {
		b.shown.Field("episode reward", p.EpisodeReward)
	}
}

// count shows the env steps of all runs.
func (b *trainBar) count(r *trainRun, p train.Progress) {
	b.shown.Add(p.EnvSteps - b.done[r.seed])
	b.done[r.seed] = p.EnvSteps
	if b.watch != nil {
		b.watch(p.EnvSteps)
	}
}

// planned counts what a run will do beyond what it was asked for.
func (b *trainBar) planned(r *trainRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += r.tr.PlannedEnvSteps() - r.cfg.Train.TotalEnvSteps
	b.shown.SetTotal(b.total)
}

// finished takes off what a run that has stopped early will not do.
func (b *trainBar) finished(r *trainRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += r.tr.EnvSteps() - r.tr.PlannedEnvSteps()
	b.shown.SetTotal(b.total)
}
