package curriculum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/models/transfer"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// The decisions after a round.
const (
	// Better: the agent is the best from now on.
	Better = "better"
	// Kept: the next round goes on from the agent, which is not the best.
	Kept = "kept"
	// RolledBack: the next round goes on from the best, or from nothing where that is the baseline.
	RolledBack = "rolled back"
)

// Round is what has come of a round; the JSON keys are stable.
type Round struct {
	Round int `json:"round"`
	// From is the round whose agent this one went on from, −1 for none.
	From int `json:"from"`
	// EnvSteps are those that each layer has taken in all, Validation its metric on the validation
	// split at the end.
	EnvSteps   map[string]int64   `json:"env_steps"`
	Validation map[string]float64 `json:"validation"`
	// Rivals is the pool that was trained against. Directories of the agent's own rounds are called
	// round-1, round-2 ….
	Rivals []string `json:"rivals"`
	// Agent is what the agent has come to in the trial, and Best what the best before it has, which
	// is the baseline until an agent is better. Gain is the difference.
	Agent league.Standing   `json:"agent"`
	Best  league.Standing   `json:"best"`
	Gain  league.Difference `json:"gain"`
	// Decision is better, kept or rolled back, for the reason Why. Joined are the rivals that join
	// the pool.
	Decision string   `json:"decision"`
	Why      string   `json:"why"`
	Joined   []string `json:"joined,omitempty"`
}

// selfName is what the agent of a round is called as a rival.
func selfName(round int) string { return fmt.Sprintf("round-%d", round+1) }

// renames are what the layers of actors of offline algorithms are called in those of the others.
// The last layer is not taken over: it is under a tanh there, and without here, where actions far
// outside of their bounds are cut off and nothing is learnt any more. A new one begins near zero,
// which is what the baseline does.
var renames = []transfer.Rename{{From: "actor.fc", To: "actor.hidden.fc"}}

// before is the round that one goes on from, −1 for none: it begins from nothing.
func (c *Curriculum) before(round int) int {
	if round == 0 {
		return -1
	}
	if c.rounds[round-1].Decision == RolledBack {
		return best(c.rounds[:round])
	}
	return round - 1
}

// trained is the round that a layer has trained in last for the agent of a round, −1 for none.
func (c *Curriculum) trained(l layer, round int) int {
	if round < 0 || l.trains(round) {
		return round
	}
	before := c.trained(l, c.rounds[round].From)
	if before < 0 && l.past(round) {
		return round
	}
	return before
}

// trains reports whether a layer trains in a round that goes on from another one: where it is to, and
// where its time is over and what it had learnt was rolled back.
func (c *Curriculum) trains(l layer, round, from int) bool {
	return l.trains(round) || l.past(round) && c.trained(l, from) < 0
}

// round trains all layers for a round, plays the trial, and decides.
func (c *Curriculum) round(ctx context.Context) error {
	n := len(c.rounds)
	r := Round{Round: n, From: c.before(n), EnvSteps: map[string]int64{}, Validation: map[string]float64{}, Rivals: c.pool(n)}
	var rivals []string
	for _, name := range r.Rivals {
		rivals = append(rivals, c.place(name))
	}
	// dir is the agent as it is, of these files; empty before there is any.
	dir, files := "", map[string]string{}
	if r.From >= 0 {
		dir = filepath.Join(c.roundDir(r.From), agentDirName)
		for _, l := range c.c.on() {
			if c.trained(l, r.From) >= 0 {
				files[l.name] = filepath.Join(dir, l.name+".onnx")
			}
		}
		maps.Copy(r.EnvSteps, c.rounds[r.From].EnvSteps)
	}
	for _, l := range c.c.on() {
		if !c.trains(l, n, r.From) {
			continue
		}
		res, policy, err := c.train(ctx, l, n, rivals, dir)
		if err != nil {
			return err
		}
		r.EnvSteps[l.name] = res.EnvSteps
		if v, ok := res.Last[res.Metric]; ok {
			r.Validation[l.name] = v
		}
		files[l.name] = policy
		dir = filepath.Join(c.roundDir(n), "after-"+l.name)
		if err := c.assemble(dir, files); err != nil {
			return err
		}
	}
	if err := c.assemble(filepath.Join(c.roundDir(n), agentDirName), files); err != nil {
		return err
	}
	report, err := c.trial(ctx, n)
	if err != nil {
		return fmt.Errorf("the trial: %w", err)
	}
	c.decide(&r, report)
	if err := c.log.Append(r); err != nil {
		return err
	}
	c.rounds = c.log.Records()
	return nil
}

// agentDirName is the directory of the agent in that of a round.
const agentDirName = "agent"

// pool is who the layers train against in a round: the rivals of the document, those that have
// joined, and the newest of what the agent was when it was the best.
func (c *Curriculum) pool(round int) []string {
	list := slices.Clone(c.c.Pool.Rivals)
	var selves []string
	for _, r := range c.rounds[:round] {
		list = append(list, r.Joined...)
		if r.Decision == Better {
			selves = append(selves, selfName(r.Round))
		}
	}
	return append(list, selves[max(0, len(selves)-c.c.Pool.Selves):]...)
}

// place is the name by which a rival is found: the directory of an agent of a round.
func (c *Curriculum) place(name string) string {
	n := 0
	if _, err := fmt.Sscanf(name, "round-%d", &n); err == nil && name == selfName(n-1) {
		return filepath.Join(c.roundDir(n-1), agentDirName)
	}
	return name
}

// find finds agents by the names that tournaments have for them.
func (c *Curriculum) find(at map[string]string) func(name string) (*opponents.Kind, error) {
	return func(name string) (*opponents.Kind, error) {
		if dir, ok := at[name]; ok {
			return c.roster.Find(dir)
		}
		return c.roster.Find(c.place(name))
	}
}

// The names of the trial's competitors.
const (
	nameAgent = "agent"
	nameBest  = "best"
)

// trial plays the tournament after a round.
func (c *Curriculum) trial(ctx context.Context, round int) (*league.Report, error) {
	at := map[string]string{nameAgent: filepath.Join(c.roundDir(round), agentDirName), nameBest: scml.Baseline.Name}
	if n := best(c.rounds); n >= 0 {
		at[nameBest] = filepath.Join(c.roundDir(n), agentDirName)
	}
	s := c.c.Trial.spec(c.seed("trial", round), append([]string{nameAgent, nameBest}, c.c.Pool.Rivals...))
	s.Find, s.Watch = c.find(at), shield.Watch
	return c.play(ctx, fmt.Sprintf("round %d trial", round+1), filepath.Join(c.roundDir(round), trialFile), s)
}

// decide says what the agent is after its trial, and who joins the pool.
func (c *Curriculum) decide(r *Round, report *league.Report) {
	r.Agent, _ = report.Standing(nameAgent)
	r.Best, _ = report.Standing(nameBest)
	r.Gain, _ = report.Between(nameAgent, nameBest)
	gain := r.Agent.Score - r.Best.Score
	worse := c.worse(&r.Agent, &r.Best, "the best")
	if began := c.began(r); worse == "" && began != nil {
		worse = c.worse(&r.Agent, began, "what it began with")
	}
	switch {
	case worse != "":
		r.Decision, r.Why = RolledBack, worse
	case gain > 0:
		r.Decision, r.Why = Better, fmt.Sprintf("scores %.3f more than the best", gain)
	case gain < 0:
		r.Decision, r.Why = Kept, fmt.Sprintf("scores %.3f less than the best", -gain)
	default:
		r.Decision, r.Why = Kept, "scores no more than the best"
	}
	if r.Decision != Better && c.overfits(r) {
		joined := 0
		for _, o := range c.rounds {
			joined += len(o.Joined)
		}
		if joined < len(c.c.Pool.Reserve) {
			r.Joined = []string{c.c.Pool.Reserve[joined]}
			c.o.Note(fmt.Sprintf("round %d is better against the pool and not in the trial: %s joins the pool", r.Round+1, r.Joined[0]))
		}
	}
}

// began is what the agent that a round began with would have come to in the round's trial: as far
// from the best, which is the same in both, as in its own trial. nil where it is the best.
func (c *Curriculum) began(r *Round) *league.Standing {
	if r.From < 0 || r.From == best(c.rounds) {
		return nil
	}
	then := &c.rounds[r.From]
	return &league.Standing{
		Score: r.Best.Score + then.Agent.Score - then.Best.Score, Short: r.Best.Short + then.Agent.Short - then.Best.Short,
		Overflow: r.Best.Overflow + then.Agent.Overflow - then.Best.Overflow, WinRate: r.Best.WinRate + then.Agent.WinRate - then.Best.WinRate,
	}
}

// worse says in what an agent is worse than another one, which is called by name, by more than may
// be; empty for nothing.
func (c *Curriculum) worse(agent, than *league.Standing, name string) string {
	b := c.c.Trial.Rollback
	switch {
	case agent.Score < than.Score-b.Score:
		return fmt.Sprintf("scores %.3f less than %s", than.Score-agent.Score, name)
	case agent.Short > than.Short+b.Breach:
		return fmt.Sprintf("breaches on %.1f %% of the days, %s on %.1f %%", 100*agent.Short, name, 100*than.Short)
	case agent.Overflow > than.Overflow+b.Overflow:
		return fmt.Sprintf("has %.1f units too many in stock, %s %.1f", agent.Overflow, name, than.Overflow)
	case agent.WinRate < than.WinRate-b.WinRate:
		return fmt.Sprintf("wins %.1f %% of its worlds, %s %.1f %%", 100*agent.WinRate, name, 100*than.WinRate)
	}
	return ""
}

// overfits reports whether any layer is better on its validation split than after the round before,
// though the trial has found no gain.
func (c *Curriculum) overfits(r *Round) bool {
	if r.From < 0 {
		return false
	}
	for name, v := range r.Validation {
		if before, ok := c.rounds[r.From].Validation[name]; ok && v > before {
			return true
		}
	}
	return false
}

// assemble makes the directory of an agent of the files of its layers, by name.
func (c *Curriculum) assemble(dir string, files map[string]string) error {
	d := c.shape
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, l := range c.c.on() {
		from, ok := files[l.name]
		if !ok {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		*l.file(&d) = l.name + ".onnx"
		if err := atomicfile.WriteBytes(filepath.Join(dir, l.name+".onnx"), text); err != nil {
			return err
		}
	}
	return run.WriteJSON(filepath.Join(dir, scml.DescriptionFile), d)
}

// keep writes the policy of a layer's run for others to act with, unless it is there.
func (c *Curriculum) keep(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, publish.PolicyFile)
	if at, ok, err := publish.StepsOf(path); err == nil && ok {
		if reached, err := run.Reached(dir); err == nil && at == reached {
			return path, nil
		}
	}
	p, err := c.reopen(ctx, dir)
	if err != nil {
		return "", err
	}
	return path, errors.Join(p.Keep(ctx), p.Close())
}

// reopen opens a finished run.
func (c *Curriculum) reopen(ctx context.Context, dir string) (*run.Plan, error) {
	o := c.o.Run
	o.Hooks.Begin, o.Hooks.End = nil, nil
	return run.Open(ctx, c.o.Kinds, "", run.Job{Resume: dir, Group: c.ledger.Dir}, o)
}
