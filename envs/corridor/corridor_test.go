package corridor_test

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
)

func TestContract(t *testing.T) {
	c, err := configs.NewKinded("corridor", corridor.Config{Cells: 12})
	if err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(context.Background(), []envs.Kind{corridor.Kind}, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Config(); got != (corridor.Config{Cells: 12}) {
		t.Errorf("effective configuration is %+v", got)
	}
	r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{})
	if r.Episodes < 5 || r.Saved < 10 {
		t.Errorf("too little was checked: %+v", r)
	}
}
