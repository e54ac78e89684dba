//go:build unix

package gymnasium

import (
	"errors"
	"os"
)

// removedFile returns a temporary file whose name is already gone.
func removedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "onnxrl-gymnasium-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
