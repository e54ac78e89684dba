package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// untold are the keys of what differs between two runs that are equal, or that says how work was
// organised: durations, places, and digests that cover the name of the program; and the seed, with
// which results would change that nothing else makes another.
var untold = regexp.MustCompile(`^(time|time/.*|.*seconds.*|.*per_second.*|dir|out|published|program|code_version|config_digest|sha256|digest|parents|seed)$`)

// told removes what is untold of a JSON value.
func told(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, x := range sorted.All(v) {
			if !untold.MatchString(k) {
				m[k] = told(x)
			}
		}
		return m
	case []any:
		for i := range v {
			v[i] = told(v[i])
		}
	}
	return v
}

// canonicalJSON is a document, or one on each line, with sorted keys and without what is untold;
// numbers are as they were written.
func canonicalJSON(t *testing.T, text string, lines bool) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if !lines {
		e.SetIndent("", " ")
	}
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if err := e.Encode(told(v)); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// canonicalArrays lists those arrays of a file that are wanted: what they are called, how large they
// are, their first numbers, and their digest.
func canonicalArrays(t *testing.T, path string, wanted func(name string) bool) string {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for _, info := range f.Tensors() {
		if !wanted(info.Name) {
			continue
		}
		x, err := f.Tensor(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, info.Name+" "+canonicalTensor(x))
	}
	slices.Sort(lines)
	return joined(lines)
}

// canonicalTensor says what a tensor is in one line.
func canonicalTensor(x *tensor.Tensor) string {
	text := x.Bytes()
	if x.DType() == tensor.String {
		text = []byte(strings.Join(x.Strings(), "\x00"))
	}
	sum := sha256.Sum256(text)
	var few []string
	switch x.DType() {
	case tensor.Float32:
		for _, v := range x.Float32s()[:min(4, len(x.Float32s()))] {
			few = append(few, fmt.Sprintf("%g", v))
		}
	case tensor.Float64:
		for _, v := range x.Float64s()[:min(4, len(x.Float64s()))] {
			few = append(few, fmt.Sprintf("%g", v))
		}
	case tensor.Int64:
		for _, v := range x.Int64s()[:min(4, len(x.Int64s()))] {
			few = append(few, fmt.Sprint(v))
		}
	}
	return fmt.Sprintf("%v%v %s %s", x.DType(), x.Shape(), strings.Join(few, " "), hex.EncodeToString(sum[:8]))
}

// untoldMeta are the properties of a model that say which program made it, of which files, and by
// which seed.
var untoldMeta = regexp.MustCompile(`^onnxrl\.(program|parents?|seed|.*_sha256)$`)

// canonicalGraph is canonicalModel of a file.
func canonicalGraph(t *testing.T, path string) string {
	t.Helper()
	m, err := onnx.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return canonicalModel(t, m)
}

// canonicalModel is what a model computes: its inputs, nodes with attributes, initializers and
// outputs, and what it says of itself, but for who made it, when and of what.
func canonicalModel(t *testing.T, m *onnx.Model) string {
	t.Helper()
	lines := []string{fmt.Sprintf("ir %d", m.IrVersion)}
	for _, o := range m.OpsetImport {
		lines = append(lines, fmt.Sprintf("opset %q %d", o.Domain, o.Version))
	}
	for _, f := range m.Functions {
		lines = append(lines, fmt.Sprintf("function %q %q %v -> %v", f.Domain, f.Name, f.Input, f.Output))
		lines = append(lines, canonicalNodes(t, " ", f.Node)...)
	}
	lines = append(lines, canonicalBody(t, "", m.Graph)...)
	var meta []string
	for _, p := range m.MetadataProps {
		if !untoldMeta.MatchString(p.Key) {
			meta = append(meta, fmt.Sprintf("meta %s %q", p.Key, p.Value))
		}
	}
	slices.Sort(meta)
	return joined(slices.Concat(lines, meta))
}

func canonicalBody(t *testing.T, in string, g *onnx.Graph) (lines []string) {
	t.Helper()
	for what, list := range sorted.All(map[string][]*onnx.ValueInfo{"input": g.Input, "output": g.Output}) {
		for _, v := range list {
			lines = append(lines, fmt.Sprintf("%s%s %s %s", in, what, v.Name, canonicalType(v)))
		}
	}
	lines = append(lines, canonicalNodes(t, in, g.Node)...)
	var weights []string
	for _, p := range g.Initializer {
		x, err := onnx.TensorOf(p)
		if err != nil {
			t.Fatal(err)
		}
		weights = append(weights, in+"initializer "+p.Name+" "+canonicalTensor(x))
	}
	slices.Sort(weights)
	return append(lines, weights...)
}

func canonicalType(v *onnx.ValueInfo) string {
	x := v.GetType().GetTensorType()
	text := onnx.TensorProto_DataType_name[x.GetElemType()]
	for _, d := range x.GetShape().GetDim() {
		text += fmt.Sprintf(" %s%d", d.GetDimParam(), d.GetDimValue())
	}
	return text
}

func canonicalNodes(t *testing.T, in string, nodes []*onnx.Node) (lines []string) {
	t.Helper()
	for _, n := range nodes {
		lines = append(lines, fmt.Sprintf("%snode %s%s %q -> %q", in, n.Domain, n.OpType, n.Input, n.Output))
		attributes := slices.Clone(n.Attribute)
		slices.SortFunc(attributes, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
		for _, a := range attributes {
			at := in + "  " + a.Name + " "
			switch {
			case a.T != nil:
				x, err := onnx.TensorOf(a.T)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, at+canonicalTensor(x))
			case a.G != nil:
				lines = append(lines, at)
				lines = append(lines, canonicalBody(t, in+"    ", a.G)...)
			case len(a.Graphs) > 0 || len(a.Tensors) > 0 || a.Tp != nil || a.SparseTensor != nil:
				t.Fatalf("%s: the attribute %s is of a type that this test cannot tell", n.OpType, a.Name)
			default:
				lines = append(lines, at+fmt.Sprintf("%x %d %q %v %d %q", math.Float32bits(a.F), a.I, a.S, a.Floats, a.Ints, a.Strings))
			}
		}
	}
	return lines
}

// canonicalFile is what a file says, whatever its form.
func (w *work) canonicalFile(t *testing.T, path string) string {
	t.Helper()
	switch filepath.Ext(path) {
	case ".onnx":
		return w.scrubbed(canonicalGraph(t, path))
	case ".safetensors":
		return canonicalArrays(t, path, func(string) bool { return true })
	case ".json", ".jsonl":
		return w.scrubbed(canonicalJSON(t, apptest.ReadText(t, path), filepath.Ext(path) == ".jsonl"))
	case ".csv", ".md", ".yaml", ".txt", ".py", ".pbtxt", ".toml", ".svg", ".html":
		return w.scrubbed(apptest.ReadText(t, path))
	}
	sum := sha256.Sum256(apptest.ReadBytes(t, path))
	return hex.EncodeToString(sum[:]) + "\n"
}

var (
	versionForm = regexp.MustCompile(`sha256:[0-9a-f]{6,63}\b|\b[0-9a-f]{64}\b`)
	programForm = regexp.MustCompile(`onnxrl (\(devel\)|v[0-9][^\s"]*)`)
)

// scrubbed is a text without the folders of this machine, SHA-256, which may cover the name of the
// program, and the program's version.
func (w *work) scrubbed(text string) string {
	text = strings.ReplaceAll(text, w.s.root, "ROOT")
	return programForm.ReplaceAllString(versionForm.ReplaceAllString(text, "…"), "onnxrl …")
}

// under lists the files below a folder whose base names match, sorted, relative to it.
func under(t *testing.T, dir string, patterns ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, p := range patterns {
			if ok, err := filepath.Match(p, filepath.Base(path)); ok || err != nil {
				name, e := filepath.Rel(dir, path)
				names = append(names, name)
				return errors.Join(err, e)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func joined(lines []string) string { return strings.Join(append(lines, ""), "\n") }
