package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/servebench"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestBenchServe runs every row for a moment, the neighbour that trains included; it looks at the
// form, never at the speed.
func TestBenchServe(t *testing.T) {
	brief := []string{"bench", "serve", "-q", "--json", "--engine", portable.Name, "--rounds", "1", "--round", "20ms", "--concurrency", "1,2", "--requests", "100", "--reloads", "10", "--swap-every", "5ms", "--neighbour-nice", "0"}
	out := succeed(t, brief...)
	if got, want := keys(t, out), []string{"loads", "machine", "missed", "rows"}; !slices.Equal(got, want) {
		t.Errorf("keys %v", got)
	}
	r := decode[servebench.Report](t, out)
	if len(r.Loads) != 8 || len(r.Rows) != 11 || r.Machine.CPU == "" {
		t.Errorf("%d loads and %d rows", len(r.Loads), len(r.Rows))
	}
	if got := strings.Fields(succeed(t, "bench", "serve", "--list")); !slices.Equal(got, servebench.Names()) {
		t.Errorf("rows %q", got)
	}
	text := succeed(t, "bench", "serve", "-q", "--engine", portable.Name, "--rounds", "1", "--round", "20ms", "json")
	if !strings.Contains(text, "json/codec") || strings.Contains(text, "swap/p99") {
		t.Errorf("one row:\n%s", text)
	}
	// A target that no server reaches.
	server := startBenchServer(t)
	args := []string{"bench", "serve", "-q", "--json", "--url", server, "--against", server, "--rounds", "1", "--round", "20ms", "--concurrency", "1", "--transports", "http-binary", "--at-least", "1000"}
	if missed := decode[servebench.Report](t, succeed(t, args...)); missed.Missed != 1 || len(missed.Rows) != 1 || len(missed.Loads) != 2 {
		t.Errorf("%+v", missed)
	}
	if code := onnxrl(t, append(args, "--check")...).code; code != 1 {
		t.Errorf("--check: exit status %d", code)
	}
	refuse(t, []string{"bench", "serve", "nothing"}, `no benchmark is called "nothing"`)
	refuse(t, []string{"bench", "serve", "--against", server}, "--against needs --url")
}

func TestBenchServeSoak(t *testing.T) {
	r := decode[servebench.SoakReport](t, succeed(t, "bench", "serve", "-q", "--json", "--engine", portable.Name, "--soak", "500ms", "--swap-every", "10ms"))
	if len(r.Problems) != 0 || len(r.Good) != 4 || len(r.Bad) != 34 || r.Swaps == 0 {
		t.Errorf("%+v", r)
	}
	rpc := 0
	for kind, n := range sorted.All(r.Bad) {
		if strings.HasPrefix(kind, "grpc ") && n > 0 {
			rpc++
		}
	}
	for _, kind := range []string{"wrong raw sizes", "lying shapes", "huge shapes", "unknown model", "large messages", "cancelled calls", "deadlines", "timeouts", "disconnects", "half-open", "garbage", "broken frames", "bad streams", "noise"} {
		if r.Bad["grpc "+kind] == 0 {
			t.Errorf("gRPC: no %s", kind)
		}
	}
	if rpc != 20 {
		t.Errorf("%d kinds of bad traffic over gRPC", rpc)
	}
}
