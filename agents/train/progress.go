package train

import (
	"encoding/json"

	"github.com/onnxrl/onnxrl/agents"
)

// Progress is the position of a run.
type Progress struct {
	EnvSteps      int64 `json:"env_steps"`
	TotalEnvSteps int64 `json:"total_env_steps"`
	LearnerSteps  int64 `json:"learner_steps"`
	Episodes      int64 `json:"episodes"`
	// StepsPerSecond is that of Result, so far.
	StepsPerSecond float64 `json:"env_steps_per_second"`
	// Update is the part that is done of the learner step that is going on; 0 between learner
	// steps.
	Update float64 `json:"update"`
	// Metrics are those of the last learner step, without any loss while a learner only fills its
	// replay. They are overwritten by the next one.
	Metrics agents.Metrics `json:"metrics,omitempty"`
	// EpisodeReward is the mean return of the last 100 episodes; NaN before the first has ended.
	EpisodeReward float64 `json:"episode_reward"`
	// Validation is the newest evaluation, Best the one with the highest score so far, of those that
	// keep limits on costs best; nil before the first. They do not change any more.
	Validation *Evaluation `json:"validation,omitempty"`
	Best       *Evaluation `json:"best,omitempty"`
}

// Evaluation is what an Evaluator found; the JSON keys are stable, and what is not finite is null.
type Evaluation struct {
	// EnvSteps and LearnerSteps say how much the policy was trained.
	EnvSteps     int64 `json:"env_steps"`
	LearnerSteps int64 `json:"learner_steps"`
	// Score is the metric that the configuration names.
	Score   float64        `json:"score"`
	Metrics agents.Metrics `json:"metrics"`
	// Excess is by how much the policy passes limits on what episodes cost: agents.Limited.
	Excess float64 `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (p Progress) MarshalJSON() ([]byte, error) {
	type plain Progress
	return json.Marshal(struct {
		plain
		EpisodeReward *float64 `json:"episode_reward"`
	}{plain(p), agents.Finite(p.EpisodeReward)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Progress) UnmarshalJSON(text []byte) error {
	type plain Progress
	v := struct {
		*plain
		EpisodeReward *float64 `json:"episode_reward"`
	}{plain: (*plain)(p)}
	err := json.Unmarshal(text, &v)
	p.EpisodeReward = agents.Number(v.EpisodeReward)
	return err
}

// MarshalJSON implements json.Marshaler.
func (e Evaluation) MarshalJSON() ([]byte, error) {
	type plain Evaluation
	return json.Marshal(struct {
		plain
		Score *float64 `json:"score"`
	}{plain(e), agents.Finite(e.Score)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Evaluation) UnmarshalJSON(text []byte) error {
	type plain Evaluation
	v := struct {
		*plain
		Score *float64 `json:"score"`
	}{plain: (*plain)(e)}
	err := json.Unmarshal(text, &v)
	e.Score = agents.Number(v.Score)
	return err
}

// beats reports whether a policy is better than the best so far, nil where there is none. One that
// keeps its limits better is, whatever it scores.
func (e *Evaluation) beats(best *Evaluation) bool {
	switch {
	case !e.defined():
		return false
	case best == nil || e.Excess < best.Excess:
		return true
	}
	return e.Excess == best.Excess && e.Score > best.Score
}
