package app

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// madeIn publishes a version of data into a store, and returns its digest.
func madeIn(t *testing.T, dir, name string, parents ...string) string {
	t.Helper()
	s, err := artifact.Open(dir, artifact.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := s.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "data", Parents: parents}, Data: true, Files: []artifact.NewFile{{Title: "a", Data: []byte(name)}}})
	if err != nil {
		t.Fatal(err)
	}
	return v.Digest
}

// TestModelsOfASearch: the members of a search and what is made of them have a store each, and
// lineage, push and gc know all of them, and none of the runs beside.
func TestModelsOfASearch(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	document := func(path ...string) string {
		path = append([]string{runs}, path...)
		file := filepath.Join(path...)
		for _, err := range []error{os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(filepath.Dir(file), "artifacts")
	}
	document("pop", "population.yaml")
	document("pop", "experts", "evolution.yaml")
	first := madeIn(t, document("pop", "experts", "generation-0001", "member-000", "config.yaml"), "expert")
	at := document("pop", "experts", "generation-0001", "member-001", "config.yaml")
	second := madeIn(t, at, "other", first)
	beside := madeIn(t, document("beside", "config.yaml"), "beside")
	whole := document("pop", "router", "generation-0001", "member-000", "whole", "config.yaml")
	document("pop", "router", "generation-0001", "member-000", "config.yaml")
	document("pop", "router", "evolution.yaml")
	madeIn(t, whole, "whole", second, first, beside)

	type ancestors struct{ Lineage []ancestorDoc }
	line := apptest.Decode[ancestors](t, apptest.Succeed(t, "models", "lineage", "whole", "--store", whole, "--json")).Lineage
	if len(line) != 4 || line[1].Store != at || line[2].Version == nil || line[2].Version.Name != "expert" || line[3].Digest != beside || line[3].Version != nil {
		t.Errorf("lineage: %+v", line)
	}
	if out := apptest.Succeed(t, "models", "lineage", whole+"//whole"); !strings.Contains(out, "not in these stores") || !strings.Contains(out, at) {
		t.Error(out)
	}
	storage := (&url.URL{Scheme: "file", Path: filepath.Join(runs, "storage")}).String()
	if d := apptest.Decode[transferDoc](t, apptest.Succeed(t, "models", "push", "whole:latest", storage, "--lineage", "--store", whole, "--json", "-q")); d.Versions != 3 {
		t.Errorf("push: %d versions", d.Versions)
	}
	to := filepath.Join(runs, "pulled")
	apptest.Succeed(t, "models", "pull", storage+"#latest", "--lineage", "--store", to, "-q")
	if line := apptest.Decode[ancestors](t, apptest.Succeed(t, "models", "lineage", "whole", "--store", to, "--json")).Lineage; len(line) != 4 || line[2].Store != to {
		t.Errorf("lineage where it was pulled: %+v", line)
	}
	apptest.Succeed(t, "models", "alias", "--delete", "other", "latest", "--store", at)
	if c := apptest.Decode[collectedDoc](t, apptest.Succeed(t, "models", "gc", "--grace", "0s", "--store", at, "--json")); c.Kept != 1 || len(c.Removed) != 0 {
		t.Errorf("gc removes what the whole was made from: %+v", c)
	}
}
