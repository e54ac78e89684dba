package app

import (
	"path/filepath"

	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

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
