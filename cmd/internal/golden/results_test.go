package golden

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// training is what the runs below a folder have come to: parameters, the optimiser's moments and the
// rest of the state in each checkpoint, what was measured, summaries, and what was published.
func training(dir string) []result {
	state := func(part string) func(t *testing.T, w *work) string {
		return func(t *testing.T, w *work) string {
			t.Helper()
			return w.each(t, dir, func(path string) string {
				return canonicalArrays(t, path, func(name string) bool { return partOf(name) == part })
			}, "arrays.safetensors")
		}
	}
	files := func(pattern string) func(t *testing.T, w *work) string {
		return func(t *testing.T, w *work) string {
			t.Helper()
			return w.each(t, dir, func(path string) string { return w.canonicalFile(t, path) }, pattern)
		}
	}
	return named(dir, []result{
		{"weights", state("weights")},
		{"optimiser", state("optimiser")},
		{"state", state("state")},
		{"metrics", files("metrics.jsonl")},
		{"summary", files("finished.json")},
		{"policy", files("*.onnx")},
	})
}

// partOf says what an array of a checkpoint is of.
func partOf(name string) string {
	switch {
	case strings.Contains(name, "/optim/"):
		return "optimiser"
	case strings.Contains(name, "params/"):
		return "weights"
	}
	return "state"
}

// named are results of a folder, which their names begin with, unless it is the run's own.
func named(dir string, list []result) []result {
	if dir != "run" {
		for i := range list {
			list[i].name = dir + "/" + list[i].name
		}
	}
	return list
}

// without leaves some of the results out, which a run does not have.
func without(list []result, names ...string) []result {
	return slices.DeleteFunc(slices.Clone(list), func(r result) bool { return slices.Contains(names, r.name) })
}

// tables are files below a folder, by the forms of their names, as one result.
func tables(name, dir string, patterns ...string) []result {
	return []result{{name, func(t *testing.T, w *work) string {
		t.Helper()
		return w.each(t, dir, func(path string) string { return w.canonicalFile(t, path) }, patterns...)
	}}}
}

// texts are tables as they stand, times included: those are of the data.
func texts(name, dir string, patterns ...string) []result {
	return []result{{name, func(t *testing.T, w *work) string {
		t.Helper()
		return w.each(t, dir, func(path string) string { return w.scrubbed(apptest.ReadText(t, path)) }, patterns...)
	}}}
}

// stored are the versions of an artefact store: manifests, graphs and golden values.
func stored(name, dir string) []result {
	return []result{{name, func(t *testing.T, w *work) string {
		t.Helper()
		s, err := artifact.Open(filepath.Join(w.dir, dir), artifact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		list, err := s.List()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, v := range list {
			manifest, err := json.Marshal(v.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(w.scrubbed(canonicalJSON(t, string(manifest), false)))
			m, err := v.Model()
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(canonicalModel(t, m))
			g, err := v.Golden()
			if err != nil {
				t.Fatal(err)
			}
			for what, x := range sorted.All(g.Inputs) {
				b.WriteString("golden input " + what + " " + canonicalTensor(x) + "\n")
			}
			for what, x := range sorted.All(g.Outputs) {
				b.WriteString("golden output " + what + " " + canonicalTensor(x) + "\n")
			}
		}
		return b.String()
	}}}
}

// said is what the nth command line printed, as JSON.
func said(name string, n int) []result {
	return []result{{name, func(t *testing.T, w *work) string {
		t.Helper()
		return w.scrubbed(canonicalJSON(t, w.printed[n], false))
	}}}
}

// each puts the texts of files below a folder of the run one after the other, each under its name,
// but for empty ones.
func (w *work) each(t *testing.T, dir string, text func(path string) string, patterns ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range under(t, filepath.Join(w.dir, dir), patterns...) {
		if says := text(filepath.Join(w.dir, dir, name)); strings.TrimSpace(says) != "" {
			b.WriteString("== " + name + "\n" + says)
		}
	}
	return b.String()
}
