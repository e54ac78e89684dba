package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// fitSources returns the digests of everything that a run reads. Large data is shown in progress,
// because all of it is read.
func (a *app) fitSources(cfg fit.Config) (map[string]string, error) {
	out := map[string]string{}
	add := func(key string, files []string, err error) error {
		if err != nil {
			return err
		}
		out[key+"_sha256"], err = a.digest(files)
		return err
	}
	files, err := modelFiles(cfg.Model)
	if err := add("model", files, err); err != nil {
		return nil, err
	}
	files, err = dataset.Files(cfg.Data.Path)
	if err := add("data", files, err); err != nil {
		return nil, fmt.Errorf("open data %q: %w", cfg.Data.Path, err)
	}
	if p := cfg.Data.Validation.Path; p != "" {
		files, err = dataset.Files(p)
		if err := add("validation", files, err); err != nil {
			return nil, fmt.Errorf("open validation data %q: %w", p, err)
		}
	}
	for i, t := range cfg.Loss {
		if t.Path != "" {
			files, err = modelFiles(t.Path)
			if err := add(fmt.Sprintf("loss%d", i), files, err); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// modelFiles lists a model's file and the files of its external data.
func modelFiles(path string) ([]string, error) {
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

// digest returns the SHA-256 of one file in hexadecimal, or of the list of digests and names of
// several.
func (a *app) digest(files []string) (string, error) {
	total := int64(0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return "", err
		}
		total += info.Size()
	}
	var bar *progress.Progress
	if total > 1<<28 {
		bar = progress.Start(a.err, progress.Options{Label: "hash", Unit: progress.Bytes, Total: total, Quiet: a.quiet})
		defer bar.Finish()
	}
	list := sha256.New()
	for _, name := range files {
		sum, err := fileDigest(name, bar)
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
func fileDigest(path string, bar *progress.Progress) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, bar.Reader(f)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
