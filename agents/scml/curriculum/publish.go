package curriculum

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
)

// publish publishes the layers of the best round, each in its run directory, and makes the agent of
// them, unless it is made. Where the baseline was the best of all trials the agent has no layers.
func (c *Curriculum) publish(ctx context.Context) error {
	to := filepath.Join(c.ledger.Dir, AgentDir)
	if _, err := os.Stat(filepath.Join(to, scml.DescriptionFile)); err == nil {
		return nil
	}
	if best(c.rounds) < 0 {
		c.o.Note("no round was better than the baseline: the agent is the baseline alone, without layers")
	}
	files := map[string]string{}
	for _, l := range c.c.on() {
		round := c.trained(l, best(c.rounds))
		if round < 0 {
			continue
		}
		dir := filepath.Join(c.roundDir(round), l.name)
		p, err := c.reopen(ctx, dir)
		if err != nil {
			return err
		}
		_, err = p.Publish(ctx, run.PublishOptions{Newest: true})
		if err := errors.Join(err, p.Close()); err != nil {
			return err
		}
		files[l.name] = filepath.Join(dir, publish.BestFile)
	}
	return c.assemble(to, files)
}

// evaluate plays the tournament at the end: the agent, the baseline and the rivals.
func (c *Curriculum) evaluate(ctx context.Context) (err error) {
	competitors := []string{nameAgent, scml.Baseline.Name}
	for _, name := range c.c.Evaluation.Rivals {
		if name != scml.Baseline.Name {
			competitors = append(competitors, name)
		}
	}
	s := c.c.Evaluation.spec(c.seed("evaluation", 0), competitors)
	s.Find, s.Watch = c.find(map[string]string{nameAgent: filepath.Join(c.ledger.Dir, AgentDir)}), shield.Watch
	c.evaluation, err = c.play(ctx, "evaluation", filepath.Join(c.ledger.Dir, EvaluationFile), s)
	return err
}
