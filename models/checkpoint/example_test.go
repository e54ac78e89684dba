package checkpoint_test

import (
	"fmt"
	"os"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// trainer is a component whose next step depends on its weights, its counter and its random
// streams.
type trainer struct {
	weights []float32
	step    int64
	streams *rng.Set
}

func (t *trainer) SaveState(w *checkpoint.Writer) error {
	w.PutFloat32s("weights", t.weights)
	w.PutJSON("step", t.step)
	w.PutJSON("rng", t.streams)
	return w.Err()
}

func (t *trainer) LoadState(r *checkpoint.Reader) error {
	r.Float32sInto("weights", t.weights)
	r.JSON("step", &t.step)
	r.JSON("rng", t.streams)
	return r.Err()
}

func (t *trainer) train() {
	t.step++
	for i := range t.weights {
		t.weights[i] += float32(t.streams.Stream("noise").Normal())
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	first := &trainer{weights: make([]float32, 3), streams: rng.NewSet(rng.New(7))}
	first.train()
	store, err := checkpoint.OpenStore(dir, checkpoint.Options{KeepLast: 3})
	if err != nil {
		panic(err)
	}
	if _, err := store.Save(checkpoint.Meta{Kind: "example", Step: first.step}, first); err != nil {
		panic(err)
	}
	store.Close()
	first.train()

	// Another process resumes and takes the same step.
	second := &trainer{weights: make([]float32, 3), streams: rng.NewSet(rng.New(0))}
	saved, err := checkpoint.Latest(dir)
	if err != nil {
		panic(err)
	}
	defer saved.Close()
	if err := saved.Load(second); err != nil {
		panic(err)
	}
	second.train()
	fmt.Println(second.step, second.weights[0] == first.weights[0], second.weights[2] == first.weights[2])
	// Output: 2 true true
}
