package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ReadLines reads a file of JSON lines, an element each; one that does not exist has none. A key
// that T does not have, or a line that is no JSON, is an error that names file and line.
func ReadLines[T any](path string) (list []T, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if len(line) == 0 {
			break
		}
		var x T
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&x); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		list = append(list, x)
	}
	return list, nil
}

// WriteLines writes a file of JSON lines anew, at once.
func WriteLines[T any](path string, list []T) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, x := range list {
			if err := enc.Encode(x); err != nil {
				return err
			}
		}
		return nil
	})
}
