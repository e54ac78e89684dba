package vector_test

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Four corridors are walked to the right until eight episodes have ended.
func Example() {
	list := make([]envs.Env, 4)
	for i := range list {
		list[i], _ = corridor.New(corridor.Config{Cells: 5})
	}
	v, err := vector.New(list, vector.Options{Check: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	if err := v.Reset(rng.New(42)); err != nil {
		fmt.Println(err)
		return
	}
	b, ended, sum := v.Batch(), 0, 0.0
	for ended < 8 {
		// A policy would look at b.Obs and b.Mask here.
		for i := range b.Actions.Int64s() {
			b.Actions.Int64s()[i] = corridor.Right
		}
		if err := v.Step(b.Actions); err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range b.Ended {
			ended++
			sum += e.Return
		}
	}
	fmt.Println(sum/float64(ended), "reward per episode")
	// Output: 1 reward per episode
}
