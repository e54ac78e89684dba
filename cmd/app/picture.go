package app

import (
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// checkPicture refuses a picture that could not be written, before any time is spent.
func checkPicture(path string) error {
	if path == "" {
		return nil
	}
	if ext := filepath.Ext(path); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("--picture %s: the ending is %q, expected .svg or .png", path, ext)
	}
	return checkFolder("--picture", path)
}

// writePicture writes a figure as its file's ending asks: as PNG in light colours, or as SVG.
func writePicture(path string, f *plots.Figure) error {
	draw := f.SVG
	if filepath.Ext(path) == ".png" {
		draw = func() ([]byte, error) { return f.PNG(plots.Light, 144) }
	}
	b, err := draw()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, b)
}
