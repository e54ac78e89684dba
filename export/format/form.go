package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Package is a model with what its users need to know of it.
type Package struct {
	// Name is what the model is called, by the rules of artefact names.
	Name  string
	Model *onnx.Model
	// Inputs are recorded rows of every input, and Outputs what the model gives for them, by name;
	// states are given as an episode begins. The forms triton and python need at least one row.
	Inputs, Outputs map[string]*tensor.Tensor
	// Manifest describes the version for the form oci; its Name and Kind may be empty.
	Manifest artifact.Manifest
	// Files are further files for the form oci.
	Files []artifact.NewFile
	// Golden are its golden values there; nil for none.
	Golden *artifact.Golden
}

// Form is one way to write a package.
type Form struct {
	Name string
	// About says in one line what is written.
	About string
	// Free reports why nothing of that name can be written to out, as far as that can be told
	// before there is a package.
	Free func(out, name string) error
	// Write writes p to out and returns the paths of the files, sorted.
	Write func(ctx context.Context, out string, p *Package) ([]string, error)
}

// forms is the table of all forms.
var forms = []Form{
	{"onnx", "one file, OUT", freeFile, writeONNX},
	{"triton", "a model of a Triton repository, OUT/NAME", freeModel, writeTriton},
	{"oci", "an OCI image layout with this version alone, OUT", freeFolder, writeOCI},
	{"python", "a folder with the model, a class that acts and an example, OUT", freeFolder, writePython},
}

// freeFile refuses a folder.
func freeFile(out, name string) error {
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder: expected a file, such as %s", out, filepath.Join(out, filepath.Base(name)+".onnx"))
	}
	return nil
}

// freeFolder is FreeFolder as a form has it.
func freeFolder(out, _ string) error { return FreeFolder(out) }

// FreeFolder refuses a file, and a folder that holds something.
func FreeFolder(out string) error {
	info, err := os.Stat(out)
	if err != nil {
		return nil // Nothing is there, or it is for the writer to say what is wrong.
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file: expected a new folder: %w", out, fs.ErrExist)
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is there and not empty: %w", out, fs.ErrExist)
	}
	return nil
}

// freeModel refuses a repository that is a file, and a model of this name that is none of Triton's.
func freeModel(out, name string) error {
	dir := filepath.Join(out, name)
	if info, err := os.Stat(out); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file: expected the folder of a repository: %w", out, fs.ErrExist)
	}
	if _, err := os.Stat(filepath.Join(dir, "config.pbtxt")); err == nil {
		return nil
	}
	return freeFolder(dir, name)
}

// Forms lists the forms.
func Forms() []Form { return slices.Clone(forms) }

// Lookup returns a form by name.
func Lookup(name string) (Form, error) {
	var names []string
	for _, f := range forms {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Form{}, fmt.Errorf("format %q is not known: expected %s", name, strings.Join(names, ", "))
}

// check reports a package that cannot be written.
func (p *Package) check() error {
	if err := artifact.CheckName(p.Name); err != nil {
		return err
	}
	if err := onnx.Check(p.Model); err != nil {
		return err
	}
	_, err := models.States(p.Model)
	return err
}

// rows returns the number of recorded rows; none, and inputs without them, are an error.
func (p *Package) rows() (int, error) {
	rows := -1
	for _, set := range []struct {
		ports  []*onnx.ValueInfo
		values map[string]*tensor.Tensor
	}{{p.Model.Graph.Input, p.Inputs}, {p.Model.Graph.Output, p.Outputs}} {
		for _, v := range set.ports {
			t := set.values[v.Name]
			if t == nil || t.Rank() == 0 || t.Shape()[0] == 0 || rows >= 0 && t.Shape()[0] != rows {
				return 0, fmt.Errorf("recorded rows of %q are %v; every input and output needs the same number, at least one", v.Name, t)
			}
			rows = t.Shape()[0]
		}
	}
	if rows < 0 {
		return 0, errors.New("the model has neither inputs nor outputs")
	}
	return rows, nil
}

// WriteFolder makes the files by slash-separated path in a new folder, which appears as a whole. A
// folder of that name must not be there, unless it is empty. It returns the paths of the files.
func WriteFolder(dir string, files map[string][]byte) (list []string, err error) {
	if err := FreeFolder(dir); err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".tmp-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := writeSynced(path, files[name]); err != nil {
			return nil, err
		}
		list = append(list, filepath.Join(dir, filepath.FromSlash(name)))
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, err
	}
	// A folder replaces an empty one on Unix only.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return list, os.Rename(temp, dir)
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func writeONNX(_ context.Context, out string, p *Package) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("export %s: %w", out, err)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, fmt.Errorf("export %s: %w", out, err)
	}
	if err := onnx.Save(out, p.Model, onnx.SaveOptions{}); err != nil {
		return nil, err
	}
	return []string{out}, nil
}
