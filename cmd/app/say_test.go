package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// TestInterrupted: what was being done is said, and that it was interrupted.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	if got := errorText(fmt.Errorf("export x: prove parity: %w", context.Canceled)); got != "interrupted: export x: prove parity" {
		t.Errorf("interrupted: %q", got)
	}
	// Work that waits for the network tells of the signal itself.
	if got := errorText(fmt.Errorf("pull: Get x: terminated signal received: %w", context.Canceled)); got != "interrupted: pull: Get x" {
		t.Errorf("interrupted: %q", got)
	}
	if got := errorText(context.Canceled); got != "interrupted" {
		t.Errorf("interrupted: %q", got)
	}
}

// TestStoresAreNamed says which stores there are where the one that is asked for is not, and ends
// quietly where there are none.
func TestStoresAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	err := fmt.Errorf("ls: %w", artifact.ErrNoStore)
	if got := nameStores(err); !errors.Is(got, err) || got.Error() != err.Error() {
		t.Errorf("without stores: %v", got)
	}
	for i := range 5 {
		s, err := artifact.Open(filepath.Join("runs", fmt.Sprint("r", i), "artifacts"), artifact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := "; name one with --store, such as runs/r0/artifacts runs/r1/artifacts runs/r2/artifacts and 2 more"
	if got := nameStores(err); !errors.Is(got, artifact.ErrNoStore) || got.Error() != filepath.FromSlash(err.Error()+want) {
		t.Errorf("%v", got)
	}
	if got := nameStores(os.ErrExist); got != os.ErrExist {
		t.Errorf("another error became %v", got)
	}
}

// Without --store the store of the only run is read, and nothing is written to it; that of one
// among several is not guessed.
func TestStoreOfTheOnlyRun(t *testing.T) {
	model, err := filepath.Abs(digitsModel)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	apptest.Refuse(t, []string{"models", "ls"}, filepath.Join("runs", "artifacts"))
	one := filepath.Join("runs", "one", "artifacts")
	apptest.Succeed(t, "models", "publish", model, "--name", "digits", "--store", one)
	r := apptest.Run(t, "models", "ls")
	apptest.Says(t, r.Out, "digits", "latest")
	apptest.Says(t, r.Err, "store "+one+", of the only run")
	if list := apptest.Decoded[struct{ Store string }](t, apptest.Succeed(t, "models", "ls", "--json")); list.Store != one {
		t.Errorf("read %q", list.Store)
	}
	for _, args := range [][]string{{"models", "show", "digits"}, {"models", "verify", "digits"}, {"models", "verify"}, {"models", "lineage", "digits"}, {"models", "diff", "digits", "digits"}} {
		if out := apptest.Succeed(t, args...); out == "" {
			t.Errorf("%q printed nothing", args)
		}
	}
	apptest.Refuse(t, []string{"models", "gc"}, filepath.Join("runs", "artifacts"), "name one with --store, such as "+one)

	two := filepath.Join("runs", "two", "artifacts")
	apptest.Succeed(t, "models", "publish", model, "--name", "digits", "--store", two)
	for _, args := range [][]string{{"models", "ls"}, {"models", "show", "digits"}, {"models", "verify"}} {
		apptest.Refuse(t, args, "no artefact store", "name one with --store, such as "+one+" "+two)
	}
	// A version that is written without --store is in a store of its own, which is read from then on.
	apptest.Succeed(t, "models", "publish", model, "--name", "other")
	if out := apptest.Succeed(t, "models", "ls"); !strings.Contains(out, "other") || strings.Contains(out, "digits") {
		t.Errorf("ls printed\n%s", out)
	}
}

// TestAFolderIsNoExperiment runs a shipped experiment where a folder has its name.
func TestAFolderIsNoExperiment(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "demo"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	a := &app{kinds: experiment.Kinds{Document: experiment.Document}}
	c, err := a.dataConfig("demo", nil)
	if err != nil || len(c.Assets) != 5 {
		t.Errorf("%v, assets %v", err, c.Assets)
	}
}

// TestStoppedBeforeItBegan tells no one to resume a run that is not there.
func TestStoppedBeforeItBegan(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	a := &app{err: &text}
	if code := exitCode(a.stopped(filepath.Join(t.TempDir(), "run"), "")); code != exitInterrupted || strings.Contains(text.String(), "--resume") {
		t.Errorf("status %d, %q", code, text.String())
	}
}
