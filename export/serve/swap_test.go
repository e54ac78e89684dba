package serve

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestSwapsUnderLoad(t *testing.T) { testSwaps(t, 300) }

// TestManySwapsUnderLoad is TestSwapsUnderLoad with more swaps.
func TestManySwapsUnderLoad(t *testing.T) {
	longtest.Nightly(t)
	testSwaps(t, 2000)
}

// testSwaps replaces versions so often under load.
func testSwaps(t *testing.T, swaps int) {
	models := make([]Candidate, 8)
	for i := range models {
		models[i] = candidate(strconv.Itoa(i+1), scale(float32(i+1)), golden(float32(i+1)))
	}
	listing := func(i int) Listing {
		l := Listing{Name: "m", Config: Config{Instances: 1 + i%3/2, Policy: VersionPolicy{All: true}}, Aliases: map[string]string{}}
		l.Versions = []Candidate{models[i%8], models[(i+3)%8]}
		if i%8 > (i+3)%8 {
			l.Versions[0], l.Versions[1] = l.Versions[1], l.Versions[0]
		}
		l.Aliases["prod"] = l.Versions[i%2].Name
		return l
	}
	s, src, p := start(t, Options{}, listing(0))
	var answered, called atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			ctx := context.Background()
			if g%2 == 0 {
				ctx = t.Context()
			}
			var resp Response
			for i := 0; !stop.Load(); i++ {
				req := ask("m", float32(i%100), 1, 2, float32(g))
				if i%2 == 0 {
					req.Version = "prod"
				}
				if err := s.Infer(ctx, req, &resp); err != nil {
					t.Error(err)
					return
				}
				k := resp.Outputs[1].Value.Float32s()[0]
				y := resp.Outputs[0].Value.Float32s()
				if strconv.Itoa(int(k)) != resp.Version || resp.Outputs[1].Value.Float32s()[1] != k || y[0] != k*float32(i%100) || y[3] != k*float32(g) {
					t.Errorf("a mixture: version %s, factor %v, %v", resp.Version, k, y)
					return
				}
				answered.Add(1)
			}
		})
	}
	for g := range 2 {
		wg.Go(func() {
			c, err := s.Client().Caller("m", []string{"", "prod"}[g], 2)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			x, y, tag := c.Inputs()[0].Value.Float32s(), c.Outputs()[0].Value.Float32s(), c.Outputs()[1].Value.Float32s()
			for i := 0; !stop.Load(); i++ {
				x[0], x[3] = float32(i%100), float32(g+1)
				if err := c.Run(context.Background()); err != nil {
					t.Error(err)
					return
				}
				if k := tag[0]; k == 0 || tag[1] != k || y[0] != k*x[0] || y[3] != k*x[3] {
					t.Errorf("a mixture: factor %v, %v", tag, y)
					return
				}
				called.Add(1)
				runtime.Gosched()
			}
		})
	}
	for i := range swaps {
		src.put(listing(i + 1))
		if err := s.Poll(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.ModelReady("m", ""); err != nil {
			t.Error(err)
		}
	}
	until(t, "enough requests", func() bool { return t.Failed() || answered.Load() > 2000 && called.Load() > 500 })
	stop.Store(true)
	wg.Wait()
	last := listing(swaps)
	until(t, "replaced versions are closed", func() bool { return int(p.sessions.Load()) <= len(last.Versions)*last.Config.Instances })
	t.Logf("%d requests and %d calls during %d swaps", answered.Load(), called.Load(), swaps)
	if n := len(s.Index(false)); n != 2 {
		t.Errorf("%d versions in the index: %+v", n, s.Index(false))
	}
}

func TestCallersFollowTheirModel(t *testing.T) {
	s, src, p := start(t, Options{}, one("m", Config{NonFinite: RejectNonFinite}, scale(2)), one("c", Config{}, counter(1)), one("w", Config{}, wide()))
	client := s.Client()
	c, err := client.Caller("m", "", 3)
	if err != nil {
		t.Fatal(err)
	}
	x := c.Inputs()[0].Value.Float32s()
	for i := range x {
		x[i] = 1
	}
	run := func(want float32, version string) {
		t.Helper()
		if err := c.Run(t.Context()); err != nil || c.Outputs()[0].Value.Float32s()[5] != want || c.Version() != version {
			t.Errorf("%v, version %s: %v", err, c.Version(), c.Outputs()[0].Value.Float32s())
		}
	}
	run(2, "1")
	src.put(one("m", Config{NonFinite: RejectNonFinite}, scale(2), scale(5)))
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "an idle caller lets go of the old version", func() bool { return p.sessions.Load() == 3 })
	run(5, "2")
	x[0] /= 0 * x[1]
	wantCode(t, c.Run(t.Context()), InvalidArgument)
	x[0] = 1
	src.put(one("m", Config{}, scale(2), scale(5), wide()))
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, c.Run(t.Context()), InvalidArgument)
	src.put(one("m", Config{}, scale(2), scale(5), wide(), counter(1)))
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, c.Run(t.Context()), InvalidArgument)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantCode(t, c.Run(t.Context()), NotReady)
	for _, bad := range []struct {
		name, version string
		rows          int
		code          Code
	}{{"none", "", 1, NotFound}, {"c", "7", 1, NotFound}, {"c", "", 0, InvalidArgument}, {"c", "", 1 << 20, InvalidArgument}, {"w", "", 1, InvalidArgument}} {
		_, err := client.Caller(bad.name, bad.version, bad.rows)
		wantCode(t, err, bad.code)
	}
	// State is the caller's.
	c, err = client.Caller("c", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Inputs()[0].Value.Float32s()[0] = 1
	for range 5 {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Inputs()[1].Value.CopyFrom(c.Outputs()[1].Value); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Outputs()[0].Value.Float32s()[0]; got != 5 {
		t.Errorf("%v after five steps", got)
	}
	var resp Response
	if err := client.Infer(t.Context(), step("c", "1", 1, true, true), &resp); err != nil || resp.y() != 101 {
		t.Error(err, resp)
	}
	// The caller is left open: closing the server lets go of it.
}

func TestACallAllocatesNothing(t *testing.T) {
	for _, e := range testengines.All(t) {
		s, err := New(Options{Compiler: e}, &shelf{list: []Listing{one("m", Config{}, scale(2))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, err := s.Client().Caller("m", "", 4)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if n := testing.AllocsPerRun(500, func() {
			if err := c.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", e.Name(), n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCode(t, c.Run(ctx), NotReady)
	}
}

func TestCloseFinishesWhatIsUnderWay(t *testing.T) {
	s, err := New(Options{Compiler: portable.New()}, &shelf{list: []Listing{one("m", Config{}, scale(2))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var ok, refused atomic.Int64
	for range 8 {
		wg.Go(func() {
			resp := Response{Outputs: []Tensor{{"y", tensor.New(tensor.Float32, 1, 2)}}}
			for {
				err := s.Infer(t.Context(), ask("m", 1, 2), &resp)
				if err != nil {
					if CodeOf(err) != NotReady {
						t.Error(err)
					}
					refused.Add(1)
					return
				}
				ok.Add(1)
			}
		})
	}
	until(t, "load", func() bool { return ok.Load() > 100 })
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if refused.Load() != 8 || s.Ready() || len(s.Index(false)) != 0 {
		t.Errorf("%d of 8 were refused; %+v", refused.Load(), s.Index(false))
	}
	wantCode(t, s.Poll(t.Context()), NotReady)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
