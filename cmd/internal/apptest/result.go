package apptest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// RunResult is what a run comes to, but for times: the bytes of every array of its last
// checkpoint, and everything that it measured.
type RunResult struct {
	Arrays  map[string]string `json:"arrays"`
	Metrics []map[string]any  `json:"metrics"`
	Summary map[string]any    `json:"summary"`
}

// ResultOf reads what a finished run came to.
func ResultOf(t *testing.T, run string) RunResult {
	t.Helper()
	g := ArraysOf(t, run)
	ReadJSON(t, filepath.Join(run, "finished.json"), &g.Summary)
	g.Summary = WithoutTimes(g.Summary)
	return g
}

// ArraysOf reads the arrays of a run's last checkpoint, and all that it measured.
func ArraysOf(t *testing.T, run string) RunResult {
	t.Helper()
	checkpoints, err := filepath.Glob(filepath.Join(run, "checkpoints", "ckpt-*"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatalf("no checkpoint in %s: %v", run, err)
	}
	slices.Sort(checkpoints)
	f, err := safetensors.Open(filepath.Join(checkpoints[len(checkpoints)-1], "arrays.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := RunResult{Arrays: map[string]string{}}
	for _, info := range f.Tensors() {
		data := make([]byte, info.Size())
		if err := f.ReadBytes(data, info.Name); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		g.Arrays[info.Name] = hex.EncodeToString(sum[:8])
	}
	text := ReadText(t, filepath.Join(run, "metrics.jsonl"))
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		g.Metrics = append(g.Metrics, WithoutTimes(m))
	}
	return g
}

// WithoutTimes removes what differs between runs that are equal: durations, and where a run lies. A
// published policy's digest covers the name and version of the program that published it.
func WithoutTimes(m map[string]any) map[string]any {
	maps.DeleteFunc(m, func(key string, _ any) bool {
		return strings.HasPrefix(key, "time") || slices.Contains([]string{"seconds", "env_steps_per_second", "dir", "published"}, key)
	})
	return m
}

// SameResult compares everything that want has: what an older program did not record may be more.
func SameResult(t *testing.T, what string, got, want RunResult) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want.Arrays)) {
		if got.Arrays[name] != want.Arrays[name] {
			t.Errorf("%s: array %s differs", what, name)
		}
	}
	if len(got.Metrics) != len(want.Metrics) {
		t.Fatalf("%s: %d lines of metrics, expected %d", what, len(got.Metrics), len(want.Metrics))
	}
	for i, line := range want.Metrics {
		sameValues(t, what+": metrics", got.Metrics[i], line)
	}
	sameValues(t, what+": summary", got.Summary, want.Summary)
}

func sameValues(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		g, err := json.Marshal(got[key])
		if err != nil {
			t.Fatal(err)
		}
		w, err := json.Marshal(want[key])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(g, w) {
			t.Errorf("%s: %s is %s, expected %s", what, key, g, w)
		}
	}
}
