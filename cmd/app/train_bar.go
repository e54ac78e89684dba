package app

import (
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// trainBar shows how far all runs of a plan have come together. It is shown from when the first of
// them begins.
type trainBar struct {
	start func(total, initial int64) *progress.Progress
	// hold gives the program time to save from when the first run begins until release.
	hold    func() (release func())
	release func()
	// told keeps what is to be said of the data to once, however many seeds begin.
	told sync.Once

	mu    sync.Mutex
	shown *progress.Progress
	total int64
	done  map[uint64]int64
	drawn time.Time
	// updating is when a seed's present update was first seen, and long says that one has taken so
	// long that updates are shown.
	updating map[uint64]time.Time
	long     bool
}

func (a *app) newBar() *trainBar {
	return &trainBar{
		done: map[uint64]int64{}, updating: map[uint64]time.Time{},
		start: func(total, initial int64) *progress.Progress {
			return progress.Start(a.err, progress.Options{Label: "train", Unit: "env steps", Total: total, Initial: initial, Quiet: a.quiet})
		},
		hold: func() func() { return a.stop.hold(saveGrace) },
	}
}

// begin shows the bar, and counts what a run will do beyond what it was asked for.
func (b *trainBar) begin(r *run.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show(r)
	b.total += r.Trainer().PlannedEnvSteps() - r.Config().Train.TotalEnvSteps
	b.shown.SetTotal(b.total)
}

// show shows the bar of the run's plan, once.
func (b *trainBar) show(r *run.Run) {
	if b.shown == nil {
		b.release = b.hold()
		p := r.Plan()
		var initial int64
		for _, seed := range p.Seeds() {
			b.total += p.Config().Train.TotalEnvSteps
			// Opening the run reports what cannot be read.
			b.done[seed], _ = run.Reached(p.DirOf(seed))
			initial += b.done[seed]
		}
		b.shown = b.start(b.total, initial)
	}
}

// end shows the final state.
func (b *trainBar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Finish()
	if b.release != nil {
		b.release()
	}
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
func (b *trainBar) step(r *run.Run, p train.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.show(r) // A run that is trained elsewhere has not begun here.
	if now := time.Now(); now.Sub(b.drawn) >= 100*time.Millisecond || p.EnvSteps >= p.TotalEnvSteps {
		b.drawn = now
		b.fields(r, p)
		b.update(now, r, p)
	}
	b.count(r, p)
}

// update shows how far an update has come that takes longer than an eye does.
func (b *trainBar) update(now time.Time, r *run.Run, p train.Progress) {
	began, ok := b.updating[r.Seed()]
	switch {
	case p.Update == 0:
		delete(b.updating, r.Seed())
		if b.long {
			b.shown.FieldText("update", "-")
		}
	case !ok:
		b.updating[r.Seed()] = now
	case b.long || now.Sub(began) > time.Second:
		b.long = true
		b.shown.FieldText("update", fmt.Sprintf("%.1f%%", 100*p.Update))
	}
}

// settle shows where a run has ended, as its summary says it, and takes off what one that has
// stopped early will not do.
func (b *trainBar) settle(r *run.Run, res train.Result) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := r.Trainer().Progress()
	b.fields(r, p)
	b.update(time.Now(), r, p)
	b.count(r, p)
	if res.Stopped != train.Interrupted {
		b.total += res.EnvSteps - r.Trainer().PlannedEnvSteps()
		b.shown.SetTotal(b.total)
	}
	return nil
}

// fields shows what a run is known by, its speed among that. A narrow terminal shows the last ones.
func (b *trainBar) fields(r *run.Run, p train.Progress) {
	b.shown.Rate(p.StepsPerSecond)
	for _, f := range []struct{ key, tag string }{{"loss", "train/loss"}, {"entropy", "train/entropy"}, {"policy lag", "train/policy_lag_mean"}} {
		if v, ok := p.Metrics[f.tag]; ok {
			b.shown.Field(f.key, v)
		}
	}
	switch key := "val " + r.Config().Train.Validation.Metric; {
	case p.Validation != nil:
		b.shown.Field(key, p.Validation.Score)
	case r.Config().Train.Validation.EverySteps > 0:
		b.shown.FieldText(key, "-") // A resumed run has none at first; what it is known by keeps its place.
	}
	if !math.IsNaN(p.EpisodeReward) {
		b.shown.Field("episode reward", p.EpisodeReward)
	}
	if r.Plan().Group() {
		b.shown.FieldText("seed", fmt.Sprint(r.Seed()))
	}
}

// count shows the env steps of all runs.
func (b *trainBar) count(r *run.Run, p train.Progress) {
	b.shown.Add(p.EnvSteps - b.done[r.Seed()])
	b.done[r.Seed()] = p.EnvSteps
}
