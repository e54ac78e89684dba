package seat

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

func TestGoalsContract(t *testing.T) {
	longtest.Slow(t)
	want := DefaultGoals()
	want.Days = []int{5, 12}
	c, err := configs.NewKinded("scml_goals", want)
	if err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(context.Background(), []envs.Kind{GoalsKind}, c)
	if err != nil {
		t.Fatal(err)
	}
	r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Allocates: true, Steps: 300})
	if r.Episodes < 5 || r.Saved < 10 {
		t.Errorf("too little was checked: %+v", r)
	}
}
