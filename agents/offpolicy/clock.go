package offpolicy

import (
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/replay"
)

// Clock says when a learner takes its steps, and of how many updates they are. Rounds are counted by the replay's recorder.
type Clock struct {
	// Updates counts the updates, Stepped the rounds that had been recorded at the last learner step.
	Updates, Stepped int64

	s           *Settings
	rec         *replay.Recorder
	envs, total int64
}

// NewClock returns the clock of a run at its beginning, or before its state is loaded.
func NewClock(s *Settings, setup *agents.Setup, rec *replay.Recorder) Clock {
	return Clock{s: s, rec: rec, envs: int64(setup.Envs), total: max(setup.TotalEnvSteps, 0)}
}

// Envs is the number of environments.
func (k *Clock) Envs() int64 { return k.envs }

// EnvSteps is the number of env steps that were recorded.
func (k *Clock) EnvSteps() int64 { return k.rec.Rounds() * k.envs }

// Waiting reports whether actions are random still because the replay waits for its first transitions.
func (k *Clock) Waiting() bool { return k.EnvSteps() < int64(k.s.LearningStarts) }

// Ready implements agents.Learner: train_freq rounds are recorded since the last learner step.
func (k *Clock) Ready() bool { return k.rec.Rounds()-k.Stepped >= int64(k.s.TrainFreq) }

// Begin begins a learner step and returns how many updates it has: none until there are more env steps than learning_starts.
func (k *Clock) Begin() (updates int, err error) {
	rounds := k.rec.Rounds() - k.Stepped
	if !k.Ready() {
		return 0, fmt.Errorf("%d of %d rounds are recorded", rounds, k.s.TrainFreq)
	}
	k.Stepped += rounds
	switch {
	case k.EnvSteps() <= int64(k.s.LearningStarts):
		return 0, nil
	case k.s.GradientSteps < 0:
		return int(rounds * k.envs), nil
	}
	return k.s.GradientSteps, nil
}

// Factor is the schedule's. One that lasts as long as the run holds its first value where the run's length is not known.
func (k *Clock) Factor() float64 {
	s := k.s.Schedule.WithInitial(1)
	if k.total == 0 && s.Steps == 0 && (s.Kind == "linear" || s.Kind == "cosine") {
		return 1
	}
	return s.At(uint64(k.EnvSteps()), uint64(k.total))
}

// Progress returns the part of the run that is done; known is false where its length is not known.
func (k *Clock) Progress() (part float64, known bool) {
	if k.total == 0 {
		return 0, false
	}
	return min(1, float64(k.EnvSteps())/float64(k.total)), true
}
