package opcases

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MinCases is the number of passing cases from which on an operator counts as covered.
const MinCases = 3

// Result is what verifying one operator gave.
type Result struct {
	Op, Domain string
	// Cases and Passed count cases, Comparisons scalar comparisons.
	Cases, Passed, Comparisons int
	// MaxError is the largest relative error among the comparisons.
	MaxError float64
	// Levels counts the cases by the name of the precision reached; cases with stated gradients
	// count as "stated".
	Levels map[string]int
	// Err joins the failures of all cases; each names its case.
	Err error
}

// Covered reports whether the operator counts: enough cases and none failed.
func (r Result) Covered() bool { return r.Err == nil && r.Passed >= MinCases }

// Verify runs the cases that filter accepts (all when nil) on an engine, on all cores, and returns
// one result per operator in the order of [All]. The error is that of ctx; failures of cases are in
// the results.
func Verify(ctx context.Context, c engine.Compiler, filter func(Case) bool) ([]Result, error) {
	var cases []Case
	for _, k := range All() {
		if filter == nil || filter(k) {
			cases = append(cases, k)
		}
	}
	outcomes := make([]outcome, len(cases))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(cases)) {
		wg.Go(func() {
			for i := range next {
				outcomes[i] = cases[i].verify(ctx, c)
			}
		})
	}
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("verify gradients: %w", err)
	}
	return collect(cases, outcomes), nil
}

func collect(cases []Case, outcomes []outcome) []Result {
	var res []Result
	at := map[[2]string]int{}
	for i, k := range cases {
		key := [2]string{k.Domain, k.Op}
		j, ok := at[key]
		if !ok {
			j = len(res)
			at[key] = j
			res = append(res, Result{Op: k.Op, Domain: k.Domain, Levels: map[string]int{}})
		}
		r, o := &res[j], outcomes[i]
		r.Cases++
		r.Comparisons += o.comparisons
		r.MaxError = max(r.MaxError, o.maxError)
		if o.err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("%v: %w", k, o.err))
			continue
		}
		r.Passed++
		r.Levels[o.level]++
	}
	return res
}

type outcome struct {
	comparisons int
	maxError    float64
	level       string
	err         error
}

func (c Case) verify(ctx context.Context, e engine.Compiler) outcome {
	p, err := c.Problem()
	if err != nil {
		return outcome{err: err}
	}
	if c.Want != nil {
		return c.stated(ctx, e, p)
	}
	o := c.Check
	o.Seed = c.seed()
	o.OwnForward = slices.Contains(c.Deviating, e.Name())
	r, err := gradcheck.Check(ctx, e, p, o)
	if err == nil && r.Comparisons == 0 {
		err = errors.New("nothing was compared")
	}
	return outcome{comparisons: r.Comparisons, maxError: r.MaxError, level: r.Level.Name, err: err}
}

// statedTol bounds the error of a float32 gradient against a stated one.
const statedTol = 2e-6

// stated compares the gradient with the one that the case states.
func (c Case) stated(ctx context.Context, e engine.Compiler, p gradcheck.Problem) outcome {
	o := outcome{level: "stated"}
	obj := autodiff.Objective{Wrt: p.Wrt, Losses: []autodiff.Loss{{Value: p.Outputs[0]}}}
	in := map[string]*tensor.Tensor{}
	for k, v := range p.Inputs {
		in[k] = v
	}
	if c.Cot != nil {
		obj.Losses[0].Cotangent = "cot"
	}
	g, err := autodiff.Grad(p.Model, autodiff.Options{Objectives: []autodiff.Objective{obj}})
	if err != nil {
		o.err = err
		return o
	}
	if c.Cot != nil {
		s, _ := g.Env.Type(onnx.Value(p.Outputs[0])).Static()
		t := tensor.New(tensor.Float32, s...)
		for i, v := range c.Cot {
			t.Float32s()[i] = float32(v)
		}
		in["cot"] = t
	}
	out, err := gradcheck.Run(ctx, e, g.Model, in)
	if err != nil {
		o.err = err
		return o
	}
	if len(c.Want) != len(p.Wrt) {
		o.err = fmt.Errorf("the case states %d gradients for %d arguments", len(c.Want), len(p.Wrt))
		return o
	}
	for i, w := range p.Wrt {
		got := out["grad/"+w].Float32s()
		if len(got) != len(c.Want[i]) {
			o.err = fmt.Errorf("the case states %d elements of the gradient of %q, which has %d", len(c.Want[i]), w, len(got))
			return o
		}
		for j, want := range c.Want[i] {
			o.comparisons++
			rel := math.Abs(float64(got[j])-want) / max(1, math.Abs(want))
			if math.IsNaN(rel) {
				rel = math.Inf(1)
			}
			o.maxError = max(o.maxError, rel)
			if rel > statedTol {
				o.err = errors.Join(o.err, fmt.Errorf("gradient of %q element %d is %v, expected %v", w, j, got[j], want))
			}
		}
	}
	return o
}

func outputTypes(m *onnx.Model) (*shape.Env, error) {
	env, err := shape.NewEnv(m, nil)
	if err != nil {
		return nil, err
	}
	for _, n := range m.Graph.Node {
		if err := env.Apply(n); err != nil {
			return nil, err
		}
	}
	return env, nil
}
