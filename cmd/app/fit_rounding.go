package app

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fitRounding is about a model that is written in another floating-point type than float32. It says
// how far its outputs are from those of the function that was trained, as the largest |Δ| / (1 +
// |y|). The JSON keys are stable.
type fitRounding struct {
	Type string `json:"type"`
	// Weights is the error of rounded weights alone, with everything computed in float32.
	Weights float64 `json:"weights_max_error"`
	// Native is the error when the engine computes the file as it is; null where it cannot, for the
	// reason given.
	Native  *float64 `json:"native_max_error"`
	Problem string   `json:"problem,omitempty"`
}

func (r *fitRounding) String() string {
	native := "this engine cannot compute in it: " + r.Problem
	if r.Native != nil {
		native = fmt.Sprintf("max error %.2g when computed in it", *r.Native)
	}
	return fmt.Sprintf("max error %.2g from rounding the weights; %s", r.Weights, native)
}

// rounding compares the function that was trained with the file that is written.
func rounding(ctx context.Context, eng engine.Compiler, tr *fit.Trainer) (*fitRounding, error) {
	r := &fitRounding{Type: tr.Precision().String()}
	baked, err := tr.Baked()
	if err != nil {
		return nil, err
	}
	function, err := tr.BakedFloat32()
	if err != nil {
		return nil, err
	}
	samples, err := tr.Samples(pretrain.ParityRows)
	if err != nil {
		return nil, err
	}
	want, err := outputsInFloat32(ctx, eng, tr, function, samples)
	if err != nil {
		return nil, err
	}
	rounded, _, err := models.InFloat32(baked)
	if err != nil {
		return nil, err
	}
	got, err := outputsInFloat32(ctx, eng, tr, rounded, samples)
	if err != nil {
		return nil, err
	}
	r.Weights = largestError(want, got)
	if got, err = outputsInFloat32(ctx, eng, tr, baked, samples); err != nil {
		r.Problem = firstLine(err)
		return r, ctx.Err()
	}
	native := largestError(want, got)
	r.Native = finite(native)
	return r, nil
}

// outputsInFloat32 runs a model on samples, which are in the order of the network's inputs, and
// returns the floating-point outputs in float32.
func outputsInFloat32(ctx context.Context, eng engine.Compiler, tr *fit.Trainer, m *onnx.Model, samples []*tensor.Tensor) (_ [][]float32, err error) {
	s, err := eng.Compile(m, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, port := range s.Inputs() {
		for k, name := range tr.Network().Inputs {
			if name != port.Name {
				continue
			}
			if in[i] = samples[k]; port.DType.IsFloat() {
				if in[i], err = tensor.FromFloat32(samples[k], port.DType); err != nil {
					return nil, fmt.Errorf("input %q: %w", name, err)
				}
			}
		}
	}
	out, err := engine.Run(ctx, s, in...)
	if err != nil {
		return nil, err
	}
	var values [][]float32
	for _, t := range out {
		if !t.DType().IsFloat() {
			continue
		}
		x, err := tensor.ToFloat32(t)
		if err != nil {
			return nil, err
		}
		values = append(values, x.Float32s())
	}
	return values, nil
}

// largestError is the largest |Δ| / (1 + |y|); values of equal bits, infinities too, have none.
func largestError(want, got [][]float32) float64 {
	worst := 0.0
	for i, x := range want {
		for k, w := range x {
			if w == got[i][k] {
				continue
			}
			d := math.Abs(float64(w)-float64(got[i][k])) / (1 + math.Abs(float64(w)))
			if math.IsNaN(d) {
				return math.Inf(1)
			}
			worst = max(worst, d)
		}
	}
	return worst
}
