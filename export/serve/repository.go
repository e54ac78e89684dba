package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/filehash"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// configFile is the name of the configuration in a model's folder.
const configFile = "config.pbtxt"

// maxConfigBytes bounds the configuration of a model.
const maxConfigBytes = 1 << 20

// Repository is a folder of models as Triton lays it out: NAME/[config.pbtxt],
// NAME/VERSION/model.onnx, where versions are numbers that do not begin with 0. Folders of other
// names are ignored.
type Repository struct{ dir string }

// NewRepository makes a source of a folder, which must be there when it is scanned.
func NewRepository(dir string) *Repository { return &Repository{dir} }

// Scan implements [Source].
func (r *Repository) Scan(ctx context.Context) ([]Listing, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("scan model repository: %w", err)
	}
	var list []Listing
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		dir := filepath.Join(r.dir, e.Name())
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		list = append(list, scanModel(e.Name(), dir))
	}
	return list, nil
}

func scanModel(name, dir string) Listing {
	l := Listing{Name: name}
	text, err := readLimited(filepath.Join(dir, configFile))
	switch {
	case err == nil:
		l.Stamp = string(text)
		for _, folder := range []string{warmUpFolder, initialFolder} {
			if _, err := os.Stat(filepath.Join(dir, folder)); err == nil {
				l.Stamp += stampOf(filepath.Join(dir, folder))
			}
		}
		l.Config, l.Err = ParseConfig(name, text)
	case !errors.Is(err, fs.ErrNotExist):
		l.Err = fmt.Errorf("read configuration: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.Err = errors.Join(l.Err, fmt.Errorf("list versions: %w", err))
		return l
	}
	var numbers []int64
	for _, e := range entries {
		if n, ok := versionNumber(e.Name()); ok {
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		version := strconv.FormatInt(n, 10)
		folder := filepath.Join(dir, version)
		l.Versions = append(l.Versions, Candidate{Name: version, Stamp: stampOf(folder), Open: func(context.Context) (*Content, error) { return openFolder(dir, folder, l.Config.modelFile()) }})
	}
	if len(numbers) == 0 {
		l.Err = errors.Join(l.Err, errors.New("there are no versions: expected folders 1, 2, … with "+l.Config.modelFile()))
	}
	return l
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfigBytes {
		return nil, fmt.Errorf("%s: expected a file of at most %d bytes", filepath.Base(path), maxConfigBytes)
	}
	return os.ReadFile(path)
}

// versionNumber reads a version's number.
func versionNumber(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == name
}

// stampOf describes all files below a folder by name, size and time of change.
func stampOf(dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		fmt.Fprintf(&b, "%q %d %d\n", rel, info.Size(), info.ModTime().UnixNano())
		return err
	})
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	return b.String()
}

// openFolder reads a version's model. home is the folder of all versions, name the model's; a
// folder of that name has a file of the same name, or model.onnx.
func openFolder(home, dir, name string) (*Content, error) {
	file := filepath.Join(dir, name)
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		dir = file
		if file = filepath.Join(dir, name); !exists(file) {
			file = filepath.Join(dir, DefaultModelFile)
		}
	}
	m, err := onnx.Load(file)
	if err != nil {
		return nil, err
	}
	digest, err := FileDigest(file)
	if err != nil {
		return nil, err
	}
	return &Content{Model: m, BaseDir: dir, Files: os.DirFS(home), Digest: digest}, nil
}

// FileDigest is the SHA-256 of a model's file, in the form of [Content].Digest. Data beside the
// file is not part of it.
func FileDigest(path string) (string, error) {
	sum, err := filehash.SHA256(path)
	if err != nil {
		return "", err
	}
	return "sha256:" + sum, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// fromFiles makes a listing of what Load was given.
func fromFiles(name string, o LoadOptions) (Listing, error) {
	if len(o.Config) == 0 {
		return Listing{}, invalid("files without a configuration")
	}
	config, err := ParseConfigJSON(name, o.Config)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Name: name, Config: config, Stamp: string(o.Config)}
	var numbers []int64
	models := map[int64][]byte{}
	for title, b := range o.Files {
		folder, file := path.Split(strings.TrimPrefix(title, "file:"))
		n, ok := versionNumber(strings.TrimSuffix(folder, "/"))
		if !ok || file != config.modelFile() {
			return Listing{}, invalid("file %q, expected VERSION/%s", title, config.modelFile())
		}
		numbers = append(numbers, n)
		models[n] = b
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		l.Versions = append(l.Versions, Candidate{Name: strconv.FormatInt(n, 10), Open: func(context.Context) (*Content, error) {
			m, err := onnx.Unmarshal(slices.Clone(models[n]))
			if err != nil {
				return nil, err
			}
			return &Content{Model: m, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(models[n]))}, nil
		}})
	}
	return l, nil
}
