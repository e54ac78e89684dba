package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Document reads a document from a file, or from the shipped experiments ("demo" or "demo.yaml")
// when there is no such file; a folder of that name is none. It translates none, see [Kinds.Read].
func Document(path string) (*configs.Document, error) {
	if text, name, ok := shipped(path); ok {
		return configs.Parse(name, text)
	}
	path, err := objects.Local(path)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		name := strings.TrimSuffix(path, filepath.Ext(path))
		return nil, fmt.Errorf("%w, and no experiment of that name is shipped; %s", err, configs.Nearest(name, names()))
	}
	return doc, err
}

// names lists the shipped documents without their extension.
func names() []string {
	// The pattern is right, so there is no error.
	list, _ := fs.Glob(configs.Shipped(), "*.yaml")
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], ".yaml")
	}
	return list
}

// Shipped reports whether Document reads a shipped experiment.
func Shipped(path string) bool {
	_, _, ok := shipped(path)
	return ok
}

func shipped(path string) (text []byte, name string, ok bool) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(path, `/\`) {
		return nil, "", false
	}
	name = strings.TrimSuffix(path, ".yaml") + ".yaml"
	text, err = fs.ReadFile(configs.Shipped(), name)
	return text, name, err == nil
}
