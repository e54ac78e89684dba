//go:build !race

package serve

import (
	"context"
	"testing"
)

// The race detector makes pools forget, so allocations are counted without it only.
func TestARequestOnReusedMemoryAllocatesNothing(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", Config{}, scale(2)), one("c", Config{}, counter(1)))
	var resp Response
	if err := s.Infer(t.Context(), step("c", "1", 1, true, false), &resp); err != nil {
		t.Fatal(err)
	}
	for _, req := range []*Request{ask("m", 3, 4, 5, 6), step("c", "1", 1, false, false)} {
		var resp Response
		if n := testing.AllocsPerRun(200, func() {
			if err := s.Infer(context.Background(), req, &resp); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", req.Model, n)
		}
	}
}
