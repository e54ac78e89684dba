package onnx

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// exercise decodes foreign bytes and, when that succeeds, does with the model what every program
// does first. Nothing may panic, and encoding what was decoded must reach a fixed point. It reports
// whether the bytes were a model.
func exercise(t testing.TB, b []byte) bool {
	m, err := Unmarshal(b)
	if err != nil {
		if m != nil {
			t.Fatal("an error came with a model")
		}
		return false
	}
	r := CheckOptions{Finite: true}.Check(m)
	if err := Fprint(io.Discard, m, PrintOptions{Names: true, Docs: true}); err != nil {
		t.Fatal(err)
	}
	once, err := Marshal(m)
	if err != nil {
		// Strings of broken files may not be text, which the decoder refuses too.
		t.Fatalf("a decoded model does not encode: %v", err)
	}
	again, err := Unmarshal(once)
	if err != nil {
		t.Fatalf("an encoded model does not decode: %v", err)
	}
	twice, err := Marshal(again)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("encoding is not stable: %v", err)
	}
	if !Diff(m, again).Empty() {
		t.Fatal("encoding changed the model")
	}
	NewStats(m, nil)
	NewTopology(m.Graph).Cycle()
	// A model that the checker passes must survive every rewriting; one that it refuses may be
	// refused again, but not panic.
	rewrites := map[string]func() error{
		"inline":    func() error { return second(InlineFunctions(m)) },
		"constants": func() error { return second(ConstantsToInitializers(m)) },
		"densify":   func() error { return second(Densify(m, 1<<20)) },
		"prune":     func() error { return second(Prune(m)) },
		"prefix":    func() error { return second(Prefix(m, "p/")) },
		"upgrade":   func() error { return second(Upgrade(m, 18)) },
		"sort":      func() error { return Sort(m.ShallowClone().Graph) },
		"fold": func() error {
			_, _, err := Fold(m, EvalConstant, FoldLimits{})
			return err
		},
		"svg": func() error {
			if len(m.Graph.Node) > 200 {
				return nil
			}
			return SVG(io.Discard, m, nil)
		},
	}
	for name, f := range sorted.All(rewrites) {
		err := f()
		if err != nil && r.Err() == nil && (name == "prune" || name == "prefix" || name == "sort" || name == "svg") {
			t.Fatalf("%s refuses a valid model: %v", name, err)
		}
	}
	return true
}

func fuzzSeeds(t testing.TB) [][]byte {
	var seeds [][]byte
	paths, err := filepath.Glob(filepath.Join("..", "autodiff", "testdata", "torch", "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	for _, m := range []*Model{everything(), linear(t), nested()} {
		b, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	return seeds
}

func FuzzUnmarshal(f *testing.F) {
	for _, b := range fuzzSeeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { exercise(t, b) })
}

func FuzzUnmarshalTensor(f *testing.F) {
	for _, x := range []*tensor.Tensor{tensor.Of([]float32{1, 2}, 2), tensor.OfStrings([]string{"a"}, 1), tensor.New(tensor.Int4, 3)} {
		b, err := MarshalTensor(ProtoOf("t", x))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{8, 1 << 6, 16, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := UnmarshalTensor(b)
		if err != nil {
			return
		}
		x, err := TensorOf(p)
		if p.DataLocation == TensorProto_EXTERNAL && p.RawData == nil {
			// Data that lies elsewhere is the checker's business only once it is loaded.
			return
		}
		if (err == nil) != (checkTensor(p) == nil) {
			t.Fatalf("TensorOf says %v, checkTensor %v", err, checkTensor(p))
		}
		if err != nil {
			return
		}
		if y, err := TensorOf(ProtoOf(p.Name, x)); err != nil || y.String() != x.String() || !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Fatalf("%v came back as %v, %v", x, y, err)
		}
	})
}

func TestTruncatedAndFlippedModels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	decoded, tried := 0, 0
	each := longtest.Cases(t, 40, 8)
	for _, b := range fuzzSeeds(t) {
		for range each {
			if exercise(t, b[:r.IntN(len(b))]) {
				decoded++
			}
			c := bytes.Clone(b)
			for range 1 + r.IntN(3) {
				c[r.IntN(len(c))] ^= 1 << r.IntN(8)
			}
			if exercise(t, c) {
				decoded++
			}
			tried += 2
		}
	}
	// The point is to get past the decoder often enough to try what comes after.
	if tried < 17*2*each || decoded < tried/5 {
		t.Errorf("%d of %d damaged models were decoded", decoded, tried)
	}
}

// TestLyingSizesAllocateNothing checks that a few bytes cannot ask for much memory.
func TestLyingSizesAllocateNothing(t *testing.T) {
	huge := []int64{1 << 20, 1 << 20}
	var models []*Model
	for _, d := range []int32{1, 6, 7, 8, 9, 10, 11, 13, 15, 22} {
		models = append(models, &Model{IrVersion: 8, OpsetImport: []*OperatorSet{{Version: 18}}, Graph: &Graph{Name: "g", Initializer: []*TensorProto{{Name: "w", DataType: d, Dims: huge}},
			SparseInitializer: []*SparseTensorProto{{Dims: huge, Values: ProtoOf("s", tensor.Of([]float32{1}, 1)), Indices: ProtoOf("", tensor.Of([]int64{0}, 1))}}}})
	}
	models = append(models, &Model{Graph: &Graph{Initializer: []*TensorProto{{Name: "w", DataType: 15, Dims: []int64{1 << 57}, RawData: []byte{}}}}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, m := range models {
		b, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		exercise(t, b)
		if _, err := TensorOf(m.Graph.Initializer[0]); err == nil {
			t.Errorf("%v was decoded", m.Graph.Initializer[0])
		}
		if err := Check(m); err == nil {
			t.Errorf("%v passed the checker", m.Graph.Initializer[0])
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d tiny models allocated %d bytes", len(models), got)
	}
	for name, b := range sorted.All(map[string][]byte{
		"a node list of nothing": append([]byte{0x3a, 0x80, 0x80, 0x02}, bytes.Repeat([]byte{0x0a, 0}, 1<<14)...),
	}) {
		m, err := Unmarshal(b)
		if err != nil || len(m.Graph.Node) != 1<<14 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadOfBadFiles(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.onnx")
	if err := os.WriteFile(junk, []byte("<html>not found</html>"), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.onnx")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "huge.onnx")
	f, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(MaxModelBytes+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range sorted.All(map[string]string{junk: "decode model", empty: "no data", huge: "a model at most", dir: "not a regular file", filepath.Join(dir, "none.onnx"): "no such file"}) {
		_, loadErr := Load(path)
		_, openErr := Open(path)
		for _, err := range []error{loadErr, openErr} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("%s: error %v, want one about %q naming the file", filepath.Base(path), err, want)
			}
		}
	}
	if _, _, err := ReadTensor(junk); err == nil || !strings.Contains(err.Error(), "junk.onnx") {
		t.Errorf("reading junk as a tensor: %v", err)
	}
}
