package app

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
)

// values are metrics by name. In JSON, those that are not finite are null.
type values map[string]float64

func (v values) MarshalJSON() ([]byte, error) {
	m := map[string]*float64{}
	for k, x := range v {
		m[k] = finite(x)
	}
	return json.Marshal(m)
}

func (v *values) UnmarshalJSON(text []byte) error {
	var m map[string]*float64
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	*v = values{}
	for k, x := range m {
		(*v)[k] = math.NaN()
		if x != nil {
			(*v)[k] = *x
		}
	}
	return nil
}

// runSummary is what came of one run; the JSON keys are stable. It is written into the run
// directory when the run is finished.
type runSummary struct {
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
	// Train are the metrics of the last learner step.
	Train values `json:"train"`
	// Metric chose the best policy, after BestEnvSteps; Validation are its metrics, and Last those
	// of the policy at the end.
	Metric       string `json:"metric,omitempty"`
	BestEnvSteps int64  `json:"best_env_steps,omitempty"`
	Validation   values `json:"validation,omitempty"`
	Last         values `json:"validation_last,omitempty"`
	// Published is the reference of the best policy in the artefact store of the run directory.
	Published string `json:"published,omitempty"`
	// Unpublished says why the best policy is not published, and PublishWith is the command that
	// does it.
	Unpublished string `json:"unpublished,omitempty"`
	PublishWith string `json:"publish_with,omitempty"`
	Engine      string `json:"engine"`
	Threads     int    `json:"threads"`
	// Seconds and StepsPerSec are of the last process that worked on the run.
	Seconds     float64 `json:"seconds"`
	StepsPerSec float64 `json:"env_steps_per_second"`
}

func (p *trainPlan) summarize(seed uint64, res train.Result, seconds float64) runSummary {
	s := runSummary{
		Seed: seed, Dir: p.dirOf(seed), EnvSteps: res.EnvSteps, LearnerSteps: res.LearnerSteps, Episodes: res.Episodes, Stopped: res.Stopped, Train: values(res.Train), Published: res.Published,
		EpisodeReward: finite(res.EpisodeReward), EpisodeLength: finite(res.EpisodeLength), Engine: p.engine.Name(), Threads: p.cfg.Train.Threads, Seconds: seconds, StepsPerSec: float64(res.Taken) / max(seconds, 1e-9),
	}
	if s.Train == nil {
		s.Train = values{}
	}
	if res.Last != nil {
		s.Metric, s.Last = p.cfg.Train.Validation.Metric, res.Last.Metrics
	}
	if res.Best != nil {
		s.Validation, s.BestEnvSteps = res.Best.Metrics, res.Best.EnvSteps
	}
	return s
}

// spread is a metric over seeds. Std is the sample's standard deviation, with n−1 in the
// denominator; null for one seed.
type spread struct {
	Mean *float64 `json:"mean"`
	Std  *float64 `json:"std"`
	N    int      `json:"n"`
}

// trainSummary is what onnxrl train prints; the JSON keys are stable.
type trainSummary struct {
	Dir  string       `json:"dir"`
	Runs []runSummary `json:"runs"`
	// Validation has the metrics of the best policies of the finished runs.
	Validation map[string]spread `json:"validation"`
	// LookAhead says what in the runs knows the future, one sentence each: their validations
	// flatter.
	LookAhead []string `json:"look_ahead,omitempty"`
	// Unfinished are the seeds that --resume goes on with.
	Unfinished []uint64 `json:"unfinished,omitempty"`
}

// combine fills in what is over all runs.
func (s *trainSummary) combine() {
	all := map[string][]float64{}
	for _, r := range s.Runs {
		if r.Stopped == train.Interrupted {
			continue
		}
		for k, v := range r.Validation {
			all[k] = append(all[k], v)
		}
	}
	s.Validation = map[string]spread{}
	for k, v := range all {
		one := spread{Mean: finite(stat.Mean(v, nil)), N: len(v)}
		if len(v) > 1 {
			one.Std = finite(stat.StdDev(v, nil))
		}
		s.Validation[k] = one
	}
}

// table writes a line for each run, and metrics below with their spread.
func (s *trainSummary) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	metric := ""
	for _, r := range s.Runs {
		if r.Metric != "" {
			metric = r.Metric
		}
	}
	fmt.Fprintf(w, "seed\tenv steps\tepisodes\tenv steps/s\tloss\tepisode reward\tbest %s\tat env step\tstopped\n", metric)
	for _, r := range s.Runs {
		best, at := "-", "-"
		if r.Validation != nil {
			best, at = short4(r.Validation[r.Metric]), fmt.Sprint(r.BestEnvSteps)
		}
		loss := "-"
		if l, ok := r.Train["train/loss"]; ok {
			loss = short4(l)
		}
		stopped := r.Stopped
		if stopped == "" {
			stopped = "-"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s\n", r.Seed, r.EnvSteps, r.Episodes, r.StepsPerSec, loss, orDash(r.EpisodeReward), best, at, stopped)
	}
	if len(s.Validation) > 0 {
		fmt.Fprintf(w, "\nvalidation, best policy\tmean\tstd\tseeds\n")
		for _, k := range slices.Sorted(maps.Keys(s.Validation)) {
			v := s.Validation[k]
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", strings.ReplaceAll(k, "_", " "), orDash(v.Mean), orDash(v.Std), v.N)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	printLookAhead(out, s.LookAhead)
	for _, r := range s.Runs {
		if _, ok := r.Train["train/loss"]; !ok && r.Stopped != train.Interrupted {
			fmt.Fprintf(out, "seed %d has learnt nothing: its %d env steps were over before the learner began, see agent.learning_starts\n", r.Seed, r.EnvSteps)
		} else if ok && r.Metric != "" && r.Validation == nil {
			fmt.Fprintf(out, "seed %d has no best policy: no validation had a defined %s (a policy that never trades has no Sharpe ratio); the policy at the end stands for the run\n", r.Seed, r.Metric)
		}
		if r.Published != "" {
			fmt.Fprintf(out, "published %s//%s\n", filepath.Join(r.Dir, publish.StoreDir), r.Published)
		}
		if r.Unpublished != "" {
			fmt.Fprintln(out, r.unpublished())
		}
	}
	_, err := fmt.Fprintf(out, "run directory %s\n", s.Dir)
	return err
}

// printLookAhead says what cannot be earned.
func printLookAhead(out io.Writer, sentences []string) {
	for _, s := range sentences {
		fmt.Fprintln(out, "LOOK-AHEAD:", s)
	}
}

func short4(x float64) string { return fmt.Sprintf("%.4g", x) }

// orDash is a value that may be missing.
func orDash(x *float64) string {
	if x == nil {
		return "-"
	}
	return short4(*x)
}
