package artifact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestData: a version without a model is listed, verified, compared, copied with its parents and
// taken out again as any other; asking for its model is an error.
func TestData(t *testing.T) {
	s, to := open(t, t.TempDir(), Options{}), open(t, t.TempDir(), Options{})
	policy := publish(t, s, draft("policy", 1))
	data := func(text string, parents ...string) Draft {
		return Draft{Manifest: Manifest{Name: "transitions", Kind: "replay", Parents: parents}, Data: true, Files: []NewFile{{Title: "rows/a.bin", Data: []byte(text)}}}
	}
	one := publish(t, s, data("first", policy.Digest))
	two := publish(t, s, data("second", one.Digest))
	if again := publish(t, s, data("first", policy.Digest)); again.Digest != one.Digest || one.HasModel() || !policy.HasModel() || one.ModelFile() != "" {
		t.Errorf("%s and %s, %v", again.Digest, one.Digest, one.HasModel())
	}
	v, err := to.CopyFrom(t.Context(), s, two.Digest, PullOptions{Lineage: true, Aliases: []string{"kept"}})
	if err != nil || v.Digest != two.Digest {
		t.Fatalf("%v, %v", v, err)
	}
	line, err := to.Lineage("transitions:kept")
	if err != nil || len(line) != 3 || line[1].Version == nil || line[2].Digest != policy.Digest {
		t.Errorf("%+v, %v", line, err)
	}
	if n := verifyAll(t, to.Dir()); n != 3 {
		t.Errorf("%d versions", n)
	}
	dir := t.TempDir()
	model, err := v.Extract(t.Context(), dir)
	if text, _ := os.ReadFile(filepath.Join(dir, "rows", "a.bin")); err != nil || model != "" || string(text) != "second" {
		t.Errorf("%q, %q, %v", text, model, err)
	}
	if d, err := Diff(one, two); err != nil || d.Empty() || len(d.Files) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := Diff(v, two); err != nil || !d.Empty() {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := v.Model(); err == nil || !strings.Contains(err.Error(), "the version is data") {
		t.Errorf("a model of data: %v", err)
	}
}
