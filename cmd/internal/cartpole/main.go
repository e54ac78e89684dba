package main

import (
	"context"
	"fmt"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func main() {
	ctx, e, kinds := context.Background(), portable.New(), experiment.Kinds{Envs: classic.Kinds(), Agents: ppo.Kinds()}
	must(must(run.Open(ctx, kinds, "cartpole_ppo", run.Job{Dir: "cartpole"}, run.Options{Engine: e})).Train(ctx))
	trained := must(run.NewEvaluation(kinds, "cartpole", run.EvaluationOptions{}))
	must(0, trained.Open(ctx, e))
	policy := must(e.Compile(must(onnx.Load("cartpole/best.onnx")), engine.Options{}))
	decided := must(engine.Run(ctx, policy, tensor.Of([]float32{0, 0, 0.1, 0}, 1, 4)))
	fmt.Println("mean return", must(trained.Episodes(ctx))[0].Return, "action", decided[0].Int64s()[0])
}
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
