package offpolicy

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Clock says when a learner takes its steps, and of how many updates they are. Rounds are counted
// by the replay.
type Clock struct {
	// Updates counts the updates, Stepped the rounds that had been recorded at the last learner
	// step.
	Updates, Stepped int64
	// EpisodeEnded says that an episode has ended since, where the clock waits for that.
	EpisodeEnded bool
	// Owed are the updates that the present learner step has still to take, of so many; who takes
	// one counts it down.
	Owed, Of int

	s           *Settings
	rec         replay.Buffer
	envs, total int64
	// offline says that rounds only count, and nothing has to be waited for.
	offline bool
	// filled says that there are transitions, once there are.
	filled bool
}

// NewClock returns the clock of a run at its beginning, or before its state is loaded.
func NewClock(s *Settings, setup *agents.Setup, rec replay.Buffer) Clock {
	return Clock{s: s, rec: rec, envs: int64(setup.Envs), total: max(setup.TotalEnvSteps, 0), offline: setup.Offline()}
}

// SetTotal sets the env steps of the run, as Setup.TotalEnvSteps.
func (k *Clock) SetTotal(envSteps int64) { k.total = max(envSteps, 0) }

// Replayed implements agents.Replayer.
func (k *Clock) Replayed() int { return k.rec.Len() }

// Envs is the number of environments.
func (k *Clock) Envs() int64 { return k.envs }

// EnvSteps is the number of env steps that were recorded.
func (k *Clock) EnvSteps() int64 { return k.rec.Rounds() * k.envs }

// Waiting reports whether actions are random still because the replay waits for its first
// transitions.
func (k *Clock) Waiting() bool { return !k.offline && k.EnvSteps() < int64(k.s.LearningStarts) }

// Ready implements agents.Learner: train_freq rounds are recorded since the last learner step, or
// an episode has ended, or that step was stopped.
func (k *Clock) Ready() bool {
	if k.Owed > 0 || k.s.TrainFreq == EachEpisode {
		return k.Owed > 0 || k.EpisodeEnded
	}
	return k.rec.Rounds()-k.Stepped >= int64(k.s.TrainFreq)
}

// StepRounds implements agents.Stepper. How many rounds episodes have is not known: it is 1.
func (k *Clock) StepRounds() int { return max(int(k.s.TrainFreq), 1) }

// Begin begins a learner step, and says how many updates it has: none until there are more env
// steps than learning_starts, and a transition, which rows that were absent so far have none of.
// Where one was stopped it goes on with that: begun is false.
func (k *Clock) Begin() (begun bool, err error) {
	if k.Owed > 0 {
		return false, nil
	}
	rounds := k.rec.Rounds() - k.Stepped
	if !k.Ready() {
		if k.s.TrainFreq == EachEpisode {
			return false, errors.New("no episode has ended")
		}
		return false, fmt.Errorf("%d of %d rounds are recorded", rounds, k.s.TrainFreq)
	}
	k.Stepped += rounds
	k.EpisodeEnded = false
	k.filled = k.filled || k.rec.Len() > 0
	switch {
	case !k.offline && k.EnvSteps() <= int64(k.s.LearningStarts) || !k.filled:
		k.Of = 0
	case k.s.GradientSteps < 0:
		k.Of = int(rounds * k.envs)
	default:
		k.Of = k.s.GradientSteps
	}
	k.Owed = k.Of
	return true, nil
}

// Take takes the updates that are owed, asking setup before each whether to go on: when that or an
// update fails, the others stay owed, and the error says which update it was.
func (k *Clock) Take(ctx context.Context, setup *agents.Setup, update func() error) error {
	for ; k.Owed > 0; k.Owed-- {
		err := setup.Between(ctx, k.Of-k.Owed, k.Of)
		if err == nil {
			err = update()
		}
		if err != nil {
			return fmt.Errorf("update %d: %w", k.Updates+1, err)
		}
	}
	return nil
}

// Pending is how far a learner step has come that was stopped, as it is saved. Sums points to what
// the algorithm adds up over its updates.
type Pending struct {
	Owed int `json:"owed"`
	Of   int `json:"of"`
	Sums any `json:"sums"`
}

// SavePending saves a learner step that was stopped; there is nothing to save where none was.
func (k *Clock) SavePending(w *checkpoint.Writer, sums any) {
	if k.Owed > 0 {
		w.PutJSON("pending", Pending{k.Owed, k.Of, sums})
	}
}

// LoadPending takes it back.
func (k *Clock) LoadPending(r *checkpoint.Reader, sums any) error {
	k.Owed, k.Of = 0, 0
	if !r.Has("pending") {
		return nil
	}
	p := Pending{Sums: sums}
	if err := r.JSON("pending", &p); err != nil {
		return err
	}
	if p.Owed < 1 || p.Owed > p.Of {
		return fmt.Errorf("%d of %d updates are left of a learner step", p.Owed, p.Of)
	}
	k.Owed, k.Of = p.Owed, p.Of
	return nil
}

// Factor is the schedule's of the learning rates.
func (k *Clock) Factor() float64 {
	return k.s.LearningRateSchedule.Factor(k.s.LearningRate, k.EnvSteps(), k.total)
}

// Progress returns the part of the run that is done; known is false where its length is not known.
func (k *Clock) Progress() (part float64, known bool) {
	if k.total == 0 {
		return 0, false
	}
	return min(1, float64(k.EnvSteps())/float64(k.total)), true
}
