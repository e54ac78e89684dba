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
	_, err := os.Stat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(path, `/\`) {
		return configs.Open(path)
	}
	name := strings.TrimSuffix(path, ".yaml") + ".yaml"
	text, serr := fs.ReadFile(configs.Shipped(), name)
	if serr != nil {
		return configs.Open(path)
	}
	return configs.Parse(name, text)
}
