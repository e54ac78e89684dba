package plots

import (
	"io"
	"iter"
)

// resolution of pixel images, in dots per inch: twice that of screens.
const resolution = 144

// Files are what a figure is kept as, in a folder plots: SVG that follows the reader's light or dark,
// and PNG in both.
func (f *Figure) Files() iter.Seq2[string, func(io.Writer) error] {
	write := func(draw func() ([]byte, error)) func(io.Writer) error {
		return func(w io.Writer) error {
			text, err := draw()
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}
	}
	return func(yield func(string, func(io.Writer) error) bool) {
		name := "plots/" + f.Name
		if !yield(name+".svg", write(f.SVG)) {
			return
		}
		for scheme, ending := range []string{"light", "dark"} {
			if !yield(name+"-"+ending+".png", write(func() ([]byte, error) { return f.PNG(Scheme(scheme), resolution) })) {
				return
			}
		}
	}
}
