package population

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
)

// pretrainDir is the directory of a population's own pretraining.
const pretrainDir = "pretrain"

// pretrainingDir is the directory of the pretraining.
func (p *Population) pretrainingDir() (string, error) {
	if p.o.Pretrained == "" {
		return filepath.Join(p.ledger.Dir, pretrainDir), nil
	}
	digest, err := configs.Digest(struct {
		Env      configs.Kinded
		Pretrain pretrain.Config
	}{p.search.Experiment().Env, p.c.Pretrain.Config})
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Join(p.o.Pretrained, digest[:16]))
	return dir, err
}

// encoded gives the experiments of a new population the encoder that is going to be pretrained.
func (p *Population) encoded() error {
	if !p.c.Pretrain.On() {
		return nil
	}
	dir, err := p.pretrainingDir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, pretrain.EncoderFile)
	if !evolve.Holds(filepath.Join(p.ledger.Dir, ExpertsDir)) {
		_, adapted := p.search.Experiment().Agent.Lookup("lora")
		if err := p.search.Assign("agent.encoder", encoderOf(path, !adapted)); err != nil {
			return err
		}
	}
	if p.c.Pretrain.Router && p.routers != nil && !evolve.Holds(filepath.Join(p.ledger.Dir, RouterDir)) {
		return p.routers.Assign("agent.encoder", encoderOf(path, true))
	}
	return nil
}

// Rehearse finds out what refuses the experts and the routers, and that they can be published,
// before anything is trained: the encoder and the experts that the routers choose between are
// untrained. With Options.Measure it finds out how long training takes, see [Population.Estimate]. A
// population that is resumed was rehearsed before.
func (p *Population) Rehearse(ctx context.Context) (err error) {
	if p.o.Resume != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "onnxrl-population-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var encoder string
	var experts func(doc *configs.Document) error
	if p.c.Pretrain.On() {
		o := p.pretraining(dir)
		o.Step = nil
		if encoder, err = pretrain.Untrained(ctx, o); err != nil {
			return err
		}
		experts = func(doc *configs.Document) error {
			_, adapted := p.search.Experiment().Agent.Lookup("lora")
			return doc.SetValue("agent.encoder", encoderOf(encoder, !adapted))
		}
	}
	if err := p.search.Rehearse(ctx, experts, dir); err != nil {
		return fmt.Errorf("experts: %w", err)
	}
	if p.routers == nil {
		return p.measure(ctx, experts, nil)
	}
	over := func(doc *configs.Document) error {
		files := slices.Repeat([]string{filepath.Join(dir, publish.PolicyFile)}, p.c.Experts.Population)
		if err := setExperts(doc, files); err != nil || !p.c.Pretrain.Router {
			return err
		}
		return doc.SetValue("agent.encoder", encoderOf(encoder, true))
	}
	if err := p.routers.Rehearse(ctx, over, ""); err != nil {
		return fmt.Errorf("router.experiment: %w", err)
	}
	return p.measure(ctx, experts, over)
}

// pretraining says what is pretrained, in a directory.
func (p *Population) pretraining(dir string) pretrain.Options {
	return pretrain.Options{
		Config: p.c.Pretrain.Config, Environments: p.search.Environments(), Dir: dir, Engine: p.o.Run.Engine, Encoders: p.o.Kinds.Encoders, Program: p.o.Run.Program,
		Step: p.o.Pretraining,
	}
}

// encoderOf is the section agent.encoder of a pretrained one.
func encoderOf(path string, frozen bool) map[string]any {
	c := map[string]any{"kind": "file", "path": path, "output": pretrain.Features}
	if frozen {
		c["freeze"] = []string{"*"}
	}
	return c
}

// pretrain trains the encoder, unless it is trained already.
func (p *Population) pretrain(ctx context.Context) error {
	if !p.c.Pretrain.On() {
		return nil
	}
	// It is where the experts' experiment has it.
	var path string
	section, ok := p.search.Experiment().Agent.Lookup("encoder.path")
	if !ok {
		return errors.New("pretrain: the experts' experiment has no agent.encoder.path")
	}
	if err := section.Decode(&path); err != nil {
		return err
	}
	_, err := pretrain.Train(ctx, p.pretraining(filepath.Dir(path)))
	return err
}
