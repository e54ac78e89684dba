package bake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"onnxrl/models"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// MetaPrefix begins the metadata keys that describe where a baked model comes from.
const MetaPrefix = "onnxrl."

// Write proves parity and writes the baked model to path, atomically, with lineage as metadata properties below MetaPrefix. When parity fails nothing is written.
func Write(ctx context.Context, path string, c engine.Compiler, net *models.Network, params *models.Params, baked *onnx.Model, samples []*tensor.Tensor, lineage map[string]string) (Report, error) {
	r, err := Prove(ctx, c, net, params, baked, samples)
	if err != nil {
		return r, fmt.Errorf("write %s: %w", path, err)
	}
	m := baked.ShallowClone()
	for _, k := range slices.Sorted(maps.Keys(lineage)) {
		m.SetMeta(MetaPrefix+k, lineage[k])
	}
	m.SetMeta(MetaPrefix+"parity", fmt.Sprintf("max error %.3g over %d values of %d rows", r.MaxError, r.Values, r.Rows))
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		return r, err
	}
	return r, nil
}
