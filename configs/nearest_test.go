package configs

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"train", "tune", "cartpole_ppo", "cartpole_dqn", "pb2", "pbt"}
	for word, want := range sorted.All(map[string]string{
		"trian": `did you mean "train"?`, "tran": `did you mean "train"?`, "pbb": `did you mean "pb2" or "pbt"?`, "cartpole": `did you mean "cartpole_ppo" or "cartpole_dqn"?`,
		"cartpole_pp": `did you mean "cartpole_ppo"?`, "zebra": "", "": "",
	}) {
		if got := DidYouMean(word, known); got != want {
			t.Errorf("%q: %q, expected %q", word, got, want)
		}
	}
	if got := DidYouMean("run", []string{"run1", "run2", "run3"}); got != `did you mean "run1", "run2" or "run3"?` {
		t.Error(got)
	}
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"trian", known, `did you mean "train"?`},
		{"zebra", known, "expected train, tune, cartpole_ppo, cartpole_dqn, pb2, pbt"},
		{"zebra", append([]string{"ablate"}, known...), "the nearest of 7 are pb2, pbt, ablate"},
		{"zebra", nil, "there are none"},
	} {
		if got := Nearest(c.word, c.known); got != c.want {
			t.Errorf("%q among %q: %q, expected %q", c.word, c.known, got, c.want)
		}
	}
	if DidYouMean("x", nil) != "" {
		t.Error("something is near where there is nothing")
	}
}
