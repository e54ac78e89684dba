package app

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	actorflight "github.com/onnxrl/onnxrl/agents/actors/flight"
	replayflight "github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// limits are the bounds on what clients send, under the heading of their server in docs/limits.md
// and the name of what sets them there: bytes and numbers as int64, times as time.Duration.
func limits() map[string]map[string]any {
	d := serveDefaults()
	return map[string]map[string]any{
		"`onnxrl serve`": {
			"--max-body":                   int64(d.MaxBody),
			"--max-queue":                  int64(serve.DefaultMaxQueue),
			"httpapi.DefaultMaxBuffered":   int64(httpapi.DefaultMaxBuffered),
			"httpapi.DefaultMaxHeader":     int64(httpapi.DefaultMaxHeader),
			"httpapi.DefaultMaxConcurrent": int64(httpapi.DefaultMaxConcurrent),
			"httpapi.MaxStreams":           int64(httpapi.MaxStreams),
			"grpcapi.MaxHeader":            int64(grpcapi.MaxHeader),
			"grpcapi.MaxStreams":           int64(grpcapi.MaxStreams),
			"grpcapi.DefaultMaxConcurrent": int64(grpcapi.DefaultMaxConcurrent),
			"serve.MaxName":                int64(serve.MaxName),
			"serve.MaxPorts":               int64(serve.MaxPorts),
			"serve.MaxRank":                int64(serve.MaxRank),
			"serve.MaxStrings":             int64(serve.MaxStrings),
			"serve.MaxRows":                int64(serve.MaxRows),
			"serve.DefaultMaxSequences":    int64(serve.DefaultMaxSequences),
			"serve.DefaultIdle":            serve.DefaultIdle,
			"oip.MaxDepth":                 int64(oip.MaxDepth),
		},
		"`onnxrl replay serve`": {
			"flightrpc.MaxMessage": int64(flightrpc.MaxMessage),
			"flightrpc.MaxHeaders": int64(flightrpc.MaxHeaders),
			"flightrpc.MaxStreams": int64(flightrpc.MaxStreams),
			"flight.MaxJSON":       int64(replayflight.MaxJSON),
			"flight.MaxKeys":       int64(replayflight.MaxKeys),
			"flight.MaxSchema":     int64(replayflight.MaxSchema),
			"flight.MaxColumns":    int64(replayflight.MaxColumns),
			"flight.MaxRow":        int64(replayflight.MaxRow),
			"flight.MaxName":       int64(replayflight.MaxName),
			"flight.MaxEnvs":       int64(replayflight.MaxEnvs),
			"flight.MaxWriters":    int64(replayflight.MaxWriters),
			"flight.MaxSteps":      int64(replayflight.MaxSteps),
			"flight.MaxItems":      int64(replayflight.MaxItems),
			"flight.MaxSample":     int64(replayflight.MaxSample),
		},
		"`onnxrl actor serve`": {
			"flightrpc.MaxMessage": int64(flightrpc.MaxMessage),
			"flightrpc.MaxHeaders": int64(flightrpc.MaxHeaders),
			"flightrpc.MaxStreams": int64(flightrpc.MaxStreams),
			"flight.MaxHello":      int64(actorflight.MaxHello),
			"flight.Part":          int64(actorflight.Part),
		},
	}
}

// bound reads "64 MiB", "4096 bytes", "1024" or "1m0s".
func bound(text string) (any, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	shift, ok := map[string]int{"": 0, "bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
	if err != nil || !ok {
		return nil, fmt.Errorf("%q is no bound, expected a number, with bytes, KiB, MiB or GiB, or a time", text)
	}
	return n << shift, nil
}

// TestLimitsPage walks docs/limits.md: every row has the bound that the program has, and every
// bound has a row.
func TestLimitsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| [^|]+ \\| ([^|]+) \\| `([^`|]+)` \\| [^|]+ \\|$")
	known, heading := limits(), ""
	listed := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "## "); ok {
			heading = rest
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| What |") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d: expected | what | bound | `flag or constant` | what happens |, got %s", i+1, line)
			continue
		}
		want, ok := known[heading][m[2]]
		if !ok {
			t.Errorf("line %d: the test knows no bound %s of %s", i+1, m[2], heading)
			continue
		}
		listed[heading+" "+m[2]] = true
		if got, err := bound(m[1]); err != nil || got != want {
			t.Errorf("line %d: %s is %s, and %v in the program: %v", i+1, m[2], m[1], want, err)
		}
	}
	for heading, bounds := range sorted.All(known) {
		for name := range sorted.All(bounds) {
			if !listed[heading+" "+name] {
				t.Errorf("%s of %s has no row", name, heading)
			}
		}
	}
}
