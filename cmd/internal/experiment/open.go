package experiment

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"onnxrl/configs"
)

// Document reads a document from a file, or from the shipped experiments ("demo" or "demo.yaml") when there is no such file.
func Document(path string) (*configs.Document, error) {
	if text, name, ok := shipped(path); ok {
		return configs.Parse(name, text)
	}
	return configs.Open(path)
}

// Shipped reports whether Document reads a shipped experiment.
func Shipped(path string) bool {
	_, _, ok := shipped(path)
	return ok
}

func shipped(path string) (text []byte, name string, ok bool) {
	_, err := os.Stat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(path, `/\`) {
		return nil, "", false
	}
	name = strings.TrimSuffix(path, ".yaml") + ".yaml"
	text, err = fs.ReadFile(configs.Shipped(), name)
	return text, name, err == nil
}
