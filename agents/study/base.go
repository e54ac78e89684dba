package study

import (
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

// BasePath returns the path of a study's base as it is found from the working directory: beside the
// study, which was read at a path, or the name of a shipped experiment.
func BasePath(base, path string) string {
	if filepath.IsAbs(base) || objects.IsReference(base) {
		return base
	}
	beside := filepath.Join(filepath.Dir(path), base)
	if _, err := os.Stat(beside); err == nil || filepath.Dir(base) != "." {
		return beside
	}
	return base
}
