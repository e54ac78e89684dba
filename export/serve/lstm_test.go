package serve

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	lstmIn, lstmHidden = 3, 5
	lstmState          = `[{"input":"h","output":"h_next","shape":[5],"initial":[0]},{"input":"c","output":"c_next","shape":[5],"initial":[0.25]}]`
)

// lstm is a recurrent policy: y [batch, 2] of x [batch, 3], with an LSTM's hidden and cell state
// beside it, drawn from a seed.
func lstm(seed uint64) *onnx.Model {
	b, s := onnx.NewBuilder("lstm", onnx.DefaultOpset), rng.New(seed).Stream()
	drawn := func(shape ...int) onnx.Value {
		t := tensor.New(tensor.Float32, shape...)
		s.FillUniform32(t.Float32s(), -1, 1)
		return b.Const(t)
	}
	state := batchOf(tensor.Float32, onnx.Known(lstmHidden))
	x, h, c := b.Input("x", batchOf(tensor.Float32, onnx.Known(lstmIn))), b.Input("h", state), b.Input("c", state)
	first := b.Ints(0)
	up := func(v onnx.Value) onnx.Value { return b.Op("Unsqueeze", []onnx.Value{v, first}) }
	down := func(v onnx.Value) onnx.Value { return b.Op("Squeeze", []onnx.Value{v, first}) }
	out := b.OpN("LSTM", "", 3, []onnx.Value{up(x), drawn(1, 4*lstmHidden, lstmIn), drawn(1, 4*lstmHidden, lstmHidden), drawn(1, 8*lstmHidden), "", up(h), up(c)}, onnx.AttrInt("hidden_size", lstmHidden))
	next := b.Rename(down(out[1]), "h_next")
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{next, drawn(lstmHidden, 2)}), "y"), batchOf(tensor.Float32, onnx.Known(2)))
	b.Output(next, state)
	b.Output(b.Rename(down(out[2]), "c_next"), state)
	m := built(b)
	m.MetadataProps = append(m.MetadataProps, &onnx.MetadataProp{Key: StateKey, Value: lstmState})
	return m
}

// alone answers an episode step by step with a batch of one and the state carried by hand.
func alone(t *testing.T, e engine.Compiler, m *onnx.Model, xs [][]float32) (ys [][]float32) {
	t.Helper()
	s, err := e.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, c := tensor.New(tensor.Float32, 1, lstmHidden), tensor.New(tensor.Float32, 1, lstmHidden)
	for i := range c.Float32s() {
		c.Float32s()[i] = 0.25
	}
	for _, x := range xs {
		out := make([]*tensor.Tensor, 3)
		if err := s.Run(t.Context(), out, []*tensor.Tensor{tensor.Of(x, 1, lstmIn), h, c}); err != nil {
			t.Fatal(err)
		}
		ys = append(ys, out[0].Float32s())
		h, c = out[1], out[2]
	}
	return ys
}

// Whole episodes of a recurrent policy, many at once, over swaps of the version, give what each of
// them gives by itself.
func TestEpisodesOfARecurrentPolicy(t *testing.T) {
	const episodes, length = 16, 25
	for _, e := range testengines.All(t) {
		t.Run(e.Name(), func(t *testing.T) {
			defer e.Close()
			models := []*onnx.Model{lstm(1), lstm(2)}
			xs := make([][][]float32, episodes)
			want := make([][2][][]float32, episodes)
			s := rng.New(3).Stream()
			for k := range xs {
				for range length {
					x := make([]float32, lstmIn)
					s.FillUniform32(x, -2, 2)
					xs[k] = append(xs[k], x)
				}
				want[k] = [2][][]float32{alone(t, e, models[0], xs[k]), alone(t, e, models[1], xs[k])}
			}
			src := &shelf{list: []Listing{one("p", Config{Sequences: Sequences{Max: episodes, Idle: time.Hour}}, models[:1]...)}}
			srv, err := New(Options{Compiler: e}, src)
			if err != nil {
				t.Fatal(err)
			}
			if err := srv.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			on := map[string]int{}
			half := make(chan struct{})
			var begun sync.WaitGroup
			begun.Add(episodes / 2)
			for k := range episodes {
				wg.Go(func() {
					if k >= episodes/2 {
						<-half // on the version after the swap
					}
					for i, x := range xs[k] {
						var resp Response
						req := &Request{Model: "p", Inputs: []Tensor{{"x", tensor.Of(x, 1, lstmIn)}}, Sequence: Sequence{ID: fmt.Sprint(k), Start: i == 0, End: i == length-1}}
						if err := srv.Infer(context.Background(), req, &resp); err != nil {
							t.Error(err)
							return
						}
						if i == 0 && k < episodes/2 {
							begun.Done()
							<-half
						}
						version := 0
						if resp.Version == "2" {
							version = 1
						}
						if len(resp.Outputs) != 1 || version != k/(episodes/2) {
							t.Errorf("episode %d step %d: version %s, %d outputs", k, i, resp.Version, len(resp.Outputs))
							return
						}
						for j, y := range resp.Outputs[0].Value.Float32s() {
							if w := want[k][version][i][j]; !(math.Abs(float64(y-w)) <= 1e-5*(1+math.Abs(float64(w)))) {
								t.Errorf("episode %d step %d on version %s: %v, expected %v", k, i, resp.Version, y, w)
								return
							}
						}
						mu.Lock()
						on[resp.Version]++
						mu.Unlock()
					}
				})
			}
			begun.Wait()
			src.put(one("p", Config{Sequences: Sequences{Max: episodes, Idle: time.Hour}}, models...))
			if err := srv.Poll(t.Context()); err != nil {
				t.Error(err)
			}
			close(half)
			wg.Wait()
			if on["1"] != episodes/2*length || on["2"] != episodes/2*length {
				t.Errorf("steps by version: %v", on)
			}
			stats, err := srv.Statistics("p", "2")
			if err != nil || stats[0].Sequences != 0 {
				t.Errorf("%+v %v", stats, err)
			}
			if err := srv.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
