package configs_test

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
)

type run struct {
	Seed  uint64         `yaml:"seed"`
	Agent configs.Kinded `yaml:"agent"`
}

// ppo belongs to the package of the algorithm; run does not know it.
type ppo struct {
	LearningRate float64 `yaml:"learning_rate"`
	ClipRange    float64 `yaml:"clip_range"`
}

func (c *ppo) Validate() error {
	var p configs.Problems
	p.Positive("learning_rate", c.LearningRate)
	p.InRange("clip_range", c.ClipRange, 0, 1)
	return p.Err()
}

func Example() {
	doc, err := configs.Parse("run.yaml", []byte("seed: 7\nagent:\n  kind: ppo\n  clip_range: 0.3\n"))
	if err != nil {
		panic(err)
	}
	if err := doc.Set("agent.learning_rate=1e-3"); err != nil {
		panic(err)
	}
	var r run
	if err := doc.Decode(&r); err != nil {
		panic(err)
	}
	agent := ppo{LearningRate: 3e-4, ClipRange: 0.2}
	if err := r.Agent.Decode(&agent); err != nil {
		panic(err)
	}
	// The effective configuration has the defaults filled in.
	if r.Agent, err = configs.NewKinded(r.Agent.Kind, agent); err != nil {
		panic(err)
	}
	text, err := configs.Marshal(r)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))

	broken := doc.Clone()
	if err := broken.Set("agent.clip_range=3", "agent.learnin_rate=1"); err != nil {
		panic(err)
	}
	_ = broken.Decode(&r)
	fmt.Println(r.Agent.Decode(&agent))
	// Output:
	// seed: 7
	// agent:
	//   kind: ppo
	//   learning_rate: 0.001
	//   clip_range: 0.3
	// --set agent.learnin_rate=1: agent.learnin_rate: unknown key "learnin_rate"; did you mean "learning_rate"?
	// --set agent.clip_range=3: agent.clip_range: must be between 0 and 1, is 3
}
