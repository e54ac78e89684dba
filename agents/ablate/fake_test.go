package ablate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// toyEnv and toyAgent are what the tests' experiments are about.
type toyEnv struct {
	Window int     `yaml:"window"`
	Buy    float64 `yaml:"buy_pct"`
	Sell   float64 `yaml:"sell_pct"`
	Reward string  `yaml:"reward"`
	Bars   int     `yaml:"bars"`
}

func (c toyEnv) Validate() error {
	var p configs.Problems
	p.AtLeast("window", c.Window, 1)
	p.OneOf("reward", c.Reward, "simple", "log")
	return p.Err()
}

type toyAgent struct {
	Entropy float64        `yaml:"entropy"`
	Encoder configs.Kinded `yaml:"encoder"`
}

type toyEncoder struct {
	Width int `yaml:"width"`
}

// toyEffective stands for opening the parts of an experiment; a window longer than the data is
// found out only here, without a place in the document.
func toyEffective(_ context.Context, c experiment.Config) (experiment.Config, string, error) {
	env := toyEnv{Window: 20, Buy: 0.2, Sell: 0.5, Reward: "simple", Bars: 100}
	agent := toyAgent{Entropy: 0.05}
	enc := toyEncoder{Width: 8}
	var errs []error
	errs = append(errs, c.Env.Decode(&env), c.Agent.Decode(&agent))
	if agent.Encoder.Kind == "" {
		agent.Encoder.Kind = "timecnn"
	}
	errs = append(errs, agent.Encoder.Decode(&enc))
	for _, err := range errs {
		if err != nil {
			return c, "", err
		}
	}
	if env.Window >= env.Bars {
		return c, "", fmt.Errorf("the window of %d bars is longer than the data", env.Window)
	}
	var err error
	agent.Encoder, err = configs.NewKinded(agent.Encoder.Kind, enc)
	if err != nil {
		return c, "", err
	}
	if c.Env, err = configs.NewKinded(c.Env.Kind, env); err != nil {
		return c, "", err
	}
	if c.Agent, err = configs.NewKinded(c.Agent.Kind, agent); err != nil {
		return c, "", err
	}
	return c, fmt.Sprintf("%d %s %d", env.Window, agent.Encoder.Kind, enc.Width), nil
}

const toyBase = `
seed: 7
env: {kind: toy, window: 20}
agent: {kind: toy}
train: {total_env_steps: 100, num_envs: 1}
`

const toyStudy = `
base: base.yaml
seeds: [1, 2, 3]
metrics: [sharpe, total_return]
factors:
  window:
    "20": {env.window: 20}
    "30": {env.window: 30}
    "60": {env.window: 60}
  trades:
    20/50: {env.buy_pct: 0.2, env.sell_pct: 0.5}
    10/30: {env.buy_pct: 0.1, env.sell_pct: 0.3}
  encoder:
    TimeCNN: {agent.encoder: {kind: timecnn, width: 8}}
    Transformer: {agent.encoder: {kind: transformer, width: 8}}
`

// files writes a study and its base into a folder and returns the study's path.
func files(t *testing.T, study, base string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"study.yaml": study, "base.yaml": base}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "study.yaml")
}

func newPlan(t *testing.T, study, base string, full bool, sets ...string) (*Plan, error) {
	t.Helper()
	c, path, err := Open(files(t, study, base))
	if err != nil {
		return nil, err
	}
	return NewPlan(t.Context(), c, path, Options{Sets: sets, Full: full, Effective: toyEffective})
}

func mustPlan(t *testing.T, study, base string, full bool, sets ...string) *Plan {
	t.Helper()
	p, err := newPlan(t, study, base, full, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runner trains in no time: it takes one env step after the other, keeps their number in a file,
// and its clock advances by a second for each.
type runner struct {
	mu sync.Mutex
	// steps is what was trained in all, trained the number of calls by directory.
	steps   int64
	trained map[string]int
	// fail makes a cell's runs fail, stop is called when a number of steps has been trained.
	fail func(c experiment.Config) error
	at   int64
	stop func()
	now  time.Time
}

func newRunner() *runner { return &runner{trained: map[string]int{}, now: time.Unix(0, 0)} }

func (r *runner) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *runner) Rehearse(context.Context, experiment.Config) error { return nil }

func (r *runner) Train(ctx context.Context, dir string, c experiment.Config, progress func(int64)) (int64, error) {
	r.mu.Lock()
	r.trained[dir]++
	r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(c); err != nil {
			return 0, err
		}
	}
	file := filepath.Join(dir, "steps")
	done := int64(0)
	if text, err := os.ReadFile(file); err == nil {
		if done, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return 0, err
		}
	}
	progress(done)
	for done < c.Train.TotalEnvSteps && ctx.Err() == nil {
		done++
		r.mu.Lock()
		r.now = r.now.Add(time.Second)
		r.steps++
		if r.stop != nil && r.steps == r.at {
			r.stop()
		}
		r.mu.Unlock()
		progress(done)
	}
	if err := os.WriteFile(file, strconv.AppendInt(nil, done, 10), 0o600); err != nil {
		return done, err
	}
	return done, ctx.Err()
}

// Evaluate makes up metrics from the configuration: every factor has an effect, seeds add noise.
func (r *runner) Evaluate(_ context.Context, dir string, c experiment.Config) (*Outcome, error) {
	if _, err := os.Stat(filepath.Join(dir, "steps")); err != nil {
		return nil, errors.New("nothing was trained")
	}
	var env toyEnv
	var agent toyAgent
	if err := errors.Join(c.Env.Decode(&env), c.Agent.Decode(&agent)); err != nil {
		return nil, err
	}
	sharpe := 0.01*float64(env.Window) + 0.5*(env.Buy-0.2)
	if agent.Encoder.Kind == "transformer" {
		sharpe += 0.3
	}
	noise := float64(c.Seed*c.Seed%7) / 100
	if env.Window == 60 {
		noise *= 3
	}
	r.mu.Lock()
	r.now = r.now.Add(2 * time.Second)
	r.mu.Unlock()
	return &Outcome{
		From: "2011-01-03", To: "2018-12-31", Bars: 2012,
		Metrics:       map[string]performance.Number{"sharpe": performance.Number(sharpe + noise), "total_return": performance.Number(sharpe / 2)},
		ReferenceName: "equal-weight buy-and-hold", Reference: map[string]performance.Number{"sharpe": 0.45, "total_return": 0.25},
	}, nil
}

func unopened(p *Plan, dir string, r *runner, parallel int) *Study {
	s := &Study{Plan: p, Runner: r, Now: r.clock}
	s.Dir, s.Parallel = dir, parallel
	return s
}

func newStudy(t *testing.T, p *Plan, dir string, r *runner, parallel int) *Study {
	t.Helper()
	s := unopened(p, dir, r, parallel)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
