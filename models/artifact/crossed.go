package artifact

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// ErrCrossed says that a file of a version is not what the version's manifest says of the file of
// that title: the layers of its image are exchanged, or come from another version.
var ErrCrossed = errors.New("the image's layers are not those of its manifest")

// checkTitles compares what each file is called with what kind it is said to be.
func checkTitles(files []File) error {
	for _, own := range []struct{ title, mediaType string }{{ModelTitle, ModelType}, {GoldenTitle, GoldenType}} {
		for _, f := range files {
			if (f.Title == own.title) != (f.MediaType == own.mediaType) {
				return fmt.Errorf("%w: file %q is of type %q, expected %q to be of type %s", ErrCrossed, f.Title, f.MediaType, own.title, own.mediaType)
			}
		}
	}
	return nil
}

// checkFiles compares the files of an image with those that its manifest lists. Manifests of older
// programs list none.
func (m *Manifest) checkFiles(files []File) error {
	if err := checkTitles(files); err != nil {
		return err
	}
	if has := slices.ContainsFunc(files, func(f File) bool { return f.Title == GoldenTitle }); has != (m.Golden != nil) {
		return fmt.Errorf("%w: golden values in the image %v, in the manifest %v", ErrCrossed, has, m.Golden != nil)
	}
	if m.Files == nil {
		return nil
	}
	for _, f := range files {
		switch want, ok := m.Files[f.Title]; {
		case !ok:
			return fmt.Errorf("%w: file %q is not listed there", ErrCrossed, f.Title)
		case want != f.Digest:
			for title, digest := range m.Files {
				if digest == f.Digest {
					return fmt.Errorf("%w: file %q has the content of %q", ErrCrossed, f.Title, title)
				}
			}
			return fmt.Errorf("%w: file %q has digest %s, expected %s", ErrCrossed, f.Title, f.Digest, want)
		}
	}
	if len(files) != len(m.Files) {
		return fmt.Errorf("%w: it has %d of %d files", ErrCrossed, len(files), len(m.Files))
	}
	return nil
}

// checkContent compares the model and the golden values, which lie in the store, with what the
// manifest says of them.
func (v Version) checkContent() error {
	crossed := func(title string, err error) error {
		return fmt.Errorf("%w: file %q: %w", ErrCrossed, title, err)
	}
	f, ok := v.file(ModelType)
	if !ok {
		return nil
	}
	text, err := v.store.readBlob(f.desc, onnx.MaxModelBytes)
	if err != nil {
		return err
	}
	model, err := onnx.Unmarshal(text)
	if err != nil {
		return crossed(f.Title, err)
	}
	in, out := PortsOf(model)
	for _, side := range []struct {
		what        string
		have, wants []Port
	}{{"inputs", in, v.Manifest.Inputs}, {"outputs", out, v.Manifest.Outputs}} {
		if !slices.EqualFunc(side.have, side.wants, samePort) {
			return crossed(f.Title, fmt.Errorf("it has the %s %s, and the manifest %s", side.what, portTypes(side.have), portTypes(side.wants)))
		}
	}
	locations, err := model.ExternalLocations()
	if err != nil {
		return crossed(f.Title, err)
	}
	for _, l := range locations {
		if !slices.ContainsFunc(v.Files, func(f File) bool { return f.Title == l }) {
			return crossed(f.Title, fmt.Errorf("its data lie in %q, which the image does not have", l))
		}
	}
	g, err := v.Golden()
	if err == nil && g != nil {
		_, err = g.info(v.Manifest.Inputs, v.Manifest.Outputs)
	}
	if err != nil {
		return crossed(GoldenTitle, err)
	}
	return nil
}

// samePort compares what the model says of a port.
func samePort(a, b Port) bool {
	return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape)
}

func portTypes(list []Port) string {
	var b []byte
	for _, p := range list {
		b = fmt.Appendf(b, " %q %s%v", p.Name, p.DType, p.Shape)
	}
	return fmt.Sprintf("[%s]", b[min(1, len(b)):])
}
