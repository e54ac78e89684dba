package serve

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestRoutes(t *testing.T) {
	config := Config{Policy: VersionPolicy{All: true}, Routes: []Route{{"1", 3}, {"canary", 1}}}
	l := one("m", config, scale(1), scale(2), scale(3))
	l.Aliases = map[string]string{"canary": "2"}
	s, src, _ := start(t, Options{}, l)
	byID := map[string]string{}
	for _, with := range []string{"id", "sequence", "neither"} {
		counts := map[string]int{}
		for i := range 4000 {
			req := ask("m", 1, 1)
			switch with {
			case "id":
				req.ID = fmt.Sprint(i)
			case "sequence":
				req.Sequence.ID = fmt.Sprint(i)
			}
			var resp Response
			if err := s.Infer(context.Background(), req, &resp); err != nil {
				t.Fatal(err)
			}
			counts[resp.Version]++
			if with != "neither" {
				if before, ok := byID[fmt.Sprint(i)]; ok && before != resp.Version {
					t.Fatalf("%s %d went to %s and to %s", with, i, before, resp.Version)
				}
				byID[fmt.Sprint(i)] = resp.Version
			}
		}
		if share := float64(counts["2"]) / 4000; math.Abs(share-0.25) > 0.03 || counts["1"]+counts["2"] != 4000 {
			t.Errorf("%s: %v, expected a quarter on version 2", with, counts)
		}
	}
	// A version that is named is not routed; a route to a version that is not there is reported and
	// left out.
	req := ask("m", 1, 1)
	req.Version = "3"
	var resp Response
	if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Version != "3" {
		t.Error(resp.Version, err)
	}
	config.Routes = []Route{{"1", 1}, {"9", 1000}}
	l = one("m", config, scale(1), scale(2))
	l.Stamp = "other routes"
	src.put(l)
	wantCode(t, s.Poll(t.Context()), NotFound)
	for range 50 {
		if err := s.Infer(t.Context(), ask("m", 1, 1), &resp); err != nil || resp.Version != "1" {
			t.Error(resp.Version, err)
		}
	}
}

// choice gives action = x > bound as int64 [batch, 2], and y = x.
func choice(bound float32) *onnx.Model {
	b := onnx.NewBuilder("choice", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Float32, onnx.Known(2)))
	greater := b.Op("Greater", []onnx.Value{x, b.Float(bound)})
	b.Output(b.Rename(b.Op("Cast", []onnx.Value{greater}, onnx.AttrInt("to", int(tensor.Int64))), "chosen"), batchOf(tensor.Int64, onnx.Known(2)))
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, b.Float(bound)}), "y"), batchOf(tensor.Float32, onnx.Known(2)))
	return built(b)
}

func TestShadows(t *testing.T) {
	config := Config{Policy: VersionPolicy{All: true}, Routes: []Route{{"1", 1}}, Shadows: []Shadow{{Version: "2"}, {Version: "3", Share: 0.5}}}
	s, src, p := start(t, Options{}, one("m", config, choice(0), choice(0.5), choice(0)))
	compared := func() (c [2]Comparison, sum uint64) {
		st, err := s.Statistics("m", "1")
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range st[0].Shadows {
			if want := fmt.Sprint(2 + i); x.Shadow != want {
				t.Errorf("shadow %q, expected %q", x.Shadow, want)
			}
			c[i] = x
			sum += x.Compared + x.Dropped + x.Failed
		}
		return c, sum
	}
	half := uint64(0)
	for i := range 200 {
		half += uint64(btoi(spread(uint64(i+1)) < 0.5))
		var resp Response
		if err := s.Infer(t.Context(), ask("m", 1, 1, 0.25, -1, -1, 0.75), &resp); err != nil || resp.Version != "1" {
			t.Fatal(err)
		}
		until(t, "the shadows have run", func() bool { _, n := compared(); return n == uint64(i+1)+half })
	}
	if half < 98 || half > 102 {
		t.Errorf("%d of 200 in one half", half)
	}
	c, _ := compared()
	if x := c[0]; x.Compared != 200 || x.Rows != 600 || x.DifferentActions != 200 || x.MaxDelta != 0.5 || x.ShadowInfer <= 0 || x.PrimaryInfer <= 0 {
		t.Errorf("%+v", x)
	}
	if x := c[1]; x.Compared != half || x.DifferentActions != 0 || x.MaxDelta != 0 {
		t.Errorf("%+v", x)
	}
	if st, _ := s.Statistics("m", "2"); st[0].Success.Count != 0 || st[0].Executions != 200 {
		t.Errorf("%+v", st[0])
	}
	// A shadow that is stuck keeps nobody, and copies that find no place are dropped.
	stuck := make(chan struct{})
	p.onRun(func(_ context.Context, in []*tensor.Tensor) error {
		if in[0].Float32s()[0] == 7 {
			return nil
		}
		<-stuck
		return nil
	})
	v2 := s.model("m").table.Load().versions[1]
	i := v2.queue.free[0]
	v2.queue.mu.Lock()
	v2.queue.free = nil // as if it were busy
	v2.queue.mu.Unlock()
	for range 3 * maxShadowJobs {
		if err := s.Infer(context.Background(), ask("m", 7, 1), &Response{}); err != nil {
			t.Fatal(err)
		}
	}
	if c, _ := compared(); c[0].Dropped < maxShadowJobs/2 {
		t.Errorf("%d were dropped", c[0].Dropped)
	}
	close(stuck)
	if v2.queue.next(i) {
		i.work <- struct{}{}
	}
	l := one("m", Config{Policy: VersionPolicy{All: true}}, choice(0), choice(0.5))
	l.Stamp = "no shadows"
	src.put(l)
	if err := s.Poll(t.Context()); err != nil {
		t.Error(err)
	}
	if s.model("m").shadow.jobs != nil {
		t.Error("the shadows go on")
	}
}

func TestComparisonsOfTensors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for i, c := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 2}, []float32{1, 2.5}, 0.5},
		{[]float32{nan, inf}, []float32{nan, inf}, 0},
		{[]float32{nan}, []float32{1}, math.Inf(1)},
		{[]float32{inf}, []float32{-inf}, math.Inf(1)},
	} {
		if got := maxDelta(c.a, c.b); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
	for i, c := range []struct {
		a, b *tensor.Tensor
		ok   bool
	}{
		{tensor.Of([]float32{1, nan}, 2), tensor.Of([]float32{1 + 1e-6, nan}, 2), true},
		{tensor.Of([]float32{1}, 1), tensor.Of([]float32{1.01}, 1), false},
		{tensor.Of([]float32{nan}, 1), tensor.Of([]float32{1}, 1), false},
		{tensor.Of([]float64{1}, 1), tensor.Of([]float64{2}, 1), false},
		{tensor.Of([]int64{1}, 1), tensor.Of([]int64{1}, 1), true},
		{tensor.Of([]int64{1}, 1), tensor.Of([]int64{2}, 1), false},
		{tensor.Of([]int64{1}, 1), tensor.Of([]int32{1}, 1), false},
		{tensor.OfStrings([]string{"a"}, 1), tensor.OfStrings([]string{"b"}, 1), false},
		{tensor.OfStrings([]string{"a"}, 1), tensor.OfStrings([]string{"a"}, 1), true},
	} {
		if got := agree(c.a, c.b, 1e-4) == nil; got != c.ok {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
