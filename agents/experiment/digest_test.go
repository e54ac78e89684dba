package experiment_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/configs"
)

// TestDigestBelow: files below the root are called by their place in it, wherever that lies; others
// by their paths.
func TestDigestBelow(t *testing.T) {
	digest := func(path, root string) string {
		doc, err := configs.Parse("x", []byte("env: {kind: corridor}\nagent: {kind: bc}\ndataset: {path: '"+path+"'}\n"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := kinds.All().Decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		d, err := experiment.Digest(c, root)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	here := digest("/a/one/samples", "/a/one")
	if there := digest("/b/two/samples", "/b/two"); there != here {
		t.Error("it depends on the root's place")
	}
	for i, other := range []string{digest("/a/one/others", "/a/one"), digest("/b/samples", "/a/one"), digest("/a/one/samples", ""), digest("/a/onemore/samples", "/a/one")} {
		if other == here {
			t.Errorf("case %d has the same digest", i)
		}
	}
}
