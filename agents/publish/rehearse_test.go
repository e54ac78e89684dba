package publish

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestRehearsalFindsWhatRefusesAPublication does all of a publication but writing, before a run is
// trained.
func TestRehearsalFindsWhatRefusesAPublication(t *testing.T) {
	c := document(t, "env: {kind: corridor, cells: 5}")
	f := &breaking{Factory: open(t, c)}
	e, pol := testengines.Fastest(t), policy(t, f)
	dir := t.TempDir()
	untouched := func() {
		t.Helper()
		if _, err := os.Stat(filepath.Join(dir, BestFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a rehearsal has written %s: %v", BestFile, err)
		}
	}
	p := publisher(t, c, f, e, dir)
	if err := p.Rehearse(t.Context(), pol); err != nil {
		t.Fatal(err)
	}
	untouched()
	if list, err := p.store.List(); err != nil || len(list) > 0 {
		t.Errorf("a rehearsal has published %v, %v", list, err)
	}
	// An environment that fails may have recovered by the end of the training.
	f.before = func() error { return errors.New("the wheel has come off") }
	if err := p.Rehearse(t.Context(), pol); err != nil {
		t.Error(err)
	}
	f.before = nil
	p.o.Parents = []string{"sha256:short"}
	if err := p.Rehearse(t.Context(), pol); err == nil || !strings.Contains(err.Error(), "it is not trained") || !strings.Contains(err.Error(), "parent: digest") {
		t.Errorf("error %v", err)
	}
	p.o.Parents = nil
	// A network that cannot be made a model of.
	odd := *pol.Network
	odd.Inputs = append([]string{"moon"}, odd.Inputs...)
	pol.Network = &odd
	if err := p.Rehearse(t.Context(), pol); err == nil || !strings.Contains(err.Error(), "it is not trained") {
		t.Errorf("error %v", err)
	}
	untouched()
}
