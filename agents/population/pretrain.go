package population

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/configs"
)

// pretrainDir is the directory of a population's own pretraining.
const pretrainDir = "pretrain"

// pretrainingDir is the directory of the pretraining.
func (p *Population) pretrainingDir() (string, error) {
	if p.o.Pretrained == "" {
		return filepath.Join(p.dir, pretrainDir), nil
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
	if !begun(filepath.Join(p.dir, ExpertsDir)) {
		_, adapted := p.search.Experiment().Agent.Lookup("lora")
		if err := p.search.Assign("agent.encoder", encoderOf(path, !adapted)); err != nil {
			return err
		}
	}
	if p.c.Pretrain.Router && p.routers != nil && !begun(filepath.Join(p.dir, RouterDir)) {
		return p.routers.Assign("agent.encoder", encoderOf(path, true))
	}
	return nil
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
	_, err := pretrain.Train(ctx, pretrain.Options{
		Config: p.c.Pretrain.Config, Environments: p.search.Environments(), Dir: filepath.Dir(path), Engine: p.o.Run.Engine, Encoders: p.o.Kinds.Encoders, Program: p.o.Run.Program,
		Step: p.o.Pretraining,
	})
	return err
}
