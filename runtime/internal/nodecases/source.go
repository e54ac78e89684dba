package nodecases

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// EnvCases is the environment variable that names ONNX's node cases: a directory or a .tar.gz.
const EnvCases = "ONNXRL_NODE_CASES"

// Case is one case as it was found, undecoded.
type Case struct {
	Name  string
	Model []byte
	Sets  []Set
}

// Set is one set of inputs and expected outputs: encoded TensorProtos, or protos of other kinds
// where the model says so.
type Set struct {
	Inputs, Outputs [][]byte
}

// maxFile and maxTotal bound what is read of an archive, which may be anything.
const (
	maxFile  = 256 << 20
	maxTotal = 2 << 30
)

// Open reads all cases of a directory or a .tar.gz, sorted by name.
func Open(name string) ([]Case, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("open node cases: %w", err)
	}
	c := &collector{cases: map[string]*Case{}}
	if st.IsDir() {
		err = c.readDir(name)
	} else {
		err = c.readArchive(name)
	}
	if err != nil {
		return nil, fmt.Errorf("open node cases %s: %w", name, err)
	}
	var out []Case
	for _, k := range c.cases {
		if k.Model == nil {
			return nil, fmt.Errorf("open node cases %s: case %s has no model.onnx", name, k.Name)
		}
		out = append(out, *k)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("open node cases %s: it holds none", name)
	}
	slices.SortFunc(out, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// collector puts files into the cases that their paths name.
type collector struct {
	cases map[string]*Case
	total int64
}

func (c *collector) readDir(root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		file, ok := parsePath(filepath.ToSlash(rel))
		if !ok {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return c.add(file, b)
	})
}

func (c *collector) readArchive(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file, ok := parsePath(h.Name)
		if h.Typeflag != tar.TypeReg || !ok {
			continue
		}
		if h.Size > maxFile {
			return fmt.Errorf("%s has %d bytes, at most %d are read", h.Name, h.Size, int64(maxFile))
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		if err := c.add(file, b); err != nil {
			return err
		}
	}
}

// casePath says what a file is of a case: set -1 is the model.
type casePath struct {
	name   string
	set, i int
	output bool
}

func parsePath(p string) (casePath, bool) {
	parts := strings.Split(path.Clean(p), "/")
	n := len(parts)
	if n >= 2 && parts[n-1] == "model.onnx" {
		return casePath{name: parts[n-2], set: -1}, true
	}
	if n < 3 {
		return casePath{}, false
	}
	set, ok := number(parts[n-2], "test_data_set_", "")
	if !ok {
		return casePath{}, false
	}
	if i, ok := number(parts[n-1], "input_", ".pb"); ok {
		return casePath{parts[n-3], set, i, false}, true
	}
	if i, ok := number(parts[n-1], "output_", ".pb"); ok {
		return casePath{parts[n-3], set, i, true}, true
	}
	return casePath{}, false
}

func number(s, prefix, suffix string) (int, bool) {
	s, ok := strings.CutPrefix(s, prefix)
	s, ok2 := strings.CutSuffix(s, suffix)
	if !ok || !ok2 {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	return v, err == nil && v >= 0 && v < 1000
}

func (c *collector) add(p casePath, b []byte) error {
	if c.total += int64(len(b)); c.total > maxTotal {
		return fmt.Errorf("more than %d bytes of cases", int64(maxTotal))
	}
	k := c.cases[p.name]
	if k == nil {
		k = &Case{Name: p.name}
		c.cases[p.name] = k
	}
	if p.set < 0 {
		k.Model = b
		return nil
	}
	for len(k.Sets) <= p.set {
		k.Sets = append(k.Sets, Set{})
	}
	list := &k.Sets[p.set].Inputs
	if p.output {
		list = &k.Sets[p.set].Outputs
	}
	for len(*list) <= p.i {
		*list = append(*list, nil)
	}
	(*list)[p.i] = b
	return nil
}
