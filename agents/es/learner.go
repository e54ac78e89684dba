package es

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/pool"
)

// learner measures the members of a generation, each by episodes of its own, and lets the strategy
// step when all are measured.
type learner struct {
	frame *network.Frame
	// exploring says that there is an actor of the members.
	exploring bool

	name     string
	setup    agents.Setup
	policy   *models.Network
	params   *models.Params
	strategy strategy
	pool     *pool.Pool
	metrics  agents.Metrics

	// episodes is the number of each member in a generation: episode u of it is member u modulo
	// their number.
	episodes int
	// updates counts the learner steps, rounds those that were recorded, and replaced how often the
	// parameters were replaced by saved ones.
	updates, rounds, replaced int64
	// next is the first episode of the generation that no environment has, done counts those that
	// have ended.
	next, done int64
	// episode is what each environment plays or waits for, -1 where there is none left: it then
	// acts by the centre. begun says that the environment began it as the episode's member.
	episode []int64
	begun   []bool
	// sums are the members' returns, summed over their episodes, and returns the means of them.
	sums, returns []float64
	// recording says that a round has begun and not ended.
	recording bool
}

// begin gives each environment an episode of a generation.
func (l *learner) begin() {
	clear(l.sums)
	l.next, l.done = 0, 0
	for e := range l.episode {
		l.begun[e] = false
		l.assign(e)
	}
}

// planned is the number of episodes of a generation.
func (l *learner) planned() int64 { return int64(l.strategy.members()) * int64(l.episodes) }

// assign gives an environment the next episode.
func (l *learner) assign(e int) {
	if l.episode[e] = -1; l.next < l.planned() {
		l.episode[e] = l.next
		l.next++
	}
}

// member returns whose parameters an environment acts by, -1 for the centre.
func (l *learner) member(e int) int {
	if l.episode[e] < 0 {
		return -1
	}
	return int(l.episode[e] % int64(l.strategy.members()))
}

// Begin implements agents.Recorder.
func (l *learner) Begin(b *vector.Batch, _ *vector.Decision) error {
	switch {
	case l.recording:
		return fmt.Errorf("%s: record: a round begins before the one before it has ended", l.name)
	case len(b.Type) != len(l.episode):
		return fmt.Errorf("%s: record: a batch of %d environments, expected %d", l.name, len(b.Type), len(l.episode))
	case b.Present != nil:
		return fmt.Errorf("%s: record: the environment is a world of several agents, and a return would depend on which members are in it together; expected one agent for each environment", l.name)
	}
	for e, t := range b.Type {
		// An environment may be in the middle of an episode that another member, or nobody, has
		// begun: that one does not count.
		if l.episode[e] >= 0 && t != envs.Mid {
			l.begun[e] = true
		}
	}
	l.recording = true
	return nil
}

// End implements agents.Recorder. The returns are those of the environments: no wrapper that scales
// rewards changes who is better.
func (l *learner) End(b *vector.Batch) error {
	if !l.recording {
		return fmt.Errorf("%s: record: a round ends that has not begun", l.name)
	}
	l.recording = false
	l.rounds++
	for _, ended := range b.Ended {
		e := ended.Env
		if !l.begun[e] {
			continue
		}
		if math.IsNaN(ended.Return) || math.IsInf(ended.Return, 0) {
			return &agents.DivergedError{Text: fmt.Sprintf("%s: the return of an episode of environment %d is %v, and members are compared by them", l.name, e, ended.Return)}
		}
		l.sums[l.member(e)] += ended.Return
		l.done++
		l.begun[e] = false
		l.assign(e)
	}
	return nil
}

// Ready implements agents.Learner: every member is measured.
func (l *learner) Ready() bool { return l.done == l.planned() }

// Restart implements agents.Restarter: environments without a member at the end of a generation are
// in the middle of an episode that counts for nobody.
func (l *learner) Restart() bool { return true }

// envSteps are those that were recorded.
func (l *learner) envSteps() int64 { return l.rounds * int64(len(l.episode)) }

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if !l.Ready() {
		return nil, fmt.Errorf("%s: learn: %d of %d episodes of the generation have ended", l.name, l.done, l.planned())
	}
	lowest, highest, mean := math.Inf(1), math.Inf(-1), 0.0
	for i, sum := range l.sums {
		r := sum / float64(l.episodes)
		l.returns[i] = r
		lowest, highest, mean = min(lowest, r), max(highest, r), mean+r
	}
	mean /= float64(len(l.returns))
	variance := 0.0
	for _, r := range l.returns {
		variance += (r - mean) * (r - mean)
	}
	if err := l.strategy.step(ctx, l.returns, l.envSteps(), l.metrics); err != nil {
		return nil, fmt.Errorf("%s: learn: generation %d: %w", l.name, l.updates, err)
	}
	l.updates++
	l.begin()
	m := l.metrics
	m["train/loss"] = -mean
	m["train/return_mean"], m["train/return_std"] = mean, math.Sqrt(variance/float64(len(l.returns)))
	m["train/return_min"], m["train/return_max"] = lowest, highest
	m["train/n_updates"] = float64(l.updates)
	return m, nil
}

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.policy, l.params }

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := l.strategy.edit(config, totalEnvSteps); err != nil {
		return err
	}
	clear(l.metrics)
	return nil
}

func (l *learner) Close() error {
	var errs []error
	if l.strategy != nil {
		errs = append(errs, l.strategy.close())
	}
	if l.params != nil {
		errs = append(errs, l.params.Close())
	}
	l.pool.Close()
	l.strategy, l.params, l.pool = nil, nil, nil
	return errors.Join(errs...)
}
