package bars

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/runtime/glob"
)

// card is what the README.md of a data set of Hugging Face says of its files.
type card struct {
	Configs []struct {
		Name  string `yaml:"config_name"`
		Files any    `yaml:"data_files"`
	} `yaml:"configs"`
}

// shardName is a part of a split: train-00000-of-00003.parquet, with or without a hash.
var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(-[0-9a-f]+)?\.\w+$`)

// shards lists the files of a folder in the form of Hugging Face's data sets, all splits together:
// those that the README.md names, or the files in the folder data. ok is false for other folders.
func (s Source) shards() (paths []string, ok bool, err error) {
	c, err := readCard(filepath.Join(s.Path, "README.md"))
	if err != nil {
		return nil, true, err
	}
	patterns := []string{"data/*"}
	if len(c.Configs) > 0 {
		if patterns, err = s.patterns(c); err != nil {
			return nil, true, err
		}
	} else if info, err := os.Stat(filepath.Join(s.Path, "data")); err != nil || !info.IsDir() {
		return nil, false, nil
	}
	var names []string
	err = filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || extensionOf(path) == "" || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(s.Path, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return nil, true, err
	}
	for _, pattern := range patterns {
		some := false
		for _, name := range names {
			if glob.Match(strings.ReplaceAll(pattern, "**", "*"), name) {
				some = true
				if path := filepath.Join(s.Path, name); !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
		if !some && len(c.Configs) > 0 {
			return nil, true, fmt.Errorf("%s names the files %q, and there are none", filepath.Join(s.Path, "README.md"), pattern)
		}
	}
	if len(paths) == 0 {
		return nil, false, nil
	}
	return paths, true, complete(paths)
}

// readCard reads the front matter of a README.md; none is an empty card.
func readCard(path string) (c card, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	_, rest, begins := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "---\n")
	front, _, ends := strings.Cut(rest, "\n---")
	if !begins || !ends || !strings.HasPrefix(string(text), "---") {
		return c, nil
	}
	if err := yaml.Unmarshal([]byte(front), &c); err != nil {
		return c, fmt.Errorf("%s: the front matter: %w", path, err)
	}
	return c, nil
}

// patterns are those of the subset of a card, in its order.
func (s Source) patterns(c card) ([]string, error) {
	var names []string
	at := -1
	for i, config := range c.Configs {
		names = append(names, config.Name)
		if config.Name == cmp.Or(s.Subset, "default") || len(c.Configs) == 1 && s.Subset == "" {
			at = i
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("%s has the subsets %s: name one with source.subset", s.Path, strings.Join(names, ", "))
	}
	var list []string
	var add func(v any) error
	add = func(v any) error {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case []any:
			for _, x := range v {
				if err := add(x); err != nil {
					return err
				}
			}
		case map[string]any:
			if path, ok := v["path"]; ok {
				return add(path)
			}
			return fmt.Errorf("data_files: %v has no path", v)
		default:
			return fmt.Errorf("data_files: %v is neither a path nor a list of them", v)
		}
		return nil
	}
	if err := add(c.Configs[at].Files); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.Path, "README.md"), err)
	}
	return list, nil
}

// complete says which part of a split is missing.
func complete(paths []string) error {
	have := map[string]bool{}
	for _, path := range paths {
		if m := shardName.FindStringSubmatch(path); m != nil {
			have[m[1]+" "+m[2]] = true
		}
	}
	for _, path := range paths {
		m := shardName.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		of, err := strconv.Atoi(m[3])
		if err != nil {
			return err
		}
		for i := range of {
			if part := fmt.Sprintf("%05d", i); !have[m[1]+" "+part] {
				return fmt.Errorf("the part %s-%s-of-%s is missing", m[1], part, m[3])
			}
		}
	}
	return nil
}
