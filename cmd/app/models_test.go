package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
)

const digitsModel = "../../configs/experiments/digits/cnn.onnx"

// A model is published, found, given an alias, published again as the child of itself, verified on
// both engines, damaged and found damaged.
func TestModelsFromPublicationToDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "deep", "store")
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("notes"), 0o666); err != nil {
		t.Fatal(err)
	}
	base := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--golden", "--bind", "batch=4", "--metric", "valid/accuracy=0.5", "--alias", "first", "--store", store, "--json"))
	if base.Name != "digits/cnn" || !slices.Equal(base.Aliases, []string{"first", "latest"}) || base.Published == nil || base.Manifest.Golden.Rows != 4 || base.Manifest.Inputs[0].Name != "image" {
		t.Errorf("published %+v", base)
	}
	apptest.Says(t, apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--parent", "digits/cnn:first", "--file", "doc/notes="+notes, "--kind", "encoder", "--description", "a child", "--store", store),
		"digits/cnn@sha256:", " is latest (")
	out := apptest.Succeed(t, "models", "ls", "--store", store)
	apptest.Says(t, out, "name", "aliases", "first", "latest", "encoder", artifact.Short(base.Digest))
	if strings.Count(out, "\n") != 3 {
		t.Errorf("ls printed\n%s", out)
	}
	list := apptest.Decoded[struct {
		Store    string
		Versions []versionDoc
	}](t, apptest.Succeed(t, "models", "ls", "digits/cnn", "--store", store, "--json"))
	if list.Store != store || len(list.Versions) != 2 || list.Versions[0].Digest != base.Digest || !slices.Equal(list.Versions[1].Aliases, []string{"latest"}) {
		t.Fatalf("ls %+v", list)
	}
	child := list.Versions[1]
	out = apptest.Succeed(t, "models", "show", store+"//digits/cnn")
	apptest.Says(t, out, child.Digest, "image float32[batch 1 8 8]", "logits float32[batch 10]", "ai.onnx 17", "parent", base.Digest, "a child", "doc/notes", "encoder")
	if d := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "show", artifact.Short(child.Digest), "--store", store, "--json")); d.Ref != "digits/cnn@"+child.Digest || len(d.Files) != 2 || d.Files[1].Title != "doc/notes" {
		t.Errorf("show %+v", d)
	}
	out = apptest.Succeed(t, "models", "lineage", "digits/cnn", "--store", store)
	apptest.Says(t, out, "made from", "  digits/cnn@"+artifact.Short(base.Digest))
	line := apptest.Decoded[struct{ Lineage []ancestorDoc }](t, apptest.Succeed(t, "models", "lineage", "digits/cnn", "--store", store, "--json"))
	if len(line.Lineage) != 2 || line.Lineage[1].Depth != 1 || line.Lineage[1].Version.Digest != base.Digest {
		t.Errorf("lineage %+v", line)
	}

	apptest.Says(t, apptest.Succeed(t, "models", "alias", "digits/cnn", "prod", "--store", store), "digits/cnn:prod is digits/cnn@"+artifact.Short(child.Digest)+" (it was not set)")
	apptest.Says(t, apptest.Succeed(t, "models", "alias", "digits/cnn:first", "prod", "--store", store), "(it was "+artifact.Short(child.Digest)+")")
	if d := apptest.Decoded[versionDoc](t, apptest.Succeed(t, "models", "show", "digits/cnn:prod", "--store", store, "--json")); d.Digest != base.Digest {
		t.Errorf("prod is %s", d.Ref)
	}

	verified := 0
	for _, engine := range apptest.Engines() {
		apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", store, "--engine", engine), "golden values", "40", "ok")
		got := apptest.Decoded[struct{ Versions []verifiedDoc }](t, apptest.Succeed(t, "models", "verify", "digits/cnn:prod", "--store", store, "--engine", engine, "--json"))
		if len(got.Versions) != 1 || !got.Versions[0].OK || got.Versions[0].Golden != 40 || got.Versions[0].Files != 4 || got.Versions[0].Worst == nil {
			t.Errorf("%s: %+v", engine, got)
		}
		verified++
	}
	if verified != len(apptest.Engines()) {
		t.Errorf("verified on %d engines", verified)
	}

	// The store may also be named by the environment.
	cmd := apptest.Program(t, "models", "ls")
	cmd.Env = append(cmd.Env, storeVariable+"="+store)
	if text, err := cmd.Output(); err != nil || !strings.Contains(string(text), "digits/cnn") {
		t.Errorf("%v\n%s", err, text)
	}

	blob := filepath.Join(store, "blobs", "sha256", strings.TrimPrefix(child.Files[1].Digest, "sha256:"))
	if err := os.WriteFile(blob, []byte("NOTES"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := apptest.Run(t, "models", "verify", "--files-only", "--store", store)
	if r.Code != 1 {
		t.Errorf("exit status %d", r.Code)
	}
	apptest.Says(t, r.Out, "ok", `file "doc/notes": blob `+child.Files[1].Digest+" is damaged", "has digest sha256:")
	apptest.Says(t, r.Err, "1 of 2 versions failed")
	got := apptest.Run(t, "models", "verify", "--files-only", "--store", store, "--json")
	if docs := apptest.Decoded[struct{ Versions []verifiedDoc }](t, got.Out).Versions; got.Code != 1 || len(docs) != 2 || !docs[0].OK || docs[1].OK || !strings.Contains(docs[1].Error, "is damaged") {
		t.Errorf("exit status %d, %+v", got.Code, docs)
	}
	if err := os.WriteFile(filepath.Join(store, "blobs", "sha256", strings.TrimPrefix(child.Digest, "sha256:")), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r = apptest.Run(t, "models", "ls", "--store", store)
	if r.Code != 1 {
		t.Errorf("exit status %d", r.Code)
	}
	apptest.Says(t, r.Out, artifact.Short(base.Digest))
	apptest.Says(t, r.Err, "list artefacts in", "is damaged")
	// A store whose list cannot be read is not called empty.
	if err := os.Truncate(filepath.Join(store, "index.json"), 20); err != nil {
		t.Fatal(err)
	}
	if r = apptest.Run(t, "models", "ls", "--store", store); r.Code != 1 || r.Out != "" {
		t.Errorf("exit status %d, %q", r.Code, r.Out)
	}
}
