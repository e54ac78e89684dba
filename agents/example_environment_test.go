package agents_test

import (
	"context"
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/evaluate"
	"onnxrl/agents/ppo"
	"onnxrl/agents/train"
	"onnxrl/envs"
	"onnxrl/runtime/portable"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// thermostat is a room that loses heat. The heater is off or on; the reward is best at 20 degrees.
type thermostat struct {
	degrees float64
	steps   int
	random  rng.Stream
}

func (e *thermostat) Spec() envs.Spec {
	return envs.Spec{
		Name:        "thermostat",
		Observation: envs.Dict{{Name: "degrees", Space: envs.NewBox(-1, 1, 1)}},
		Action:      envs.Discrete{N: 2},
		Reward:      envs.Range{Low: -1, High: 0},
		MaxSteps:    50,
		Random:      true,
	}
}

// Reset begins somewhere between 10 and 30 degrees. All randomness of the episode comes from the key.
func (e *thermostat) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.degrees, e.steps = 10+20*e.random.Float64(), 0
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *thermostat) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	spec := e.Spec()
	if e.steps == spec.MaxSteps {
		return envs.ErrNoEpisode
	}
	if err := envs.CheckAction(&spec, action); err != nil {
		return err
	}
	e.degrees += 2*float64(action.Int64s()[0]) - 1 + 0.2*e.random.Normal()
	e.degrees = max(0, min(e.degrees, 40))
	e.steps++
	e.observe(ts)
	off := (e.degrees - 20) / 20
	if reward := -off * off; e.steps == spec.MaxSteps {
		// The room goes on to exist: the episode is cut off and has not come to its end, so the learner counts what would have followed.
		ts.Truncate(reward)
	} else {
		ts.Continue(reward)
	}
	return nil
}

// observe writes into the tensor that it finds, scaled to what networks like.
func (e *thermostat) observe(ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] = float32(e.degrees/20 - 1) }

func (e *thermostat) Close() error { return nil }

// thermostats makes them. With a row in the program's list, documents can name it: env: {kind: thermostat}.
type thermostats struct{}

func (thermostats) Config() any                           { return struct{}{} }
func (thermostats) New(envs.Split, int) (envs.Env, error) { return &thermostat{}, nil }
func (thermostats) Close() error                          { return nil }

// A new environment is a type with four methods and a factory. Run package envtest over it; then any algorithm learns in it.
func Example_environment() {
	ctx := context.Background()
	maker, err := ppo.NewMaker(ppo.Defaults())
	if err != nil {
		panic(err)
	}
	c := train.Defaults()
	c.NumEnvs, c.TotalEnvSteps, c.Threads, c.Validation.EverySteps = 4, 8192, 1, 0
	run, err := train.New(ctx, thermostats{}, maker, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, c, train.Hooks{})
	if err != nil {
		panic(err)
	}
	defer run.Close()
	judge := func(mode agents.Mode) float64 {
		r, err := evaluate.Episodes(ctx, thermostats{}, envs.Test, run.Agent(), mode, 20, 100, rng.New(1))
		if err != nil {
			panic(err)
		}
		return r.Return
	}
	before := judge(agents.Explore)
	if _, err := run.Run(ctx); err != nil {
		panic(err)
	}
	after := judge(agents.Greedy)
	fmt.Println("at random, a return below -4:", before < -4)
	fmt.Println("trained, a return above -0.5:", after > -0.5)
	// Output:
	// at random, a return below -4: true
	// trained, a return above -0.5: true
}
