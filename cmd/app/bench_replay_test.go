package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/replay/flight/flighttest"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// TestBenchReplay runs every row for a moment; it looks at the form and at the allocations, never
// at the speed.
func TestBenchReplay(t *testing.T) {
	var out, errs bytes.Buffer
	if code := execute(t.Context(), kinds.All(), []string{"bench", "replay", "--json", "--rounds", "2", "--round", "1ms", "--large", "20000"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var r benchmark.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	pushes, samples := 0, 0
	for _, row := range r.Rows {
		switch {
		case row.Value <= 0:
			t.Errorf("row %+v", row)
		case row.Name == "push/shared-concurrent":
		case row.Allocs == nil || *row.Allocs != 0:
			t.Errorf("%s allocates: %+v", row.Name, row)
		}
		if strings.HasPrefix(row.Name, "push/") && row.Unit == "transitions/s" {
			pushes++
		}
		if strings.HasPrefix(row.Name, "sample/") && row.Unit == "µs" && row.Against == "bare loop" && row.Ratio > 0 {
			samples++
		}
	}
	if pushes != 7 || samples != 8 {
		t.Errorf("%d rows of recording and %d of sampling", pushes, samples)
	}
	if code := execute(t.Context(), kinds.All(), []string{"bench", "replay", "--batch", "0"}, nil, &out, &errs); code == 0 {
		t.Error("a batch of nothing is accepted")
	}
}

// TestBenchReplayServed measures tables of a server for a moment, in memory and on disk.
func TestBenchReplayServed(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		benchServed(t, "", "push/uniform push/uniform-1 push/uniform-3 sample/uniform-1 sample/uniform-3 push/prioritised push/prioritised-1 push/prioritised-3 sample/prioritised-1 sample/prioritised-3")
	})
	t.Run("disk", func(t *testing.T) {
		benchServed(t, t.TempDir(), "push/uniform push/uniform-1 push/uniform-3 pause/uniform sample/uniform-1 sample/uniform-3 push/prioritised push/prioritised-1 push/prioritised-3 pause/prioritised sample/prioritised-1 sample/prioritised-3")
	})
}

func benchServed(t *testing.T, dir, want string) {
	t.Helper()
	tables := map[string]flight.TableConfig{}
	for _, selector := range []string{flight.Uniform, flight.Prioritised} {
		var c flight.TableConfig
		c.SetDefaults()
		c.Selector, c.Capacity = selector, 4000
		tables[selector] = c
	}
	server := flighttest.Open(t, dir, tables)
	url, _ := flighttest.Serve(t, server, "127.0.0.1:0")
	var out, errs bytes.Buffer
	args := []string{"bench", "replay", "--json", "--url", url, "--tables", "uniform,prioritised", "--clients", "1,3", "--transitions", "2000", "--rounds", "2", "--round", "1ms"}
	if code := execute(t.Context(), kinds.All(), args, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var r benchmark.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range r.Rows {
		names = append(names, row.Name)
		unit := "transitions/s"
		if strings.HasPrefix(row.Name, "pause/") {
			unit = "ms"
		}
		if row.Value <= 0 || row.Unit != unit {
			t.Errorf("row %+v", row)
		}
	}
	if strings.Join(names, " ") != want {
		t.Errorf("rows %v, expected %s", names, want)
	}
	for _, s := range server.Tables() {
		if s.Inserts < 2000 {
			t.Errorf("table %s has had %d transitions, expected at least 2000", s.Table, s.Inserts)
		}
	}
}
