package agents_test

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// thermostat is a room that loses heat. The heater is off or on; the reward is best at 20 degrees.
type thermostat struct {
	degrees float64
	random  rng.Stream
}

// room says what the environment is. It is made once: Step reads it, and allocates nothing.
var room = envs.Spec{
	Name:        "thermostat",
	Observation: envs.Dict{{Name: "degrees", Space: envs.NewBox(-1, 1, 1)}},
	Action:      envs.Discrete{N: 2},
	Reward:      envs.Range{Low: -1, High: 0},
	Random:      true,
}

func (e *thermostat) Spec() envs.Spec { return room }
func (e *thermostat) Close() error    { return nil }

// Reset begins between 10 and 30 degrees. All randomness of the episode comes from the key.
func (e *thermostat) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.degrees = 10 + 20*e.random.Float64()
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *thermostat) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := envs.CheckAction(&room, action); err != nil {
		return err
	}
	e.degrees = max(0, min(e.degrees+2*float64(action.Int64s()[0])-1+0.2*e.random.Normal(), 40))
	e.observe(ts)
	off := (e.degrees - 20) / 20
	ts.Continue(-off * off)
	return nil
}

// observe writes into the tensor that it finds, scaled to what networks like.
func (e *thermostat) observe(ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] = float32(e.degrees/20 - 1) }

// thermostats makes them. An envs.Kind in the program's list lets documents name it.
type thermostats struct{}

func (thermostats) Config() any  { return struct{}{} }
func (thermostats) Close() error { return nil }

// New puts a time limit around the room: its episodes are truncated, they do not terminate.
func (thermostats) New(envs.Split, int) (envs.Env, error) {
	return wrap.NewTimeLimit(&thermostat{}, 50)
}

// A new environment is a type with four methods and a factory. Package envtest tests it.
func Example_environment() {
	ctx := context.Background()
	maker := must(ppo.NewMaker(ppo.Defaults()))
	c := train.Defaults()
	c.NumEnvs, c.TotalEnvSteps, c.Threads, c.Validation.EverySteps = 4, 8192, 1, 0
	run := must(train.New(ctx, thermostats{}, maker, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, c, train.Hooks{}))
	defer run.Close()
	before := must(evaluate.Episodes(ctx, thermostats{}, envs.Test, run.Agent(), agents.Explore, 20, 100, rng.New(1)))
	must(run.Run(ctx))
	after := must(evaluate.Episodes(ctx, thermostats{}, envs.Test, run.Agent(), agents.Greedy, 20, 100, rng.New(1)))
	fmt.Println("at random, a return below -4:", before.Return < -4)
	fmt.Println("trained, a return above -0.5:", after.Return > -0.5)
	// Output:
	// at random, a return below -4: true
	// trained, a return above -0.5: true
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
