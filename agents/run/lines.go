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

// DecodeLine reads a line of a file of JSON lines. A key that v does not have, a line that is no JSON
// or empty, and anything behind its element are errors: where the end of a line is damaged, two lines
// look like one.
func DecodeLine(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); errors.Is(err, io.EOF) {
		return errors.New("the line is empty")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the element, at byte %d of the line", d.InputOffset())
	}
	return nil
}

// ReadLines reads a file of JSON lines, an element each; one that does not exist has none. A line
// that [DecodeLine] refuses is an error that names file and line.
func ReadLines[T any](path string) (list []T, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		var x T
		if err := DecodeLine(line, &x); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
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
