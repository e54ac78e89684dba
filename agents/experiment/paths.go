package experiment

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// paths are the keys of a document that name files, beside those of [Models], [rivals] and
// [market].
var paths = []string{DatasetPath, "env.layers", "replay.ca", "replay.cert", "replay.key", "replay.token_file"}

// market returns the keys of files of the data of an environment, or of the one that it wraps.
func market(doc *configs.Document) (keys []string) {
	for _, at := range []string{"env.data.", "env.env.data."} {
		keys = append(keys, at+"source.path", at+"source.join", at+"stored", at+"universe.path")
		// Other exchanges are names.
		if name, ok := Path(doc, at+"source.exchange"); ok && filepath.Ext(name) == ".csv" {
			keys = append(keys, at+"source.exchange")
		}
		for i := 0; ; i++ {
			key := fmt.Sprintf("%sseries[%d]", at, i)
			if _, ok := doc.Lookup(key); !ok {
				break
			}
			keys = append(keys, key+".path")
		}
	}
	return keys
}

// DatasetPath is the key of the folder of a data set.
const DatasetPath = "dataset.path"

// Models returns the keys of the models that a document may be made of: those of the agent's
// networks, and of the experts or the opponents of its environment.
func Models(doc *configs.Document) []string {
	keys := []string{"agent.encoder.path", "agent.policy.path"}
	for _, list := range []string{"env.experts", "env.opponents"} {
		for i := 0; ; i++ {
			at := fmt.Sprintf("%s[%d]", list, i)
			if _, ok := doc.Lookup(at); !ok {
				break
			}
			if _, ok := doc.Lookup(at + ".path"); ok {
				keys = append(keys, at+".path")
			}
		}
	}
	return keys
}

// rivals returns the keys of rivals that are directories: what is no path is an agent's name.
func rivals(doc *configs.Document) (keys []string) {
	for i := 0; ; i++ {
		at := fmt.Sprintf("env.rivals[%d]", i)
		if _, ok := doc.Lookup(at); !ok {
			return keys
		}
		if name, ok := Path(doc, at); ok && filepath.Base(name) != name {
			keys = append(keys, at)
		}
	}
}

// shippedPrefix marks paths into what comes with the program.
const shippedPrefix = "shipped:"

// Absolute makes the paths of a document absolute, so that it means the same from any folder.
func Absolute(doc *configs.Document) error {
	return absolute(doc, func(key, file string) error { return doc.SetValue(key, file) })
}

// AbsoluteSets are the edits that make the paths of a document absolute.
func AbsoluteSets(doc *configs.Document) (sets []string, err error) {
	err = absolute(doc, func(key, file string) error {
		sets = append(sets, key+"="+strconv.Quote(file))
		return nil
	})
	return sets, err
}

// absolute calls set with the paths of a document that are to be others.
func absolute(doc *configs.Document, set func(key, file string) error) error {
	for _, key := range slices.Concat(Models(doc), rivals(doc), market(doc), paths) {
		old, ok := Path(doc, key)
		if !ok {
			continue
		}
		file, err := objects.Abs(old)
		if err != nil {
			return err
		}
		if file == old {
			continue
		}
		if err := set(key, file); err != nil {
			return err
		}
	}
	return nil
}

// Digest is that of a document, in which files below root are called by their place in it, as if it
// lay anywhere: the same training in another directory gives the same digest. An empty root is none.
func Digest(c Config, root string) (string, error) {
	if root == "" {
		return configs.Digest(c)
	}
	text, err := configs.Marshal(c)
	if err != nil {
		return "", err
	}
	doc, err := configs.Parse("the document", text)
	if err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	for _, key := range slices.Concat(Models(doc), rivals(doc), market(doc), paths) {
		path, ok := Path(doc, key)
		if !ok {
			continue
		}
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			if err := doc.SetValue(key, filepath.ToSlash(rel)); err != nil {
				return "", err
			}
		}
	}
	return configs.Digest(doc)
}

// Path returns the path of a file that a document names at a key.
func Path(doc *configs.Document, key string) (string, bool) {
	s, ok := doc.Lookup(key)
	if !ok || !s.IsScalar() {
		return "", false
	}
	var path string
	if err := s.Decode(&path); err != nil || path == "" || strings.HasPrefix(path, shippedPrefix) {
		return "", false
	}
	return path, true
}

// StandardInput is the path of a document on the standard input of a program that reads it there,
// see [Kinds.Document].
const StandardInput = "-"

// Name is the name of a document: its path without folder and ending, and stdin for
// [StandardInput].
func Name(path string) string {
	if path == StandardInput {
		return "stdin"
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
