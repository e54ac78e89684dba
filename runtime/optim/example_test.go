package optim_test

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Example fits two parameters to targets by gradient descent on the squared
// distance; decay applies to the weight only.
func Example() {
	params := []float32{5, -3} // arenas: a parameter at each offset
	grads := make([]float32, 2)
	list := []optim.Param{{Name: "l.weight", Offset: 0, Len: 1}, {Name: "l.bias", Offset: 1, Len: 1}}

	cfg := optim.Config{Kind: "adamw", LR: 0.1, Decay: 1e-4, NoDecay: []string{"*.bias"}}
	opt, err := optim.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, err := optim.Groups(cfg, params, grads, list)
	if err != nil {
		fmt.Println(err)
		return
	}
	schedule := optim.Schedule{Kind: "cosine"}.WithInitial(cfg.LR)

	const total = 300
	for step := range uint64(total) {
		grads[0], grads[1] = 2*(params[0]-1), 2*(params[1]-2)
		optim.SetLR(groups, schedule.At(step, total))
		if _, _, err := optim.ClipGlobalNorm(groups, 10); err != nil {
			fmt.Println(err) // names the parameter that is not finite
			return
		}
		if err := opt.Step(groups); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%.2f %.2f\n", params[0], params[1])
	// Output: 1.00 2.00
}
