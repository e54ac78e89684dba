package onnx

import (
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ExternalLocations lists the files that the model's external data lies in, as the tensors name
// them, in order of first use.
func (m *ModelProto) ExternalLocations() ([]string, error) {
	var list []string
	seen := map[string]bool{}
	err := m.EachTensor(func(t *TensorProto) error {
		if t.DataLocation != TensorProto_EXTERNAL {
			return nil
		}
		ref, err := parseExternal(t)
		if err != nil {
			return fmt.Errorf("external data of tensor %q: %w", t.Name, err)
		}
		if !seen[ref.location] {
			seen[ref.location] = true
			list = append(list, ref.location)
		}
		return nil
	})
	return list, err
}

// ResolveExternalFrom is [Model.ResolveExternal] for files that lie in no folder under their names:
// open returns the content and the size in bytes of a location. It is called for every tensor.
func (m *ModelProto) ResolveExternalFrom(open func(location string) (io.ReaderAt, int64, error)) error {
	return m.resolve(sourceReader(open))
}

type sourceReader func(location string) (io.ReaderAt, int64, error)

func (r sourceReader) bytes(location string, off, n int64) ([]byte, error) {
	src, size, err := r(location)
	if err != nil {
		return nil, err
	}
	if err := (&dataFile{size: size}).check(off, n); err != nil {
		return nil, err
	}
	b := tensor.New(tensor.Uint8, int(n)).Bytes()
	if _, err := io.ReadFull(io.NewSectionReader(src, off, n), b); err != nil {
		return nil, err
	}
	return b, nil
}
