package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// ModelFiles lists a model's file and the files of its external data.
func ModelFiles(path string) ([]string, error) {
	path, err := objects.Local(path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	files := []string{path}
	err = m.EachTensor(func(t *onnx.TensorProto) error {
		for _, e := range t.ExternalData {
			if file := filepath.Join(filepath.Dir(path), filepath.FromSlash(e.Value)); e.Key == "location" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		return nil
	})
	return files, err
}

// Digest returns the SHA-256 of one file in hexadecimal, or of the list of digests and names of
// several. What is read goes through a reader where one is given, which may show it.
func Digest(files []string, through func(io.Reader) io.Reader) (string, error) {
	list := sha256.New()
	for _, name := range files {
		sum, err := fileDigest(name, through)
		if err != nil {
			return "", fmt.Errorf("hash %s: %w", name, err)
		}
		if len(files) == 1 {
			return sum, nil
		}
		fmt.Fprintf(list, "%s  %s\n", sum, filepath.Base(name))
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

// fileDigest returns the SHA-256 of a file in hexadecimal.
func fileDigest(path string, through func(io.Reader) io.Reader) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var r io.Reader = f
	if through != nil {
		r = through(f)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
