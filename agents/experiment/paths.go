package experiment

import (
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// paths are the keys of a document that name files.
var paths = []string{"env.data.source.path", "env.data.source.join", "agent.encoder.path", "agent.policy.path"}

// shippedPrefix marks paths into what comes with the program.
const shippedPrefix = "shipped:"

// Absolute makes the paths of a document absolute, so that it means the same from any folder.
func Absolute(doc *configs.Document) error {
	for _, key := range paths {
		old, ok := Path(doc, key)
		if !ok || filepath.IsAbs(old) {
			continue
		}
		file, err := filepath.Abs(old)
		if err != nil {
			return err
		}
		if err := doc.SetValue(key, file); err != nil {
			return err
		}
	}
	return nil
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
