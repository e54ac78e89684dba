package study

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// File is something to be written into a study's folder, at a path with slashes.
type File struct {
	Name  string
	Write func(io.Writer) error
}

// WriteFiles writes files into a folder, each as a whole, and returns their names. One that cannot
// be written does not stop the others.
func WriteFiles(dir string, files []File) (names []string, err error) {
	var errs []error
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = atomicfile.WriteFile(path, f.Write)
		}
		errs = append(errs, err)
		names = append(names, f.Name)
	}
	return names, errors.Join(errs...)
}
