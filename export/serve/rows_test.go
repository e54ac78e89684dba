package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// centred gives y = x − mean over the batch for x [batch, 2], and, chosen, only which of the two is
// the larger one.
func centred(chosen bool) *onnx.Model {
	b := onnx.NewBuilder("centred", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Float32, onnx.Known(2)))
	y := b.Op("Sub", []onnx.Value{x, b.Op("ReduceMean", []onnx.Value{x, b.Ints(0)})})
	if chosen {
		b.Output(b.Rename(b.Op("ArgMax", []onnx.Value{y}, onnx.AttrInt("axis", 1)), "y"), batchOf(tensor.Int64, onnx.Known(1)))
	} else {
		b.Output(b.Rename(y, "y"), batchOf(tensor.Float32, onnx.Known(2)))
	}
	return built(b)
}

// mixed is recurrent, and what a sequence gives depends on the others in its run: y = s' = s + x −
// mean over the batch of x.
func mixed() *onnx.Model {
	b := onnx.NewBuilder("mixed", onnx.DefaultOpset)
	one := batchOf(tensor.Float32, onnx.Known(1))
	x, s := b.Input("x", one), b.Input("s", one)
	sum := b.Op("Add", []onnx.Value{s, b.Op("Sub", []onnx.Value{x, b.Op("ReduceMean", []onnx.Value{x, b.Ints(0)})})})
	b.Output(b.Rename(sum, "y"), one)
	b.Output(b.Rename(sum, "s_next"), one)
	m := built(b)
	m.MetadataProps = append(m.MetadataProps, &onnx.MetadataProp{Key: StateKey, Value: `[{"input": "s", "output": "s_next", "shape": [1], "initial": [100]}]`})
	return m
}

// masked gives scores with −Inf where x is negative, in batches that are independent.
func masked() *onnx.Model {
	b := onnx.NewBuilder("masked", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Float32, onnx.Known(2)))
	low := b.Op("Log", []onnx.Value{b.Op("Relu", []onnx.Value{x})})
	b.Output(b.Rename(low, "y"), batchOf(tensor.Float32, onnx.Known(2)))
	return built(b)
}

// TestOnlyIndependentRowsShareARun asks a busy server for rows: they run as one where they are
// independent, and otherwise one by one, in sequences and in the shadow too.
func TestOnlyIndependentRowsShareARun(t *testing.T) {
	sequence := func(k int) *Request { return step("m", fmt.Sprint(k), float32(k), true, false) }
	plain := func(k int) *Request { return ask("m", float32(k), 1) }
	shadowed := Config{MaxBatch: 8, Policy: VersionPolicy{All: true}, Routes: []Route{{"1", 1}}, Shadows: []Shadow{{Version: "2"}}}
	cases := []struct {
		name    string
		listing Listing
		request func(k int) *Request
		together,
		says bool
	}{
		{"independent", one("m", Config{}, scale(2)), plain, true, false},
		{"independent with infinities", one("m", Config{}, masked()), plain, true, false},
		{"independent steps", one("m", Config{}, counter(2)), sequence, true, false},
		{"a mean over the batch", one("m", Config{}, centred(false)), plain, false, true},
		{"a mean over the batch with a batch size", one("m", Config{MaxBatch: 8}, centred(false)), plain, false, true},
		{"a choice by a mean over the batch", one("m", Config{}, centred(true)), plain, false, true},
		{"steps that depend on each other", one("m", Config{}, mixed()), sequence, false, true},
		{"off", one("m", Config{NoBatchAxis: true}, scale(2)), plain, false, false},
		{"a version of two", one("m", Config{Policy: VersionPolicy{All: true}, Routes: []Route{{"1", 1}}}, centred(false), scale(2)), plain, false, true},
		{"the version in the shadow", one("m", shadowed, scale(2), centred(false)), func(k int) *Request {
			r := plain(k)
			r.Version = "2"
			return r
		}, false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var notes []string
			s, _, p := start(t, Options{Log: func(st ModelStatus) {
				mu.Lock()
				defer mu.Unlock()
				notes = append(notes, st.Reason)
			}}, c.listing)
			want := make([]Response, 5)
			for k := range want {
				if err := s.Infer(t.Context(), c.request(k), &want[k]); err != nil {
					t.Fatal(err)
				}
			}
			h := hold(p)
			v, err := s.model("m").table.Load().pick(s.model("m"), c.request(0))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]Response, 5)
			done := make(chan error, len(got))
			for k := range got {
				go func() { done <- s.Infer(context.Background(), c.request(k), &got[k]) }()
				until(t, "the request runs or queues", func() bool {
					v.queue.mu.Lock()
					defer v.queue.mu.Unlock()
					return len(h.seen()) > 0 && v.queue.waiting == k
				})
			}
			close(h.go_)
			for range got {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			for k := range got {
				if a, b := want[k].Outputs[0].Value, got[k].Outputs[0].Value; agree(b, a, 0) != nil {
					t.Errorf("request %d: %v beside others, %v alone", k, b, a)
				}
			}
			if runs := h.seen(); c.together != (len(runs) == 2) || !c.together && len(runs) < len(got) {
				t.Errorf("runs of %v rows", runs)
			}
			mu.Lock()
			defer mu.Unlock()
			if told := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "requests run one by one, batching is off") }); told != c.says {
				t.Errorf("log %q", notes)
			}
		})
	}
}

// TestModelsThatMixRows: max_batch_size 0 in a repository turns batching off, and a sequence along
// the first axis is no batch. Side by side, 64 requests are answered as they are one by one.
func TestModelsThatMixRows(t *testing.T) {
	for _, e := range testengines.All(t) {
		lstm, err := onnx.Load("testdata/lstm_time_first.onnx")
		if err != nil {
			t.Fatal(err)
		}
		repository, err := NewRepository("testdata/repo_max_batch_0").Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Compiler: e}, &shelf{list: append(repository, one("lstm", Config{}, lstm))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Metadata("batchmean_cfg0", ""); err != nil || m.MaxBatch != 0 {
			t.Errorf("max_batch_size %d, %v", m.MaxBatch, err)
		}
		for name, shape := range sorted.All(map[string][]int{"lstm": {3, 1, 2}, "batchmean_cfg0": {1, 2}}) {
			request := func(k int) *Request {
				x := tensor.New(tensor.Float32, shape...)
				for i := range x.Float32s() {
					x.Float32s()[i] = float32((7*k+5*i)%9 - 4)
				}
				return &Request{Model: name, Inputs: []Tensor{{"x", x}}}
			}
			var want [64]Response
			for k := range want {
				if err := s.Infer(t.Context(), request(k), &want[k]); err != nil {
					t.Fatal(err)
				}
			}
			var all sync.WaitGroup
			for k := range want {
				all.Go(func() {
					for range 20 {
						var got Response
						if err := s.Infer(context.Background(), request(k), &got); err != nil {
							t.Error(err)
						} else if err := agree(got.Outputs[0].Value, want[k].Outputs[0].Value, 1e-6); err != nil {
							t.Errorf("%s on %s, request %d: %v", name, e.Name(), k, err)
						}
					}
				})
			}
			all.Wait()
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestContradictionIsSaid loads a model that declares another type for an inner value than its nodes
// give: it serves, and the log says so.
func TestContradictionIsSaid(t *testing.T) {
	m := scale(2)
	inner := m.Graph.Node[0].Output[0]
	m.Graph.Node = append(m.Graph.Node, &onnx.Node{OpType: "Identity", Input: []string{inner}, Output: []string{"passed"}})
	m.Graph.Output = append(m.Graph.Output, &onnx.ValueInfo{Name: "passed", Type: m.Graph.Output[0].Type})
	m.Graph.Output = m.Graph.Output[len(m.Graph.Output)-1:]
	m.Graph.ValueInfo = []*onnx.ValueInfo{onnx.NewValueInfo(onnx.Value(inner), onnx.TypeOf(tensor.Int64, 9))}
	var mu sync.Mutex
	var notes []string
	start(t, Options{Log: func(st ModelStatus) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, st.Reason)
	}}, one("m", Config{}, m))
	mu.Lock()
	defer mu.Unlock()
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "is declared int64[9], but inferred") }) {
		t.Errorf("notes %q", notes)
	}
}
