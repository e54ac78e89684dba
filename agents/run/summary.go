package run

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// RunSummary is what came of one run; the JSON keys are stable. It is written into the run
// directory when the run is finished.
type RunSummary struct {
	Seed         uint64 `json:"seed"`
	Dir          string `json:"dir"`
	EnvSteps     int64  `json:"env_steps"`
	LearnerSteps int64  `json:"learner_steps"`
	Episodes     int64  `json:"episodes"`
	// EpisodeReward and EpisodeLength are means over the last 100 training episodes; absent before
	// the first has ended.
	EpisodeReward *float64 `json:"episode_reward,omitempty"`
	EpisodeLength *float64 `json:"episode_length,omitempty"`
	// Stopped says why the run ended before its last env step: early stop or interrupted.
	Stopped string `json:"stopped,omitempty"`
	// PolicyLag is how many updates the parameters that acted were behind those that learnt, of a
	// run with actors of their own (train.actors).
	PolicyLag *PolicyLag `json:"policy_lag,omitempty"`
	// Train are the metrics of the last learner step.
	Train agents.Metrics `json:"train"`
	// Metric chose the best policy, after BestEnvSteps; Validation are its metrics, and Last those
	// of the policy at the end.
	Metric       string         `json:"metric,omitempty"`
	BestEnvSteps int64          `json:"best_env_steps,omitempty"`
	Validation   agents.Metrics `json:"validation,omitempty"`
	Last         agents.Metrics `json:"validation_last,omitempty"`
	// Published is the reference of the best policy in the artefact store of the run directory.
	Published string `json:"published,omitempty"`
	// Unpublished says why the best policy is not published, and PublishWith is the command line
	// that does it; see Hooks.
	Unpublished string `json:"unpublished,omitempty"`
	PublishWith string `json:"publish_with,omitempty"`
	Engine      string `json:"engine"`
	Threads     int    `json:"threads"`
	// Seconds are those of the last process that worked on the run, evaluations included, and
	// StepsPerSec its speed without them (train.Result): what time/fps is in the metrics.
	Seconds     float64 `json:"seconds"`
	StepsPerSec float64 `json:"env_steps_per_second"`
}

// PolicyLag is over all unrolls of a run; the JSON keys are stable.
type PolicyLag struct {
	Mean float64 `json:"mean"`
	Max  int64   `json:"max"`
	// Lost are the unrolls that ended with the processes that played them, of which nothing counts.
	Lost int64 `json:"lost,omitempty"`
}

func (r *Run) summarize(res train.Result, seconds float64) RunSummary {
	s := RunSummary{
		Seed: r.seed, Dir: r.path, EnvSteps: res.EnvSteps, LearnerSteps: res.LearnerSteps, Episodes: res.Episodes, Stopped: res.Stopped, Train: res.Train, Published: res.Published,
		EpisodeReward: agents.Finite(res.EpisodeReward), EpisodeLength: agents.Finite(res.EpisodeLength), Engine: r.plan.o.Engine.Name(), Threads: r.cfg.Train.Threads, Seconds: seconds, StepsPerSec: res.StepsPerSecond,
	}
	if s.Train == nil {
		s.Train = agents.Metrics{}
	}
	if l := res.Lag; l != nil {
		s.PolicyLag = &PolicyLag{l.Mean, l.Max, l.Lost}
	}
	if res.Last != nil {
		s.Metric, s.Last = r.cfg.Train.Validation.Metric, res.Last.Metrics
	}
	if res.Best != nil {
		s.Validation, s.BestEnvSteps = res.Best.Metrics, res.Best.EnvSteps
	}
	return s
}

// recall fills in what the process said that took the last env steps of a run, where this one had
// none left to take: its metrics have it.
func (r *Run) recall(s *RunSummary) error {
	records, err := metrics.ReadJSONLines(filepath.Join(r.path, MetricsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, x := range slices.Backward(records) {
		speed, ok := x.Values["time/fps"]
		if !ok {
			continue // That of an evaluation.
		}
		s.StepsPerSec, s.Seconds = speed, x.Values["time/time_elapsed"]
		for tag, v := range x.Values {
			if strings.HasPrefix(tag, "train/") {
				s.Train[tag] = v
			}
		}
		break
	}
	return err
}

// Spread is a metric over seeds. Std is the sample's standard deviation, with n−1 in the
// denominator; null for one seed.
type Spread struct {
	Mean *float64 `json:"mean"`
	Std  *float64 `json:"std"`
	N    int      `json:"n"`
}

// Summary is what came of the runs of a plan; the JSON keys are stable.
type Summary struct {
	Dir  string       `json:"dir"`
	Runs []RunSummary `json:"runs"`
	// Validation has the metrics of the best policies of the finished runs.
	Validation map[string]Spread `json:"validation"`
	// LookAhead says what in the runs knows the future, one sentence each: their validations
	// flatter.
	LookAhead []string `json:"look_ahead,omitempty"`
	// Unfinished are the seeds that go on when the plan is resumed.
	Unfinished []uint64 `json:"unfinished,omitempty"`
}

// combine fills in what is over all runs.
func (s *Summary) combine() {
	all := map[string][]float64{}
	for _, r := range s.Runs {
		if r.Stopped == train.Interrupted {
			continue
		}
		for k, v := range r.Validation {
			all[k] = append(all[k], v)
		}
	}
	s.Validation = map[string]Spread{}
	for k, v := range all {
		one := Spread{Mean: agents.Finite(stat.Mean(v, nil)), N: len(v)}
		if len(v) > 1 {
			one.Std = agents.Finite(stat.StdDev(v, nil))
		}
		s.Validation[k] = one
	}
}
