package app

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// rebased has the factors of rows multiplied, from a day on, as a vendor's are after a split.
func rebased(t *testing.T, text, from string, by float64) string {
	t.Helper()
	var b strings.Builder
	for i, line := range strings.SplitAfter(text, "\n") {
		at := strings.LastIndexByte(line, ',')
		switch {
		case i == 0:
			b.WriteString(line)
		case line != "" && line >= from:
			factor, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s,%v\n", line[:at], factor*by)
		}
	}
	return b.String()
}

// TestDataLiveAnchored: an agent whose prices are anchored at the first day trades as in a back-test,
// whatever the vendor has made of its factors since, as long as the bars have that day. Later bars
// are anchored as those it learnt from; where their factors are others, it is said and refused.
func TestDataLiveAnchored(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run := apptest.Trained(t, "demo", slices.Concat(shortDemo, []string{"--set", "env.data.source.anchor=first"})...)
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(run, publish.StoreDir), "--engine", portable.Name), "8 decisions", "ok")
	text := demoBars(t, "")
	live := func(rows string, more ...string) []string {
		return append([]string{"data", "live", run, "--engine", portable.Name, "--from", "2012-12-03", "--set", "env.data.source.adjust=factor", "--bars", apptest.Write(t, "bars.csv", rows)}, more...)
	}
	want := apptest.Succeed(t, live(text)...)
	apptest.Says(t, apptest.Run(t, live(text)...).Err, "anchored at the first row of each")
	if got := apptest.Succeed(t, live(rebased(t, text, "", 0.5))...); got != want {
		t.Error("where the vendor has halved all factors the decisions are others")
	}
	late := rebased(t, text, "2009-01-01", 1)
	apptest.Succeed(t, live(late)...)
	apptest.Refuse(t, live(rebased(t, text, "2009-01-01", 0.5)), "source.anchor: symbol AAPL", "the source has changed those of the past")
	// So it is with rows that arrive.
	for _, x := range []struct{ rows, refused string }{{text, ""}, {rebased(t, text, "", 0.5), ""}, {rebased(t, text, "2009-01-01", 0.5), "the source has changed those of the past"}} {
		args := live(x.rows)
		args[len(args)-1] = "-"
		var out, errs bytes.Buffer
		code := execute(t.Context(), kinds.All(), args, strings.NewReader(x.rows), &out, &errs)
		if x.refused == "" && (code != 0 || out.String() != want) || x.refused != "" && (code == 0 || !strings.Contains(errs.String(), x.refused)) {
			t.Errorf("status %d, expected %q:\n%s", code, x.refused, errs.String())
		}
	}
}
