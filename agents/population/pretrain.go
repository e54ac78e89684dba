package population

import (
	"context"
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

// encoded gives the experts' experiment the encoder that is going to be pretrained.
func (p *Population) encoded() error {
	dir, err := p.pretrainingDir()
	if err != nil {
		return err
	}
	_, adapted := p.search.Experiment().Agent.Lookup("lora")
	return p.search.Assign("agent.encoder", encoderOf(filepath.Join(dir, pretrain.EncoderFile), !adapted))
}

// encoderOf is the section agent.encoder of a pretrained one.
func encoderOf(path string, frozen bool) map[string]any {
	c := map[string]any{"kind": "file", "path": path, "output": pretrain.Features}
	if frozen {
		c["freeze"] = []string{"*"}
	}
	return c
}

// encoder is the path of the pretrained encoder, as the experts' experiment has it; the name of its
// file before it is known where it is going to be.
func (p *Population) encoder() string {
	if s, ok := p.search.Experiment().Agent.Lookup("encoder.path"); ok {
		var path string
		if s.Decode(&path) == nil && path != "" {
			return path
		}
	}
	return pretrain.EncoderFile
}

// pretrain trains the encoder, unless it is trained already.
func (p *Population) pretrain(ctx context.Context) error {
	if !p.c.Pretrain.On() {
		return nil
	}
	_, err := pretrain.Train(ctx, pretrain.Options{
		Config: p.c.Pretrain.Config, Environments: p.search.Environments(), Dir: filepath.Dir(p.encoder()), Engine: p.o.Run.Engine, Encoders: p.o.Kinds.Encoders, Program: p.o.Run.Program,
		Step: p.o.Pretraining,
	})
	return err
}
