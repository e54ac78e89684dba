package dashboard

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Setting is a key of runs' configurations with its value in each of them.
type Setting struct {
	Key string `json:"key"`
	// Values has one for each of the runs, empty where there is no such key.
	Values []string `json:"values"`
}

// Settings are the keys of the configurations of runs: of one run all, of several those in which
// they differ.
func (b *Board) Settings(runs []string) ([]Setting, error) {
	flat := make([]map[string]string, len(runs))
	keys := map[string]bool{}
	for i, id := range runs {
		r, err := b.run(id)
		if err != nil {
			return nil, err
		}
		text, err := readFile(filepath.Join(r.path, "config.yaml"))
		if err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", id, err)
		}
		var doc any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("configuration of %s: %w", id, err)
		}
		flat[i] = map[string]string{}
		flatten("", doc, flat[i])
		for k := range flat[i] {
			keys[k] = true
		}
	}
	list := []Setting{}
	for key := range sorted.All(keys) {
		s := Setting{Key: key}
		for _, f := range flat {
			s.Values = append(s.Values, f[key])
		}
		if len(runs) == 1 || slices.ContainsFunc(s.Values, func(v string) bool { return v != s.Values[0] }) {
			list = append(list, s)
		}
	}
	return list, nil
}

// flatten puts the values of a document into a map by their key paths; lists are one value.
func flatten(at string, v any, into map[string]string) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for k, x := range sorted.All(m) {
			if at != "" {
				k = at + "." + k
			}
			flatten(k, x, into)
		}
		return
	}
	if s, ok := v.(string); ok {
		into[at] = s
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(fmt.Sprint(v))
	}
	into[at] = string(text)
}
