package app

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestBenchLive has every row of an agent that it makes itself; decisions allocate nothing, and
// memory does not grow.
func TestBenchLive(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	args := []string{"bench", "live", "--engine", portable.Name, "--assets", "3", "--times", "100", "--rate", "1000", "--bars", "3000", "--memory", "10000"}
	// In a process of its own: it counts what that allocates.
	p := apptest.RunProgram(t, append(args, "--json")...)
	if p.Code != 0 {
		t.Fatalf("exit status %d\n%s", p.Code, p.Err)
	}
	r := apptest.Decoded[benchmark.Report](t, p.Out)
	var names []string
	for _, x := range r.Rows {
		names = append(names, x.Name)
		if !(x.Value > 0) {
			t.Errorf("%+v", x)
		}
		if x.Name == "3/decision" && (x.Allocs == nil || *x.Allocs != 0) || x.Name == "3/memory" && !x.Pass {
			t.Errorf("%+v", x)
		}
	}
	want := []string{
		"3/added/p50", "3/added/p99", "3/added/p99.9", "3/policy/p50", "3/whole/p50", "3/whole/p99", "3/late/p99", "3/decode/json", "3/features/json", "3/features/file", "3/decode/protobuf", "3/features/protobuf", "3/decision", "3/memory",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
	for _, k := range []struct{ flag, value, want string }{{"--assets", "0", "expected 1 to 5000"}, {"--bars", "9", "expected at least 1000"}, {"--memory", "9", "expected at least 10000, or 0"}, {"--times", "9", "expected at least 100"}} {
		apptest.Refuse(t, append(args[:len(args):len(args)], k.flag, k.value), k.want)
	}
}
