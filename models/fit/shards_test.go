package fit

import (
	"runtime"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestShardsAreDecidedOnce: what is decided from the processors that there are is part of the
// effective configuration, and that has the same bits on others.
func TestShardsAreDecidedOnce(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(before)
	wide := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		h := b.Op("Gemm", []onnx.Value{x, b.Initializer("fc1.weight", filled(1, 4, 400)), b.Initializer("fc1.bias", filled(2, 400))})
		h = b.Op("Gemm", []onnx.Value{b.Op("Relu", []onnx.Value{h}), b.Initializer("fc2.weight", filled(3, 400, 400)), b.Initializer("fc2.bias", filled(4, 400))})
		y := b.Op("Gemm", []onnx.Value{b.Op("Relu", []onnx.Value{h}), b.Initializer("fc3.weight", filled(5, 400, 2)), b.Initializer("fc3.bias", filled(6, 2))})
		b.Output(b.Rename(y, "y"), batchOf(tensor.Float32, 2))
	})
	c, cfg := testengines.Fastest(t), regression(table(t, 150))
	cfg.Batch, cfg.Epochs, cfg.Shards = 64, 2, 0
	first := run(t, c, wide, cfg, runOptions{})
	if first.config.Shards != 2 {
		t.Fatalf("%d shards on two processors, expected 2", first.config.Shards)
	}
	for _, processors := range []int{1, 2, 3} {
		runtime.GOMAXPROCS(processors)
		again := run(t, c, wide, first.config, runOptions{})
		if err := same(first.weights, again.weights); err != nil || !slices.Equal(first.losses, again.losses) || again.config.Shards != 2 {
			t.Errorf("%d processors: %d shards, %v", processors, again.config.Shards, err)
		}
	}
	runtime.GOMAXPROCS(1)
	if alone := run(t, c, wide, cfg, runOptions{}); alone.config.Shards != 1 {
		t.Errorf("%d shards on one processor, expected 1", alone.config.Shards)
	}
}
