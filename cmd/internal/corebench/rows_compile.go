package corebench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// compileFixture is the largest model among the PyTorch exports that the gradient tests use.
const compileFixture = "timesblock_fixed_periods"

const compileLimit = 100 * time.Millisecond

// compile measures the time from the bytes of a file to a session that computes gradients of every
// parameter.
func compile(ctx context.Context, b *bench) ([]benchmark.Row, error) {
	file, err := fixtureBytes(compileFixture)
	if err != nil {
		return nil, err
	}
	var ms []float64
	nodes := 0
	for range max(9, b.Rounds) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		s, n, err := importAndDifferentiate(file, b.Engine)
		took := time.Since(start)
		if err != nil {
			return nil, err
		}
		nodes = n
		ms = append(ms, float64(took.Nanoseconds()))
		if err := s.Close(); err != nil {
			return nil, err
		}
	}
	sum := benchmark.Summarize(ms)
	limit := float64(compileLimit.Milliseconds())
	return []benchmark.Row{{
		Name: "compile/" + compileFixture, Measures: "import, differentiate, compile", Value: sum.P50 / 1e6, Against: "limit", Reference: limit, Unit: "ms",
		Ratio: sum.P50 / 1e6 / limit, Target: benchmark.AtMost(1), Samples: sum, Note: fmt.Sprintf("%d nodes; the first time %.1f ms", nodes, sum.Max/1e6),
	}}, nil
}

func importAndDifferentiate(file []byte, c engine.Compiler) (engine.Session, int, error) {
	m, err := onnx.Unmarshal(file)
	if err != nil {
		return nil, 0, err
	}
	net, _, err := models.FromModel(m, models.Options{})
	if err != nil {
		return nil, 0, err
	}
	var wrt []string
	for _, s := range net.Specs {
		wrt = append(wrt, s.Name)
	}
	if len(wrt) == 0 || len(net.Outputs) != 1 {
		return nil, 0, errors.New("expected parameters and one output")
	}
	loss := autodiff.Loss{Value: net.Outputs[0], Cotangent: "cotangent"}
	g, err := autodiff.Grad(net.Model, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{loss}, Wrt: wrt}}})
	if err != nil {
		return nil, 0, err
	}
	s, err := c.Compile(g.Model, engine.Options{})
	return s, len(g.Model.Graph.Node), err
}
