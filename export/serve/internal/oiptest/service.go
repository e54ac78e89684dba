// Package oiptest has a service that needs no engine, for tests of wire formats and of clients:
// what it answers is known from the request, and every class of error has a model that gives it.
//
// # How to add a model
//
// A case in [Service.Infer], and its description in models.
package oiptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Service has these models:
//
//	add      sum = a + b and diff = a − b of FP32 [-1 2]; versions 1 and 2, and prod, which stands for 1
//	one      y = x, FP32 [-1 3]
//	echo     whatever comes in, under the same names
//	seq      y = the number of the request within its sequence
//	broken   fails with Internal, full with Overloaded, loading with NotReady
//	slow     answers when the request's context ends
//	panic    panics
type Service struct {
	// NotReady makes the server not ready.
	NotReady bool

	mu     sync.Mutex
	steps  map[string]int32
	loaded []string
	// Slow gets a value when a request of slow begins.
	Slow chan struct{}
}

var models = []serve.Metadata{
	{Name: "add", Version: "2", Versions: []string{"1", "2"}, MaxBatch: 8,
		Inputs:  []serve.Port{{Name: "a", DType: tensor.Float32, Shape: []int{-1, 2}}, {Name: "b", DType: tensor.Float32, Shape: []int{-1, 2}}},
		Outputs: []serve.Port{{Name: "sum", DType: tensor.Float32, Shape: []int{-1, 2}}, {Name: "diff", DType: tensor.Float32, Shape: []int{-1, 2}}}},
	{Name: "one", Version: "1", Versions: []string{"1"}, Inputs: []serve.Port{{Name: "x", DType: tensor.Float32, Shape: []int{-1, 3}}}, Outputs: []serve.Port{{Name: "y", DType: tensor.Float32, Shape: []int{-1, 3}}}},
	{Name: "echo", Version: "1", Versions: []string{"1"}},
	{Name: "seq", Version: "1", Versions: []string{"1"}, Inputs: []serve.Port{{Name: "x", DType: tensor.Float32, Shape: []int{-1, 3}}, {Name: "h", DType: tensor.Float32, Shape: []int{-1, 4}, Implicit: true}}, Outputs: []serve.Port{{Name: "y", DType: tensor.Int32, Shape: []int{1}}}},
	{Name: "broken", Version: "1"}, {Name: "full", Version: "1"}, {Name: "loading", Version: "1"}, {Name: "drifted", Version: "1"}, {Name: "slow", Version: "1"}, {Name: "panic", Version: "1"},
}

// fail makes an error about a model.
func fail(c serve.Code, model, text string) error {
	return &serve.Error{Code: c, Model: model, Err: errors.New(text)}
}

func find(model, version string) (serve.Metadata, error) {
	i := slices.IndexFunc(models, func(m serve.Metadata) bool { return m.Name == model })
	if i < 0 {
		return serve.Metadata{}, &serve.Error{Code: serve.NotFound, Err: serve.UnknownModel(model)}
	}
	m := models[i]
	switch {
	case version == "prod" && model == "add":
		m.Version = "1"
	case version != "":
		if !slices.Contains(m.Versions, version) {
			return m, fail(serve.NotFound, model, fmt.Sprintf("unknown version %q", version))
		}
		m.Version = version
	}
	return m, nil
}

// Infer implements serve.Service.
func (s *Service) Infer(ctx context.Context, req *serve.Request, resp *serve.Response) error {
	m, err := find(req.Model, req.Version)
	if err != nil {
		return err
	}
	resp.ID, resp.Model, resp.Version, resp.Outputs = req.ID, m.Name, m.Version, nil
	switch req.Model {
	case "add":
		return add(req, resp)
	case "one":
		if len(req.Inputs) != 1 || req.Inputs[0].Name != "x" {
			return fail(serve.InvalidArgument, "one", `input "x" is missing`)
		}
		resp.Outputs = []serve.Tensor{{Name: "y", Value: req.Inputs[0].Value.Clone()}}
	case "echo":
		for _, in := range req.Inputs {
			resp.Outputs = append(resp.Outputs, serve.Tensor{Name: in.Name, Value: in.Value.Clone()})
		}
	case "seq":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.steps == nil {
			s.steps = map[string]int32{}
		}
		if req.Sequence.Start {
			s.steps[req.Sequence.ID] = 0
		}
		s.steps[req.Sequence.ID]++
		resp.Outputs = []serve.Tensor{{Name: "y", Value: tensor.Of([]int32{s.steps[req.Sequence.ID]}, 1)}}
		if req.Sequence.End {
			delete(s.steps, req.Sequence.ID)
		}
	case "broken":
		return fail(serve.Internal, "broken", "run: it is broken")
	case "full":
		return fail(serve.Overloaded, "full", "the queue is full: 1024 requests wait")
	case "loading":
		return fail(serve.NotReady, "loading", "it is loading")
	case "drifted":
		return fail(serve.Drifted, "drifted", "observations have drifted")
	case "slow":
		if s.Slow != nil {
			s.Slow <- struct{}{}
		}
		<-ctx.Done()
		return &serve.Error{Code: serve.CodeOf(ctx.Err()), Model: "slow", Err: ctx.Err()}
	case "panic":
		panic("the model panics")
	}
	return nil
}

func add(req *serve.Request, resp *serve.Response) error {
	var a, b *tensor.Tensor
	for _, in := range req.Inputs {
		switch in.Name {
		case "a":
			a = in.Value
		case "b":
			b = in.Value
		default:
			return fail(serve.InvalidArgument, "add", fmt.Sprintf("unknown input %q", in.Name))
		}
	}
	if a == nil || b == nil || a.DType() != tensor.Float32 || !slices.Equal(a.Shape(), b.Shape()) || a.DType() != b.DType() {
		return fail(serve.InvalidArgument, "add", "expected a and b, float32[-1 2]")
	}
	wanted := req.Outputs
	if len(wanted) == 0 {
		wanted = []string{"sum", "diff"}
	}
	for _, name := range wanted {
		sign := float32(1)
		if name == "diff" {
			sign = -1
		} else if name != "sum" {
			return fail(serve.InvalidArgument, "add", fmt.Sprintf("unknown output %q", name))
		}
		out := tensor.New(tensor.Float32, a.Shape()...)
		for i := range out.Float32s() {
			out.Float32s()[i] = a.Float32s()[i] + sign*b.Float32s()[i]
		}
		resp.Outputs = append(resp.Outputs, serve.Tensor{Name: name, Value: out})
	}
	return nil
}

// Live implements serve.Service.
func (s *Service) Live() bool { return true }

// AbandonedLoads implements serve.Service.
func (s *Service) AbandonedLoads() int { return 0 }

// Crashes implements serve.Service.
func (s *Service) Crashes() int { return 0 }

// Ready implements serve.Service.
func (s *Service) Ready() bool { return !s.NotReady }

// ModelReady implements serve.Service.
func (s *Service) ModelReady(model, version string) error {
	if model == "loading" {
		return fail(serve.NotReady, "loading", "it is loading")
	}
	_, err := find(model, version)
	return err
}

// Metadata implements serve.Service.
func (s *Service) Metadata(model, version string) (serve.Metadata, error) {
	return find(model, version)
}

// Config implements serve.Service.
func (s *Service) Config(model, version string) (serve.Config, error) {
	_, err := find(model, version)
	c := serve.Config{Instances: 2, Batching: serve.Batching{MaxDelay: 100 * time.Microsecond, Preferred: []int{4}}}
	if model == "seq" {
		c.Sequences.Direct = true
		c.State = []serve.StatePort{{Input: "h", Output: "h_next", Shape: []int{4}}}
		c.Controls = []serve.ControlInput{{Input: "start", Kind: serve.SequenceStart, DType: tensor.Int32, True: 1}, {Input: "id", Kind: serve.SequenceID, DType: tensor.Uint64}}
	}
	return c, err
}

// Index implements serve.Service.
func (s *Service) Index(ready bool) []serve.ModelStatus {
	list := []serve.ModelStatus{{Name: "add", Version: "1", State: serve.Ready}, {Name: "add", Version: "2", State: serve.Ready, Default: true}}
	if !ready {
		list = append(list, serve.ModelStatus{Name: "bad", Version: "1", State: serve.Unavailable, Reason: "golden output differs"})
	}
	return list
}

// Statistics implements serve.Service.
func (s *Service) Statistics(model, version string) ([]serve.Statistics, error) {
	if model != "" {
		if _, err := find(model, version); err != nil {
			return nil, err
		}
	}
	d := serve.Durations{Count: 3, Total: 3 * time.Millisecond}
	return []serve.Statistics{{Model: "add", Version: "1", Success: d, Infer: d, Inferences: 5, Executions: 3, LastInference: time.UnixMilli(1700000000000), Batches: []serve.BatchStatistics{{Rows: 2, Infer: d}}}}, nil
}

// Load implements serve.Service; it remembers what it was asked for.
func (s *Service) Load(_ context.Context, model string, o serve.LoadOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if model == "fixed" {
		return &serve.Error{Code: serve.Unsupported, Err: errors.New("the server does not load models on request")}
	}
	files := 0
	for _, b := range o.Files {
		files += len(b)
	}
	s.loaded = append(s.loaded, fmt.Sprintf("load %s %s %d", model, o.Config, files))
	return nil
}

// Unload implements serve.Service.
func (s *Service) Unload(_ context.Context, model string) error {
	if _, err := find(model, ""); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = append(s.loaded, "unload "+model)
	return nil
}

// Loaded returns the loads and unloads so far.
func (s *Service) Loaded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.loaded)
}

// Golden implements serve.Service.
func (s *Service) Golden(model, version string) (*artifact.Golden, error) { return nil, nil }
