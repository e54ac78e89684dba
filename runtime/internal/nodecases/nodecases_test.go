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

// foreignCases is how many node cases onnx 1.23.2 makes.
const foreignCases = 1884

func TestPortable(t *testing.T) {
	e := portable.New()
	defer e.Close()
	own(t, e)
	foreign(t, e, 1580)
}

// foreign runs ONNX's cases which pass or are on the engine's list.
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
	exceptions(t, e.Name(), rs)
}

// exceptions compares the outcomes with the list of the cases that the engine need not pass.
func exceptions(t *testing.T, name string, rs []nodecases.Result) {
	path := filepath.Join("testdata", "exceptions_"+name+".txt")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := nodecases.ReadExceptions(f)
	f.Close()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if *update {
		var b bytes.Buffer
		if err := nodecases.WriteExceptions(&b, name, rs, listed); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	worse, other := nodecases.Changes(rs, listed)
	for _, l := range worse {
		t.Errorf("does not pass and is not on the list: %s", l)
	}
	for _, l := range other {
		t.Errorf("changed, run with -update when this is meant: %s", l)
	}
}

// ownCases is how many cases of our own are committed, generated ones, and reportedCases how many
// were found by chance, with the results of the specification's reference implementation.
const (
	ownCases      = 251
	reportedCases = 2
)

// own runs the committed cases; every engine passes them all.
func own(t *testing.T, e engine.Compiler) {
	cases, err := nodecases.Open(filepath.Join("testdata", "own.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	reported, err := nodecases.Open(filepath.Join("testdata", "reported"))
	if err != nil {
		t.Fatal(err)
	}
	cases = append(cases, reported...)
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
	if len(rs) != ownCases+reportedCases {
		t.Errorf("%d own cases run, expected %d", len(rs), ownCases+reportedCases)
	}
}
