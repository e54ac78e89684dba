package nodecases_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/internal/nodecases"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

var update = flag.Bool("update", false, "write the outcome tables")

// foreignCases is how many node cases ONNX v1.22.0's archive holds.
const foreignCases = 1463

func TestPortable(t *testing.T) {
	e := portable.New()
	defer e.Close()
	own(t, e)
	foreign(t, e, 1400)
}

// foreign runs ONNX's cases and compares the outcomes with the recorded ones.
func foreign(t *testing.T, e engine.Compiler, atLeast int) {
	name := os.Getenv(nodecases.EnvCases)
	if name == "" {
		fmt.Printf("%s: 0 of %d foreign cases run (set %s)\n", e.Name(), foreignCases, nodecases.EnvCases)
		return
	}
	cases, err := nodecases.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := nodecases.Run(t.Context(), cases, e, nodecases.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s: %d of %d foreign cases run: %s\n", e.Name(), len(rs), foreignCases, nodecases.Summary(rs))
	if len(rs) != foreignCases {
		t.Errorf("%d cases found, expected %d", len(rs), foreignCases)
	}
	if n := nodecases.Count(rs, nodecases.Pass); n < atLeast {
		t.Errorf("%d cases pass, expected at least %d", n, atLeast)
	}
	golden(t, e.Name(), rs)
}

func golden(t *testing.T, name string, rs []nodecases.Result) {
	path := filepath.Join("testdata", "outcomes_"+name+".txt")
	if *update {
		var b bytes.Buffer
		if err := nodecases.WriteTable(&b, name, rs); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recorded, err := nodecases.ReadTable(f)
	if err != nil {
		t.Fatal(err)
	}
	worse, other := nodecases.Changes(rs, recorded)
	for _, l := range worse {
		t.Errorf("worse than recorded: %s", l)
	}
	for _, l := range other {
		t.Errorf("changed, run with -update when this is meant: %s", l)
	}
}

// ownCases is how many cases of our own are committed.
const ownCases = 251

// own runs the committed cases; every engine passes them all.
func own(t *testing.T, e engine.Compiler) {
	cases, err := nodecases.Open(filepath.Join("testdata", "own.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	// Their expected values are one float32 implementation's, so sums of a hundred terms differ in
	// their last digits.
	rs, err := nodecases.Run(t.Context(), cases, e, nodecases.Options{Tolerance: nodecases.Tolerance{Rel: 1e-4, Abs: 2e-5}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.Outcome != nodecases.Pass {
			t.Errorf("%s: %s: %s", r.Name, r.Outcome, r.Reason)
		}
	}
	if len(rs) != ownCases {
		t.Errorf("%d own cases run, expected %d", len(rs), ownCases)
	}
}
