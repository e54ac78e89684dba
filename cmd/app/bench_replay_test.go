package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
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
