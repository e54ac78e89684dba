package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Draft is a version to be published.
type Draft struct {
	// Manifest has Name, Kind and whatever is known of the version. What Publish takes from the
	// model may be left empty.
	Manifest Manifest
	// Model is the path of an ONNX file; files of external data beside it are published with it.
	// ModelBytes is the file itself instead; its external data must be among Files.
	Model      string
	ModelBytes []byte
	// Data says that the version has no model: it is what its files are, such as transitions.
	Data bool
	// Files are further files.
	Files []NewFile
	// Golden are inputs and the outputs that the model must give for them; nil for none. Publish
	// checks names, types and shapes; the caller checks whether the model gives the outputs.
	Golden *Golden
	// Aliases are moved to the version beside [Latest].
	Aliases []string
}

// NewFile is a file to be published.
type NewFile struct {
	// Title is the file's name in the version, a slash-separated relative path.
	Title string
	// MediaType is [FileType] when empty.
	MediaType string
	// Path is where the content is read; Data is the content itself where Path is empty.
	Path string
	Data []byte
}

// compose turns a draft into blobs. The last one is the image manifest, whose digest is the
// version.
func (d Draft) compose(ctx context.Context) ([]blob, error) {
	for _, a := range d.Aliases {
		if err := CheckAlias(a); err != nil {
			return nil, err
		}
	}
	var layers []blob
	// Without a model the graph is empty.
	model, kind := &onnx.Model{Graph: &onnx.Graph{}}, DataArtifactType
	if !d.Data {
		text, m, err := d.readModel()
		if err != nil {
			return nil, err
		}
		model, kind, layers = m, ArtifactType, append(layers, blobOf(ModelType, ModelTitle, text))
	} else if d.Model != "" || d.ModelBytes != nil || d.Golden != nil || len(d.Files) == 0 {
		return nil, errors.New("a draft of data has files, and neither a model nor golden values")
	}
	files, err := d.files(ctx, model)
	if err != nil {
		return nil, err
	}
	layers = append(layers, files...)

	m := d.Manifest
	m.Schema, m.IR, m.Opsets, m.Golden, m.Files = Schema, int(model.IrVersion), opsets(model), nil, map[string]string{}
	in, out := PortsOf(model)
	if m.Inputs, err = merge("input", in, d.Manifest.Inputs); err != nil {
		return nil, err
	}
	if m.Outputs, err = merge("output", out, d.Manifest.Outputs); err != nil {
		return nil, err
	}
	if d.Golden != nil {
		if m.Golden, err = d.Golden.info(m.Inputs, m.Outputs); err != nil {
			return nil, err
		}
		text, err := d.Golden.encode(m.Inputs, m.Outputs)
		if err != nil {
			return nil, err
		}
		layers = append(layers, blobOf(GoldenType, GoldenTitle, text))
	}
	for _, l := range layers {
		m.Files[l.desc.Annotations[ocispec.AnnotationTitle]] = l.desc.Digest.String()
	}
	text, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	config := blobOf(ConfigType, "", text)

	image := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind,
		Config: config.desc, Annotations: map[string]string{ocispec.AnnotationTitle: m.Name}}
	for _, l := range layers {
		image.Layers = append(image.Layers, l.desc)
	}
	if _, err := filesOf(&image); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(image); err != nil {
		return nil, err
	}
	if len(text) > maxImageManifest {
		return nil, fmt.Errorf("the image manifest has %d bytes, expected at most %d: too many files", len(text), maxImageManifest)
	}
	manifest := blobOf(ocispec.MediaTypeImageManifest, "", text)
	manifest.desc.ArtifactType = kind
	return append(append(layers, config), manifest), nil
}

// readModel reads the ONNX file and checks it by the rules of the specification. External data
// stays outside.
func (d Draft) readModel() ([]byte, *onnx.Model, error) {
	text := d.ModelBytes
	switch {
	case d.Model != "" && text != nil:
		return nil, nil, errors.New("the draft has a model's path and its bytes, expected one of them")
	case d.Model != "":
		st, err := os.Stat(d.Model)
		if err != nil {
			return nil, nil, fmt.Errorf("model: %w", err)
		}
		if !st.Mode().IsRegular() || st.Size() > onnx.MaxModelBytes {
			return nil, nil, fmt.Errorf("model %s: expected a regular file of at most %d bytes", d.Model, onnx.MaxModelBytes)
		}
		if text, err = os.ReadFile(d.Model); err != nil {
			return nil, nil, fmt.Errorf("model: %w", err)
		}
	case text == nil:
		return nil, nil, errors.New("the draft has no model")
	}
	m, err := onnx.Unmarshal(text)
	if err == nil {
		err = onnx.Check(m)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", d.Model, err)
	}
	return text, m, nil
}

// files lists external data and the draft's files.
func (d Draft) files(ctx context.Context, model *onnx.Model) ([]blob, error) {
	locations, err := model.ExternalLocations()
	if err == nil {
		err = d.resolve(model, locations)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", d.Model, err)
	}
	list := slices.Clone(d.Files)
	if d.Model != "" {
		for _, l := range locations {
			list = append(list, NewFile{Title: l, Path: filepath.Join(filepath.Dir(d.Model), filepath.FromSlash(l))})
		}
	}
	var blobs []blob
	for _, f := range list {
		if err := checkTitle(f.Title); err != nil {
			return nil, err
		}
		if f.Title == ModelTitle || f.Title == GoldenTitle {
			return nil, fmt.Errorf("file title %q: it is the store's own", f.Title)
		}
		if f.MediaType == "" {
			f.MediaType = FileType
		}
		if slices.Contains(locations, f.Title) {
			f.MediaType = DataType
		}
		switch f.MediaType {
		case ModelType, GoldenType:
			return nil, fmt.Errorf("file %q: media type %s is the store's own", f.Title, f.MediaType)
		}
		b := blobOf(f.MediaType, f.Title, f.Data)
		if f.Path != "" {
			if b, err = blobOfFile(ctx, f.MediaType, f.Title, f.Path); err != nil {
				return nil, fmt.Errorf("file %q: %w", f.Title, err)
			}
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

// resolve reads the external data of the model, so that a version whose data does not fit is
// refused when it is published and not when it is served.
func (d Draft) resolve(model *onnx.Model, locations []string) error {
	if len(locations) == 0 {
		return nil
	}
	if d.Model != "" {
		f, err := onnx.Open(d.Model)
		if err != nil {
			return err
		}
		return f.Close()
	}
	open := map[string]*os.File{}
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	return model.ResolveExternalFrom(func(location string) (io.ReaderAt, int64, error) {
		i := slices.IndexFunc(d.Files, func(f NewFile) bool { return f.Title == location })
		if i < 0 {
			return nil, 0, errors.New("the draft has no such file")
		}
		if f := d.Files[i]; f.Path == "" {
			return bytes.NewReader(f.Data), int64(len(f.Data)), nil
		}
		if open[location] == nil {
			f, err := os.Open(d.Files[i].Path)
			if err != nil {
				return nil, 0, err
			}
			open[location] = f
		}
		st, err := open[location].Stat()
		if err != nil {
			return nil, 0, err
		}
		return open[location], st.Size(), nil
	})
}

func opsets(m *onnx.Model) map[string]int {
	list := map[string]int{}
	for _, o := range m.OpsetImport {
		domain := onnx.NormalizeDomain(o.Domain)
		if domain == onnx.DomainStandard {
			domain = "ai.onnx"
		}
		list[domain] = int(o.Version)
	}
	return list
}
