package bake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// MetaPrefix begins the metadata keys that describe where a baked model comes from.
const MetaPrefix = "onnxrl."

// Write proves parity and writes the baked model to path, atomically, with lineage as metadata
// properties below MetaPrefix. When parity fails nothing is written.
func Write(ctx context.Context, path string, c engine.Compiler, p Pair, lineage map[string]string) (Report, error) {
	r, err := Prove(ctx, c, p)
	if err != nil {
		return r, fmt.Errorf("write %s: %w", path, err)
	}
	if err := onnx.Save(path, Describe(p.Baked, r, lineage), onnx.SaveOptions{}); err != nil {
		return r, err
	}
	return r, nil
}

// Describe returns the model with the lineage and the result of the comparison as metadata
// properties below MetaPrefix. Weights are shared.
func Describe(baked *onnx.Model, r Report, lineage map[string]string) *onnx.Model {
	m := baked.ShallowClone()
	for _, k := range slices.Sorted(maps.Keys(lineage)) {
		m.SetMeta(MetaPrefix+k, lineage[k])
	}
	parity := fmt.Sprintf("max error %.3g over %d values of %d rows", r.MaxError, r.Values, r.Rows)
	if r.Episodes > 0 {
		parity += fmt.Sprintf("; %d episodes with their memory", r.Episodes)
	}
	if r.Choices > 0 {
		parity += fmt.Sprintf("; %d choices, of which %d nearly tied and %d of these made differently", r.Choices, r.Ties, r.Changed)
	}
	m.SetMeta(MetaPrefix+"parity", parity)
	return m
}
