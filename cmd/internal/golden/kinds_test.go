package golden

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/export/format"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// covered lists what the documents and command lines of the runs name, and in which run: "agent ppo"
// and so on.
func covered(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, g := range runs {
		for _, name := range g.documents {
			text, err := os.ReadFile(filepath.Join("testdata", "tiny", name))
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := yaml.Unmarshal(text, &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			kindsIn(v, "", func(what string) { list[what] = g.name })
		}
		for _, line := range g.lines {
			f := strings.Fields(line)
			list["verb "+f[0]] = g.name
			if f[0] == "export" {
				form := "onnx"
				if i := slices.Index(f, "--format"); i >= 0 {
					form = f[i+1]
				}
				list["export "+form] = g.name
			}
		}
	}
	return list
}

// kindsIn finds the kinds that a document names, by the key that they are in.
func kindsIn(v any, key string, found func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if kind, ok := v["kind"].(string); ok {
			found(key + " " + kind)
		}
		switch replay, _ := v["replay"].(map[string]any); {
		case replay["capacity"] != nil:
			found("replay shared")
		case replay["kind"] == "flight":
			found("replay served")
		}
		if ranked, ok := v["prioritised"].(map[string]any); ok && ranked["enabled"] == true {
			found("replay prioritised")
		} else if v["buffer_size"] != nil {
			found("replay uniform")
		}
		if selector, ok := v["selector"].(string); ok {
			found("selector " + selector)
		}
		for k, x := range sorted.All(v) {
			kindsIn(x, k, found)
		}
	case []any:
		for _, x := range v {
			kindsIn(x, key, found)
		}
	}
}

// TestGoldenKinds finds a golden run of every kind of result that there is.
func TestGoldenKinds(t *testing.T) {
	t.Parallel()
	have := covered(t)
	var want []string
	for _, k := range kinds.All().Agents {
		want = append(want, "agent "+k.Name)
	}
	for _, name := range evolve.Strategies() {
		want = append(want, "strategy "+name)
	}
	for _, form := range format.Forms() {
		want = append(want, "export "+form.Name)
	}
	// There is no list of these.
	want = append(want, "export scml", "replay uniform", "replay prioritised", "replay shared", "replay served", "selector "+flight.Uniform, "selector "+flight.Prioritised, "env trading", "env meta", "env versus", "world matrix_game", "world connect_four",
		"verb train", "verb evaluate", "verb record", "verb evolve", "verb walkforward", "verb ablate", "verb league", "verb live", "verb scml")
	for _, what := range want {
		if have[what] == "" {
			t.Errorf("no golden run covers %q: add one to runs_test.go, as package golden's comment says, so that its results are kept", what)
		}
	}
	if len(want) < 45 {
		t.Errorf("%d kinds", len(want))
	}
	// Each run has a name of its own, and each document a run.
	var names, used []string
	for _, g := range runs {
		names = append(names, g.name)
		used = append(used, g.documents...)
	}
	table := slices.Collect(maps.Keys(readTable(t)))
	slices.Sort(names)
	slices.Sort(table)
	if !slices.Equal(names, table) {
		t.Errorf("the runs are %s, and those of %s %s", strings.Join(names, " "), tableFile, strings.Join(table, " "))
	}
	err := fs.WalkDir(os.DirFS(filepath.Join("testdata", "tiny")), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !slices.Contains(used, path) {
			t.Errorf("no run has the document testdata/tiny/%s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
