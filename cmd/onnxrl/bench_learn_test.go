package main

import (
	"slices"
	"strings"
	"testing"
)

// TestBenchLearn trains for too short a time to learn anything, on every engine: what is reported, and the exit status of --check, are as they should be.
func TestBenchLearn(t *testing.T) {
	ran := 0
	for _, engine := range testEngines() {
		args := []string{"bench", "learn", "--engine", engine, "--seeds", "4,5", "--set", "train.total_env_steps=320", "--json", "-q"}
		out := succeed(t, args...)
		r := decode[learnReport](t, out)
		if r.Engine != engine || r.Target != learnTarget || len(r.Runs) != 2 || r.Runs[1].Seed != 5 || r.Runs[0].EnvSteps != 320 || r.Runs[0].Optimum < 0.0005 {
			t.Errorf("%+v", r)
		}
		if got, want := keys(t, out), []string{"engine", "missed", "runs", "target"}; !slices.Equal(got, want) {
			t.Errorf("keys %v", got)
		}
		if code := onnxrl(t, append(args, "--check")...).code; (code != 0) != (r.Missed > 0) {
			t.Errorf("exit status %d with %d missed", code, r.Missed)
		}
		ran++
	}
	if ran != len(testEngines()) {
		t.Errorf("%d engines", ran)
	}
	refuse(t, []string{"bench", "learn", "--seeds", "x"}, `--seeds "x"`)
	if r := onnxrl(t, "bench", "learn", "demo", "--engine", "portable", "-q"); r.code != 1 || !strings.Contains(r.err, "bench learn: seed 1") || !strings.Contains(r.err, "not synthetic") {
		t.Errorf("exit status %d, %s", r.code, r.err)
	}
}
