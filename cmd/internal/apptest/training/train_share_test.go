package training

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// Runs that share a store find each other's policies there, and so does lineage; collecting garbage
// keeps the last one of each run.
func TestRunsShareAStore(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	run := agentYAML(t, "{kind: timecnn, d_model: 8, n_layers: 1}")
	first, second := filepath.Join(dir, "first run"), filepath.Join(dir, "second")
	apptest.Succeed(t, "train", run, "--out", first, "--store", store, "-q")
	parent := find(t, store+"//agent:first-run")
	if own := find(t, filepath.Join(first, publish.StoreDir)+"//agent:"+publish.BestAlias); own.Digest != parent.Digest || !slices.Equal(parent.Aliases, []string{"first-run", "latest"}) || parent.Published.IsZero() {
		t.Errorf("%s with %v is shared, %s is the run's", parent, parent.Aliases, own)
	}
	apptest.Succeed(t, "train", run, "--out", second, "--store", store, "--init", "agent:first-run", "--seeds", "4,5", "-q")
	for _, alias := range []string{"second-seed-4", "second-seed-5"} {
		child := find(t, store+"//agent:"+alias)
		if !slices.Equal(child.Manifest.Parents, []string{parent.Digest}) {
			t.Errorf("%s: parents %v, expected %s", alias, child.Manifest.Parents, parent.Digest)
		}
		line := apptest.Decoded[struct{ Lineage []ancestor }](t, apptest.Succeed(t, "models", "lineage", "agent:"+alias, "--store", store, "--json")).Lineage
		if len(line) != 2 || line[1].Version == nil || line[1].Digest != parent.Digest {
			t.Errorf("%s: lineage %+v", alias, line)
		}
	}
	apptest.Succeed(t, "models", "alias", "--delete", "agent", "first-run", "--store", store)
	if c := apptest.Decoded[struct{ Removed []digested }](t, apptest.Succeed(t, "models", "gc", "--grace", "0s", "--json", "--store", store)); slices.ContainsFunc(c.Removed, func(v digested) bool { return v.Digest == parent.Digest }) {
		t.Error("the ancestor of two runs was removed")
	}
	find(t, store+"//agent@"+parent.Digest)
	apptest.Succeed(t, "models", "verify", "--store", store)

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"train", run, "--out", filepath.Join(dir, "third"), "--store", file, "-q"}, "share in "+file+": open artefact store "+file)
	if _, err := artifact.Open(filepath.Join(dir, "third", publish.StoreDir), artifact.Options{MustExist: true}); err == nil {
		t.Error("a run began that cannot publish")
	}
}
