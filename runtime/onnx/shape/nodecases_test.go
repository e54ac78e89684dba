package shape

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ONNX's own node cases are read where ONNXRL_NODE_CASES points: a directory or a tar.gz laid out
// as in the onnx repository. foreignCases is how many onnx 1.23.2 makes that have tensors as inputs
// and outputs and operators that are known here; all of them are inferred and compared.
const foreignCases = 1829

// foreign reports whether a case is for inference of types: no sequences and optionals enter or
// leave it, and its operators are known.
func foreign(m *onnx.Model) bool {
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output) {
		if _, ok := v.TensorType(); !ok {
			return false
		}
	}
	return !slices.ContainsFunc(m.Graph.Node, func(n *onnx.Node) bool { return !Known(n.Domain, n.OpType) && len(m.Functions) == 0 })
}

// nodeCases reads the files of all cases that are for inference, by case name and path inside it.
func nodeCases(tb testing.TB) map[string]map[string][]byte {
	tb.Helper()
	cases := allCases(tb)
	for name, files := range sorted.All(cases) {
		m := &onnx.Model{}
		if err := proto.Unmarshal(files["model.onnx"], m); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		if !foreign(m) {
			delete(cases, name)
		}
	}
	return cases
}

// allCases reads the files of all cases.
func allCases(tb testing.TB) map[string]map[string][]byte {
	tb.Helper()
	cases := map[string]map[string][]byte{}
	root := os.Getenv("ONNXRL_NODE_CASES")
	if root == "" {
		return cases
	}
	add := func(name string, read func() ([]byte, error)) {
		parts := strings.Split(path.Clean(filepath.ToSlash(name)), "/")
		for i, p := range parts[:len(parts)-1] {
			if strings.HasPrefix(p, "test_") && !strings.HasPrefix(p, "test_data_set") {
				b, err := read()
				if err != nil {
					tb.Fatal(err)
				}
				if cases[p] == nil {
					cases[p] = map[string][]byte{}
				}
				cases[p][strings.Join(parts[i+1:], "/")] = b
				return
			}
		}
	}
	info, err := os.Stat(root)
	if err != nil {
		tb.Fatalf("ONNXRL_NODE_CASES: %v", err)
	}
	if info.IsDir() {
		err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(root, p)
				add(rel, func() ([]byte, error) { return os.ReadFile(p) })
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
		return cases
	}
	f, err := os.Open(root)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return cases
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			add(h.Name, func() ([]byte, error) { return io.ReadAll(r) })
		}
	}
}

func decodeTensor(b []byte) (*onnx.TensorProto, *tensor.Tensor, error) {
	p := &onnx.TensorProto{}
	if err := proto.Unmarshal(b, p); err != nil {
		return nil, nil, err
	}
	t, err := onnx.TensorOf(p)
	return p, t, err
}

// TestNodeCases infers each case from the types of its input files, without and with their
// contents, and compares with the types, and where they were folded the contents, of its output
// files.
func TestNodeCases(t *testing.T) {
	cases := nodeCases(t)
	if len(cases) == 0 {
		t.Logf("0 of %d foreign cases run: ONNXRL_NODE_CASES is not set", foreignCases)
		return
	}
	names := make([]string, 0, len(cases))
	for n := range sorted.All(cases) {
		names = append(names, n)
	}
	sort.Strings(names)
	done, static, folded := 0, 0, 0
	for _, name := range names {
		s, f, err := runNodeCase(cases[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		done++
		static += s
		folded += f
	}
	t.Logf("%d of %d foreign cases inferred and compared, %d outputs static, %d contents folded", done, len(cases), static, folded)
	if done != foreignCases {
		t.Errorf("%d cases, want %d", done, foreignCases)
	}
	if static < 1800 || folded < 330 {
		t.Errorf("%d static outputs and %d folded contents are fewer than known to be possible", static, folded)
	}
}

func runNodeCase(files map[string][]byte) (static, folded int, err error) {
	m := &onnx.Model{}
	if err := proto.Unmarshal(files["model.onnx"], m); err != nil {
		return 0, 0, err
	}
	// Declared types would help inference; only what the nodes say counts here.
	m.Graph.ValueInfo = nil
	for _, v := range m.Graph.Output {
		v.Type = nil
	}
	for _, withContent := range []bool{false, true} {
		for set := 0; ; set++ {
			dir := fmt.Sprintf("test_data_set_%d/", set)
			if files[dir+"output_0.pb"] == nil {
				if set == 0 {
					return 0, 0, errors.New("no data set")
				}
				break
			}
			e, err := NewEnv(m, nil)
			if err != nil {
				return 0, 0, err
			}
			for i, v := range m.Graph.Input {
				b := files[fmt.Sprintf("%sinput_%d.pb", dir, i)]
				_, x, err := decodeTensor(b)
				if err != nil {
					return 0, 0, fmt.Errorf("input %d: %w", i, err)
				}
				f := Fact{Type: onnx.TypeOf(x.DType(), x.Shape()...)}
				if withContent && x.Len() <= MaxConst {
					f.Const = x
				}
				e.Set(onnx.Value(v.Name), f)
			}
			if err := e.applyAll(m.Graph.Node); err != nil {
				return 0, 0, err
			}
			for i, v := range m.Graph.Output {
				_, want, err := decodeTensor(files[fmt.Sprintf("%soutput_%d.pb", dir, i)])
				if err != nil {
					return 0, 0, fmt.Errorf("output %d: %w", i, err)
				}
				f, _ := e.Fact(onnx.Value(v.Name))
				wt := onnx.TypeOf(want.DType(), want.Shape()...)
				if f.Kind != Tensor || f.Type.DType != wt.DType {
					return 0, 0, fmt.Errorf("output %d is %v %v, want %v", i, f.Kind, f.Type, wt)
				}
				if _, err := merge(f.Type, wt); err != nil {
					return 0, 0, fmt.Errorf("output %d: inferred %v, want %v", i, f.Type, wt)
				}
				if _, ok := f.Type.Static(); ok && withContent {
					static++
				}
				if f.Const != nil && withContent {
					if !bytes.Equal(f.Const.Bytes(), want.Bytes()) {
						return 0, 0, fmt.Errorf("output %d: folded to %x, want %x", i, f.Const.Bytes(), want.Bytes())
					}
					folded++
				}
			}
		}
	}
	return static, folded, nil
}

// TestNodeCasesSymbolically gives every input symbols for its extents and evaluates what is
// inferred with the true extents.
func TestNodeCasesSymbolically(t *testing.T) {
	cases := nodeCases(t)
	compared, unknown, done := 0, 0, 0
	for name, files := range sorted.All(cases) {
		n, u, err := runSymbolicCase(files)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compared, unknown, done = compared+n, unknown+u, done+1
	}
	t.Logf("%d of %d foreign cases, %d extents compared, %d unknown", done, foreignCases, compared, unknown)
	if len(cases) > 0 && (done != foreignCases || compared < 3000 || unknown > compared/10) {
		t.Errorf("fewer than are known to be possible")
	}
}

func runSymbolicCase(files map[string][]byte) (compared, unknown int, err error) {
	m := &onnx.Model{}
	if err := proto.Unmarshal(files["model.onnx"], m); err != nil {
		return 0, 0, err
	}
	m.Graph.ValueInfo = nil
	for _, v := range m.Graph.Output {
		v.Type = nil
	}
	e, err := NewEnv(m, nil)
	if err != nil {
		return 0, 0, err
	}
	bound := map[string]int{}
	for i, v := range m.Graph.Input {
		_, x, err := decodeTensor(files[fmt.Sprintf("test_data_set_0/input_%d.pb", i)])
		if err != nil {
			return 0, 0, err
		}
		f := Fact{Type: onnx.TypeOf(x.DType(), x.Shape()...)}
		if x.Rank() <= 1 && x.DType().IsInteger() {
			f.Const = x
		} else {
			// Equal extents share a symbol: which of them must be equal is for the operator to say.
			for j, d := range x.Shape() {
				if d > 1 {
					s := "d" + strconv.Itoa(d)
					f.Type.Dims[j], bound[s] = onnx.Symbol(s), d
				}
			}
		}
		e.Set(onnx.Value(v.Name), f)
	}
	if err := e.applyAll(m.Graph.Node); err != nil {
		return 0, 0, err
	}
	for i, v := range m.Graph.Output {
		_, want, err := decodeTensor(files[fmt.Sprintf("test_data_set_0/output_%d.pb", i)])
		if err != nil {
			return 0, 0, err
		}
		n, u, err := checkSymbolic(e, bound, v.Name, onnx.TypeOf(want.DType(), want.Shape()...))
		if err != nil {
			return 0, 0, err
		}
		compared, unknown = compared+n, unknown+u
	}
	return compared, unknown, nil
}
