package replay_test

import (
	"fmt"
	"log"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Transitions of four environments are recorded, and a batch of them is sampled.
func Example() {
	list := make([]envs.Env, 4)
	for i := range list {
		list[i], _ = corridor.New(corridor.Config{Cells: 5})
	}
	env, err := vector.New(list, vector.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer env.Close()
	if err := env.Reset(rng.New(1)); err != nil {
		log.Fatal(err)
	}

	layout := replay.LayoutOf(env.Spec(), replay.Column{Name: "action", DType: tensor.Int64, Shape: []int{}})
	buffer, err := replay.NewUniform(layout, replay.Config{Capacity: 1000, Envs: 4, NSteps: 3, Gamma: 0.9})
	if err != nil {
		log.Fatal(err)
	}
	defer buffer.Close()
	b := env.Batch()
	decision := vector.Decision{Actions: b.Actions}
	for range 100 {
		for i := range b.Actions.Int64s() {
			b.Actions.Int64s()[i] = corridor.Right // A policy would decide here.
		}
		if err := buffer.Begin(b, &decision); err != nil {
			log.Fatal(err)
		}
		if err := env.Step(b.Actions); err != nil {
			log.Fatal(err)
		}
		if err := buffer.End(b); err != nil {
			log.Fatal(err)
		}
	}

	const rows = 64
	sample := replay.Batch{
		Obs:    []*tensor.Tensor{tensor.New(tensor.Float32, rows, 1)},
		Action: tensor.New(tensor.Int64, rows),
		Reward: make([]float32, rows), Discount: make([]float32, rows),
	}
	stream := rng.New(2).Stream()
	if err := buffer.Sample(stream, &sample); err != nil {
		log.Fatal(err)
	}
	ends := 0
	for i, d := range sample.Discount {
		if d == 0 && sample.Reward[i] > 0 { // The goal is at most three steps ahead.
			ends++
		}
	}
	fmt.Println(ends > 0 && ends < rows, sample.Action.Int64s()[0] == corridor.Right)
	// Output: true true
}
