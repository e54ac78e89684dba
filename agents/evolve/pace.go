package evolve

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
)

// Pace is how long the members of a search take, by what the first of them took for a few env steps
// on this machine, alone, before it had learnt anything. The JSON keys are stable.
type Pace struct {
	// EnvSteps are those of all members and generations, and AtOnce how many members train at once.
	EnvSteps int64 `json:"env_steps"`
	AtOnce   int   `json:"at_once"`
	// StepSeconds is how long an env step of one member takes with the updates that come with it,
	// measured over so many env steps and updates.
	StepSeconds   float64 `json:"step_seconds"`
	MeasuredSteps int     `json:"measured_steps"`
	Updates       int     `json:"updates"`
	// Seconds is how long all of them take.
	Seconds float64 `json:"seconds"`
}

// Limits on the steps that are measured of a member, and on the time after which none begins.
const (
	paceSteps = 3
	paceLimit = 20 * time.Second
)

// Measure finds out how long the members take. Edit is that of [Search.Rehearse]. An algorithm whose
// updates come after many env steps makes one of the same size after as few as it can, which costs an
// env step as much. What is trained is thrown away.
func (s *Search) Measure(ctx context.Context, edit func(doc *configs.Document) error) (p Pace, err error) {
	c, o, err := s.first(edit)
	if err != nil {
		return p, err
	}
	if _, c.Agent, err = s.o.Kinds.Agent(c.Agent); err != nil {
		return p, err
	}
	doc, err := c.YAML()
	if err != nil {
		return p, err
	}
	small, err := configs.Parse("the member", []byte(doc))
	if err != nil {
		return p, err
	}
	envs := c.Train.NumEnvs
	number := func(key string) (n int, ok bool) {
		v, ok := c.Agent.Lookup(key)
		return n, ok && v.Decode(&n) == nil
	}
	updates := 0.0 // For each env step; 0 is one learner step for what came before it.
	if freq, ok := c.Agent.Lookup("train_freq"); ok {
		steps, _ := number("gradient_steps")
		var rounds int
		// After each episode there is no number of rounds: as many as -1 has, one for each env step.
		if updates = 1; freq.Decode(&rounds) == nil && steps > 0 {
			updates = float64(steps) / float64(rounds*envs)
		}
		err = errors.Join(small.SetValue("agent.train_freq", 1), small.SetValue("agent.gradient_steps", 1))
		if _, ok := number("learning_starts"); ok {
			err = errors.Join(err, small.SetValue("agent.learning_starts", 1))
		}
	} else if batch, ok := number("batch_size"); ok {
		if n, ok := number("n_steps"); ok {
			err = small.SetValue("agent.n_steps", min(n, max(1, (batch+envs-1)/envs)))
		}
	}
	if err != nil {
		return p, err
	}
	pace, err := run.Measure(ctx, s.o.Kinds, run.Job{Name: s.ledger.Name, Config: string(small.Bytes())}, o, paceSteps, paceLimit)
	if err != nil {
		return p, err
	}
	p.EnvSteps = int64(s.c.Population) * s.c.IntervalSteps * int64(s.c.Generations)
	p.AtOnce = max(1, min(s.o.Parallel, s.c.Population, runtime.GOMAXPROCS(0)))
	p.StepSeconds, p.MeasuredSteps, p.Updates = pace.Round/float64(envs), pace.Rounds*envs, pace.Steps
	if pace.Steps > 0 && !math.IsNaN(pace.Step) {
		if updates == 0 {
			updates = 1 / float64(pace.Per)
		}
		p.StepSeconds += updates * pace.Step
	}
	p.Seconds = p.StepSeconds * float64(p.EnvSteps) / float64(p.AtOnce)
	return p, nil
}
