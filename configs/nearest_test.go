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
	if DidYouMean("x", nil) != "" {
		t.Error("something is near where there is nothing")
	}
}
