//go:build !race

package serve

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The race detector makes pools forget, so allocations are counted without it only.
func TestARequestOnReusedMemoryAllocatesNothing(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", Config{}, scale(2)), one("checked", Config{NonFinite: RejectNonFinite}, scale(2)), one("c", Config{}, counter(1)), one("t", toldConfig(tensor.Int64), told(tensor.Int64)), one("drift", Config{Drift: Drift{Limit: 100, Window: 100}}, published(scale(2))))
	var resp Response
	for _, sequential := range []string{"c", "t"} {
		if err := s.Infer(t.Context(), step(sequential, "1", 1, true, false), &resp); err != nil {
			t.Fatal(err)
		}
	}
	for _, req := range []*Request{ask("m", 3, 4, 5, 6), ask("checked", 3, 4, 5, 6), ask("drift", 3, 4, 5, 6), step("c", "1", 1, false, false), step("t", "1", 1, false, false)} {
		var resp Response
		for _, ctx := range []context.Context{context.Background(), t.Context()} { // one that cannot end and one that can
			for range 10 { // until the run is known to be brief
				if err := s.Infer(ctx, req, &resp); err != nil {
					t.Fatal(err)
				}
			}
			if n := testing.AllocsPerRun(200, func() {
				if err := s.Infer(ctx, req, &resp); err != nil {
					t.Fatal(err)
				}
			}); n > 0 {
				t.Errorf("%s: %v allocations", req.Model, n)
			}
		}
	}
}
