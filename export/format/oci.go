package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// writeOCI publishes the package into an artefact store of its own. A version that is exported with
// its own manifest, golden values and files keeps its digest.
func writeOCI(ctx context.Context, out string, p *Package) (list []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s: %w", out, err)
		}
	}()
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := freeFolder(out, ""); err != nil {
		return nil, err
	}
	model, err := onnx.Marshal(p.Model)
	if err != nil {
		return nil, err
	}
	d := artifact.Draft{Manifest: p.Manifest, ModelBytes: model, Golden: p.Golden, Files: p.Files}
	d.Manifest.Name = p.Name
	if d.Manifest.Kind == "" {
		d.Manifest.Kind = "model"
	}
	s, err := artifact.Open(out, artifact.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Publish(ctx, d); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(out, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != ".lock" {
			list = append(list, path)
		}
		return err
	})
	slices.Sort(list)
	return list, err
}
