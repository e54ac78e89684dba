package onnx

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// linear is y = x·w + b with a [4,3] weight.
func linear(t testing.TB) *Model {
	t.Helper()
	b := NewBuilder("linear", DefaultOpset)
	x := b.Input("x", TensorType{DType: tensor.Float32, Ranked: true, Dims: []Dim{Symbol("batch"), Known(4)}})
	w := tensor.New(tensor.Float32, 4, 3)
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(i) / 8
	}
	h := b.Op("MatMul", []Value{x, b.Initializer("w", w)})
	y := b.Rename(b.Op("Add", []Value{h, b.Initializer("b", tensor.Of([]float32{1, 2, 3}, 3))}), "y")
	b.Output(y, TensorType{DType: tensor.Float32, Ranked: true, Dims: []Dim{Symbol("batch"), Known(3)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func inside(buf, part []byte) bool {
	lo, p := uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return p >= lo && p < lo+uintptr(len(buf))
}

func TestUnmarshalAliasesRawDataAtEveryDepth(t *testing.T) {
	m := linear(t)
	c := tensor.Of([]float32{5, 6}, 2)
	inner := &Graph{Name: "then", Initializer: []*TensorProto{ProtoOf("deep", c)}, Output: []*ValueInfo{NewValueInfo("deep", TypeOf(tensor.Float32, 2))}}
	m.Graph.Node = append(m.Graph.Node, &Node{OpType: "If", Input: []string{"c"}, Output: []string{"z"},
		Attribute: []*Attribute{AttrGraph("then_branch", inner), AttrTensor("extra", c)}})
	m.Functions = []*Function{{Name: "F", Domain: "d", Node: []*Node{{OpType: "Constant", Output: []string{"o"}, Attribute: []*Attribute{AttrTensor("value", c)}}}}}
	m.ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 2, 'h', 'i'}) // field 1023, length 2
	buf, err := Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unmarshal(buf)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(m, got) {
		t.Error("decoding the encoding gives another model")
	}
	n := 0
	if err := got.EachTensor(func(p *TensorProto) error {
		if !inside(buf, p.RawData) {
			t.Errorf("tensor %q was copied", p.Name)
		}
		if cap(p.RawData) != len(p.RawData) {
			t.Errorf("tensor %q can be appended to in place", p.Name)
		}
		n++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != 5 {
		t.Errorf("visited %d tensors, want 5", n)
	}
	again, err := Marshal(got)
	if err != nil || !bytes.Equal(again, buf) {
		t.Errorf("second encoding differs (%v)", err)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	g := &Graph{Name: "leaf"}
	for range MaxGraphDepth + 1 {
		g = &Graph{Name: "g", Node: []*Node{{OpType: "If", Attribute: []*Attribute{AttrGraph("then_branch", g)}}}}
	}
	deep, err := Marshal(&Model{Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	typ := &TypeProto{}
	for range maxMessageDepth {
		typ = &TypeProto{Value: &TypeProto_SequenceType{SequenceType: &TypeProto_Sequence{ElemType: typ}}}
	}
	deepType, err := Marshal(&Model{Graph: &Graph{Input: []*ValueInfo{{Name: "x", Type: typ}}}})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no data"},
		{"no graph", []byte{8, 8}, "no graph"},
		{"text", []byte("this is not a protobuf"), "decode model"},
		{"graphs", deep, ErrTooDeep.Error()},
		{"types", deepType, ErrTooDeep.Error()},
		{"a length beyond the end", []byte{0x3a, 0xff, 0xff, 0xff, 0xff, 0x07}, "decode model"},
	}
	for _, c := range cases {
		if _, err := Unmarshal(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", c.name, err, c.want)
		}
	}
}

func TestSaveAndLoadWithExternalData(t *testing.T) {
	m := linear(t)
	before := proto.Clone(m)
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	if err := Save(path, m, SaveOptions{ExternalThreshold: 1}); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(before, m) {
		t.Error("Save changed its model")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	slim, err := Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range slim.Graph.Initializer {
		if len(p.RawData) != 0 || p.DataLocation != TensorProto_EXTERNAL {
			t.Errorf("initializer %q is still inside", p.Name)
		}
		ref, err := parseExternal(p)
		if err != nil || ref.offset%externalAlign != 0 || ref.offset != int64(i*externalAlign) {
			t.Errorf("initializer %q: reference %+v, %v", p.Name, ref, err)
		}
		if _, err := TensorOf(p); err == nil {
			t.Errorf("initializer %q: unresolved data was decoded", p.Name)
		}
	}
	if err := Save(path+"2", slim, SaveOptions{}); err == nil {
		t.Error("a model with unresolved references was saved")
	}
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(m, loaded) {
		t.Error("Load gives another model")
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	// Replacing the files under an open mapping leaves the mapping as it was.
	if err := Save(path, linear(t), SaveOptions{ExternalThreshold: 1}); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(m, f.Model) {
		t.Error("Open gives another model")
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v (%v), want the model and its data", entries, err)
	}
}

func TestSaveKeepsTheOldFileOnErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	if err := Save(path, linear(t), SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := linear(t)
	bad.Graph.Initializer[1].RawData = []byte{1, 2, 3}
	if err := Save(path, bad, SaveOptions{ExternalThreshold: 1}); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error %v, want one naming tensor b", err)
	}
	if err := Save(path, linear(t), SaveOptions{ExternalThreshold: 1, ExternalFile: "../x"}); !errors.Is(err, ErrExternalPath) {
		t.Errorf("error %v, want ErrExternalPath", err)
	}
	now, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(old, now) {
		t.Errorf("the old model changed (%v)", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestExternalDataIsValidated(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "model")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 32)
	for _, p := range []string{filepath.Join(outer, "secret"), filepath.Join(dir, "ok")} {
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join("..", "secret"), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("ok", filepath.Join(dir, "in")); err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum(data[:16])
	cases := []struct {
		name string
		kv   []string
		want string // "" when it must load
	}{
		{"plain", []string{"location", "ok"}, ""},
		{"offset, length and checksum", []string{"location", "ok", "offset", "16", "length", "16", "checksum", hex.EncodeToString(sum[:])}, ""},
		{"symlink inside", []string{"location", "in"}, ""},
		{"unknown key", []string{"location", "ok", "prepacked_0", "x"}, ""},
		{"climbing", []string{"location", "../secret"}, ErrExternalPath.Error()},
		{"climbing inside", []string{"location", "a/../../secret"}, ErrExternalPath.Error()},
		{"absolute", []string{"location", filepath.Join(outer, "secret")}, ErrExternalPath.Error()},
		{"absolute elsewhere", []string{"location", `C:\secret`}, ErrExternalPath.Error()},
		{"symlink outside", []string{"location", "out"}, ErrExternalPath.Error()},
		{"missing", []string{"location", "gone"}, "does not exist"},
		{"folder", []string{"location", "."}, "not a regular file"},
		{"no location", []string{"offset", "0"}, "no location"},
		{"past the end", []string{"location", "ok", "offset", "17"}, "bytes [17, 33)"},
		{"far past the end", []string{"location", "ok", "offset", strconv.FormatInt(math.MaxInt64, 10)}, "it has 32"},
		{"negative", []string{"location", "ok", "offset", "-1"}, "not a number"},
		{"wrong length", []string{"location", "ok", "length", "12"}, "takes 16 bytes"},
		{"checksum", []string{"location", "ok", "checksum", strings.Repeat("0", 40)}, "checksum"},
	}
	for _, c := range cases {
		p := &TensorProto{Name: "weight", DataType: int32(tensor.Float32), Dims: []int64{4}, DataLocation: TensorProto_EXTERNAL}
		for i := 0; i < len(c.kv); i += 2 {
			p.ExternalData = append(p.ExternalData, &MetadataProp{Key: c.kv[i], Value: c.kv[i+1]})
		}
		b, err := Marshal(&Model{Graph: &Graph{Initializer: []*TensorProto{p}}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, loadErr := Load(path)
		f, openErr := Open(path)
		if openErr == nil {
			f.Close()
		}
		for _, err := range []error{loadErr, openErr} {
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", c.name, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: error %v, want one about %q", c.name, err, c.want)
			case c.want != "" && !strings.Contains(err.Error(), `tensor "weight"`):
				t.Errorf("%s: error %v does not name the tensor", c.name, err)
			}
		}
	}
}

// TestBigModelsAreNotCopied counts what loading a large sparse file allocates: at most the weights
// themselves, and nothing like them when they are mapped.
func TestBigModelsAreNotCopied(t *testing.T) {
	const size = 64 << 20
	dir := t.TempDir()
	data, err := os.Create(filepath.Join(dir, "m.data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(data.Truncate(size), data.Close()); err != nil {
		t.Fatal(err)
	}
	m := &Model{IrVersion: DefaultIR, OpsetImport: []*OperatorSet{{Version: 18}}, Graph: &Graph{Name: "big"}}
	for i := range 4 {
		m.Graph.Initializer = append(m.Graph.Initializer, &TensorProto{Name: "w" + strconv.Itoa(i), DataType: int32(tensor.Float32), Dims: []int64{size / 16},
			DataLocation: TensorProto_EXTERNAL, ExternalData: []*MetadataProp{{Key: "location", Value: "m.data"}, {Key: "offset", Value: strconv.Itoa(i * size / 4)}}})
	}
	path := filepath.Join(dir, "m.onnx")
	b, err := Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	allocated := func(f func() (*Model, func() error)) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, closer := f()
		for _, p := range m.Graph.Initializer {
			w, err := TensorOf(p)
			if err != nil {
				t.Fatal(err)
			}
			if w.Len() != size/16 || w.Float32s()[w.Len()-1] != 0 {
				t.Fatal("weights are wrong")
			}
		}
		if _, err := Marshal(&Model{Graph: &Graph{Name: "x"}}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if err := closer(); err != nil {
			t.Fatal(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	got := allocated(func() (*Model, func() error) {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f.Model, f.Close
	})
	if got > 1<<20 {
		t.Errorf("opening %d MiB allocated %d bytes", size>>20, got)
	}
	got = allocated(func() (*Model, func() error) {
		m, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return m, func() error { return nil }
	})
	if got > size+size/50 {
		t.Errorf("loading %d bytes allocated %d", size, got)
	}
	// Saving streams the weights: the only large thing is the file.
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Model.Graph.Initializer = f.Model.Graph.Initializer[:1]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Save(filepath.Join(dir, "copy.onnx"), f.Model, SaveOptions{ExternalThreshold: 1024}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("saving allocated %d bytes", got)
	}
}

func TestTensorFilesRoundTrip(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for _, x := range []*tensor.Tensor{tensor.Of([]float32{1, 2, 3, 4}, 2, 2), tensor.Scalar(int64(7)), tensor.Of([]bool{true, false}, 2), tensor.New(tensor.Float16, 0, 3),
		tensor.OfStrings([]string{"a", "bc"}, 2), tensor.New(tensor.Int4, 3)} {
		path := filepath.Join(dir, "t.pb")
		if err := WriteTensor(path, "some/name", x); err != nil {
			t.Fatal(err)
		}
		name, got, err := ReadTensor(path)
		if err != nil {
			t.Fatal(err)
		}
		if name != "some/name" || got.String() != x.String() || !bytes.Equal(got.Bytes(), x.Bytes()) {
			t.Errorf("%v came back as %q %v", x, name, got)
		}
		if x.DType() == tensor.String && strings.Join(got.Strings(), ",") != "a,bc" {
			t.Errorf("strings came back as %q", got.Strings())
		}
		n++
	}
	if n != 6 {
		t.Errorf("compared %d tensors", n)
	}
}

func TestDensify(t *testing.T) {
	sparse := func(idx *tensor.Tensor) *SparseTensorProto {
		return &SparseTensorProto{Dims: []int64{2, 3}, Values: ProtoOf("s", tensor.Of([]float32{1, 2}, 2)), Indices: ProtoOf("", idx)}
	}
	want := []float32{0, 1, 0, 0, 0, 2}
	for _, idx := range []*tensor.Tensor{tensor.Of([]int64{1, 5}, 2), tensor.Of([]int64{0, 1, 1, 2}, 2, 2)} {
		m := &Model{Graph: &Graph{SparseInitializer: []*SparseTensorProto{sparse(idx)}}}
		d, err := Densify(m, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		x, err := TensorOf(d.Graph.FindInitializer("s"))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range x.Float32s() {
			if v != want[i] {
				t.Errorf("indices %v: dense form %v, want %v", idx.Int64s(), x.Float32s(), want)
				break
			}
		}
		if len(m.Graph.SparseInitializer) != 1 || len(d.Graph.SparseInitializer) != 0 {
			t.Error("the wrong model was changed")
		}
	}
	for _, idx := range []*tensor.Tensor{tensor.Of([]int64{1, 6}, 2), tensor.Of([]int64{-1, 0}, 2), tensor.Of([]int64{0, 1, 2, 0}, 2, 2), tensor.Of([]int64{1}, 1)} {
		if _, err := TensorOfSparse(sparse(idx), 1<<10); err == nil {
			t.Errorf("indices %v were accepted", idx.Int64s())
		}
	}
	big := sparse(tensor.Of([]int64{1, 5}, 2))
	big.Dims = []int64{1 << 40, 4}
	if _, err := TensorOfSparse(big, 1<<30); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Errorf("a dense form of 16 TiB: %v", err)
	}
}
