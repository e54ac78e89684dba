package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
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

// TestBenchReplayServed measures tables of a server for a moment.
func TestBenchReplayServed(t *testing.T) {
	tables := map[string]flight.TableConfig{}
	for _, selector := range []string{flight.Uniform, flight.Prioritised} {
		var c flight.TableConfig
		c.SetDefaults()
		c.Selector, c.Capacity = selector, 4000
		tables[selector] = c
	}
	server, err := flight.Open("", tables, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := flightrpc.NewServer(server, nil, nil)
	go g.Serve(l)
	defer func() {
		g.Stop()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out, errs bytes.Buffer
	args := []string{"bench", "replay", "--json", "--url", "grpc://" + l.Addr().String(), "--tables", "uniform,prioritised", "--clients", "1,3", "--transitions", "2000", "--rounds", "2", "--round", "1ms"}
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
		if row.Value <= 0 || row.Unit != "transitions/s" {
			t.Errorf("row %+v", row)
		}
	}
	if want := "push/uniform sample/uniform-1 sample/uniform-3 push/prioritised sample/prioritised-1 sample/prioritised-3"; strings.Join(names, " ") != want {
		t.Errorf("rows %v, expected %s", names, want)
	}
	for _, s := range server.Tables() {
		if s.Inserts != 2000 {
			t.Errorf("table %s has had %d transitions, expected 2000", s.Table, s.Inserts)
		}
	}
}
