package scml

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// TestFind makes every agent there is, with and without a shield.
func TestFind(t *testing.T) {
	names := Names()
	for _, name := range names {
		k, err := Find(name)
		if err != nil || k.Name != name || k.New(opponents.LoadedDice(0.5)) == nil {
			t.Errorf("%s: %+v %v", name, k, err)
		}
	}
	if len(names) < 12 || !slices.Contains(names, "shielded_penguin") || slices.Contains(names, "shielded_random") {
		t.Errorf("%q", names)
	}
	if _, err := Find("shielded_random"); err == nil || !strings.Contains(err.Error(), "each negotiation by itself") {
		t.Error(err)
	}
	for _, name := range []string{"shielded_", "shielded_nobody", "nobody"} {
		if _, err := Find(name); err == nil {
			t.Errorf("%s was found", name)
		}
	}
	k, err := Find("shielded_penguin")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := k.New(opponents.LoadedDice(0)).(world.Remembering); !ok {
		t.Error("a shielded agent forgets")
	}
}
