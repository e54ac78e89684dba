package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// File is something to be written into a study's folder, at a path with slashes.
type File struct {
	Name  string
	Write func(io.Writer) error
}

// resolution of pixel images, in dots per inch: twice that of screens.
const resolution = 144

// Drawn are the files of a figure in the folder plots: SVG that follows the reader's light or dark,
// and PNG in both.
func Drawn(f *plots.Figure) []File {
	name := "plots/" + f.Name
	list := []File{{name + ".svg", bytesOf(f.SVG)}}
	for scheme, ending := range []string{"light", "dark"} {
		list = append(list, File{name + "-" + ending + ".png", bytesOf(func() ([]byte, error) { return f.PNG(plots.Scheme(scheme), resolution) })})
	}
	return list
}

func bytesOf(draw func() ([]byte, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		text, err := draw()
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
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

// WriteJSON writes a value as an indented document.
func WriteJSON(path string, v any) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	})
}

// ReadJSON reads what came of a run, and reports false where there is no such file.
func ReadJSON(path string, v any) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("%s: %w; delete the file to evaluate the run again", path, err)
	}
	return true, nil
}
