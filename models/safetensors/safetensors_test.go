package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// build assembles a file by hand, so that the reader is not only tested against the writer.
func build(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func open(b []byte) (*File, error) { return NewFile(bytes.NewReader(b), int64(len(b))) }

func TestReadHandMadeFile(t *testing.T) {
	data := []byte{0, 0, 128, 63, 0, 0, 0, 192, 7, 0x80, 0x3f}
	f, err := open(build(`{"__metadata__":{"format":"pt"},"b":{"data_offsets":[8,9],"dtype":"U8","shape":[]},`+
		`"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"h":{"dtype":"BF16","shape":[1],"data_offsets":[9,11]},`+
		`"empty":{"dtype":"I64","shape":[3,0],"data_offsets":[8,8]}}   `, data))
	if err != nil {
		t.Fatal(err)
	}
	a := make([]float32, 2)
	if err := Read(f, a, "a"); err != nil || a[0] != 1 || a[1] != -2 {
		t.Errorf("a = %v, %v", a, err)
	}
	b := make([]uint8, 1)
	if err := Read(f, b, "b"); err != nil || b[0] != 7 {
		t.Errorf("b = %v, %v", b, err)
	}
	h := make([]uint16, 1)
	if err := Read(f, h, "h"); err != nil || h[0] != 0x3f80 {
		t.Errorf("h = %v, %v", h, err)
	}
	if err := Read(f, []int64{}, "empty"); err != nil {
		t.Error(err)
	}
	if f.Metadata()["format"] != "pt" || len(f.Tensors()) != 4 || f.Tensors()[0].Name != "b" {
		t.Errorf("metadata %v, tensors %v", f.Metadata(), f.Tensors())
	}
	for name, err := range sorted.All(map[string]error{
		"absent": Read(f, a, "x"), "other dtype": Read(f, []float64{0, 0}, "a"), "other length": Read(f, a[:1], "a"),
		"other size": f.ReadBytes(make([]byte, 3), "a"), "absent bytes": f.ReadBytes(nil, "x"),
	}) {
		if err == nil || !strings.HasPrefix(err.Error(), `read tensor "`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestWriteRoundTrip(t *testing.T) {
	f32 := []float32{1, -2.5, float32(math.Inf(1)), math.SmallestNonzeroFloat32, 0, 7}
	f64 := []float64{math.Pi, math.Copysign(0, -1)}
	i64 := []int64{math.MinInt64, -1, math.MaxInt64}
	u64 := []uint64{math.MaxUint64}
	u8 := []uint8{1, 2, 255}
	flags := []bool{true, false, true}
	half := New("half", []int{2}, []uint16{0x3c00, 0xc000})
	half.DType = F16
	tensors := []Tensor{
		New("flags", []int{3}, flags), New("weights \"q\"/é", []int{2, 3}, f32), New("f64", []int{2}, f64), New("i64", []int{3, 1}, i64),
		New("u64", nil, u64), New("u8", []int{3}, u8), half, New("none", []int{0, 4}, []float32{}),
		New("i8", []int{1}, []int8{-3}), New("i16", []int{1}, []int16{-4}), New("i32", []int{1}, []int32{-5}), New("u32", []int{1}, []uint32{6}),
	}
	var b bytes.Buffer
	if err := Write(&b, map[string]string{"z": "1", "a": "2"}, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := open(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if f.data%64 != 0 {
		t.Errorf("data begins at byte %d", f.data)
	}
	compared := 0
	for _, want := range tensors {
		info, ok := f.Lookup(want.Name)
		if !ok || info.DType != want.DType || len(info.Shape) != len(want.Shape) {
			t.Fatalf("%s: %+v", want.Name, info)
		}
		if info.begin%info.DType.Size() != 0 {
			t.Errorf("%s begins at byte %d of the data", want.Name, info.begin)
		}
		got := make([]byte, info.Size())
		if err := f.ReadBytes(got, want.Name); err != nil || !bytes.Equal(got, want.Data) {
			t.Errorf("%s: %v, %v", want.Name, got, err)
		}
		compared++
	}
	if compared != 12 || !reflect.DeepEqual(f.Metadata(), map[string]string{"z": "1", "a": "2"}) {
		t.Errorf("%d tensors compared, metadata %v", compared, f.Metadata())
	}
	back := make([]bool, 3)
	if err := Read(f, back, "flags"); err != nil || !reflect.DeepEqual(back, flags) {
		t.Errorf("flags %v, %v", back, err)
	}
	var again bytes.Buffer
	if err := Write(&again, map[string]string{"a": "2", "z": "1"}, tensors); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
		t.Errorf("a second encoding differs: %v", err)
	}
	if unsafe.Pointer(&tensors[1].Data[0]) != unsafe.Pointer(&f32[0]) {
		t.Error("New copied the data")
	}
}

func TestReadRefuses(t *testing.T) {
	one := make([]byte, 4)
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "too few for a header"},
		{"short length", []byte{1, 2, 3}, "too few for a header"},
		{"length beyond file", build(`{}`, nil)[:9], "does not fit"},
		{"huge length", append(bytes.Repeat([]byte{255}, 8), `{}`...), "does not fit"},
		{"no header", build(``, nil), "does not start with {"},
		{"leading space", build(` {}`, nil), "does not start with {"},
		{"not JSON", build(`{x}`, nil), "invalid character"},
		{"cut JSON", build(`{"a":{"dtype":"F32"`, nil), "header ends early"},
		{"trailing text", build(`{} x`, nil), "text follows"},
		{"invalid UTF-8", build("{\"\xff\":1}", nil), "not valid UTF-8"},
		{"unclaimed data", build(`{}`, one), "tensors take 0 bytes, the file has 4"},
		{"missing data", build(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, one), "tensors take 8 bytes, the file has 4"},
		{"hole", build(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, one[:2]), `tensor "a": bytes 0 to 1 before it belong to no tensor`},
		{"overlap", build(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}}`, one), `tensor "b": bytes 1 to 4 overlap`},
		{"same range", build(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, one), "overlap"},
		{"duplicate", build(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, one), `"a" given twice`},
		{"unknown dtype", build(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, one), `unknown dtype "F31"`},
		{"negative shape", build(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, one), "not negative, found -1"},
		{"fractional shape", build(`{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, one), "not negative, found 1.0"},
		{"shape overflow", build(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, one), "too large"},
		{"wrapping shape", build(`{"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,4]}}`, one), "too large"},
		{"huge number", build(`{"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}}`, one), "not negative, found 9999"},
		{"size mismatch", build(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, one), "span 4 bytes, but shape [2] of F32 takes 8"},
		{"reversed range", build(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, one), "span -4 bytes"},
		{"three offsets", build(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}}`, one), "two data_offsets"},
		{"no shape", build(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, one), "expected dtype, shape"},
		{"unknown key", build(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, one), `key "x" is unknown`},
		{"key twice", build(`{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, one), `key "dtype" is unknown or given twice`},
		{"dtype number", build(`{"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}}`, one), "expected a string"},
		{"shape object", build(`{"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}}`, one), "expected ["},
		{"entry list", build(`{"a":[]}`, nil), "expected {"},
		{"metadata number", build(`{"__metadata__":{"a":1}}`, nil), `"a" is not a string`},
		{"metadata twice", build(`{"__metadata__":{"a":"1","a":"2"}}`, nil), `"a" given twice`},
		{"metadata list", build(`{"__metadata__":[]}`, nil), "expected {"},
	}
	refused := 0
	for _, c := range cases {
		if _, err := open(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			continue
		}
		refused++
	}
	if refused != 34 {
		t.Errorf("%d of 34 files refused as they should be", refused)
	}
}

func TestReadRefusesBoolsThatAreNone(t *testing.T) {
	f, err := open(build(`{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}`, []byte{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]bool, 2)
	if err := Read(f, dst, "a"); err == nil || dst[0] || dst[1] {
		t.Errorf("%v, %v", dst, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	one := []float32{1}
	cases := map[string][]Tensor{
		"given twice":                  {New("a", []int{1}, one), New("a", []int{1}, one)},
		"4 bytes, but shape [2] of F3": {New("a", []int{2}, one)},
		"negative dimension":           {New("a", []int{-1}, one)},
		"unknown dtype":                {{Name: "a", DType: "F31", Data: []byte{1}}},
		"reserved":                     {New("__metadata__", []int{1}, one)},
		"not valid UTF-8":              {New("\xff", []int{1}, one)},
	}
	for want, tensors := range sorted.All(cases) {
		if err := Write(io.Discard, nil, tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := Write(io.Discard, map[string]string{"a": "\xff"}, nil); err == nil {
		t.Error("invalid metadata was accepted")
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	if _, err := Open(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, build(`{}`, []byte{1}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("broken file: %v", err)
	}
	if err := os.WriteFile(path, build(`{}`, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzFile: no panic, and every array of an accepted file can be read and written again.
func FuzzFile(f *testing.F) {
	f.Add(build(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, []byte{1, 2, 3, 4}))
	f.Add(build(`{"__metadata__":{"k":"v"},"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F64","shape":[0],"data_offsets":[2,2]}}`, []byte{0, 1}))
	f.Add(build(`{}  `, nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open(b)
		if err != nil {
			return
		}
		var tensors []Tensor
		for _, info := range file.Tensors() {
			data := make([]byte, info.Size())
			if err := file.ReadBytes(data, info.Name); err != nil && info.DType != Bool {
				t.Fatal(err)
			}
			tensors = append(tensors, Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape, Data: data})
		}
		var out bytes.Buffer
		if err := Write(&out, file.Metadata(), tensors); err != nil {
			t.Fatal(err)
		}
		again, err := open(out.Bytes())
		if err != nil || len(again.Tensors()) != len(tensors) || !reflect.DeepEqual(again.Metadata(), file.Metadata()) && len(file.Metadata()) > 0 {
			t.Fatalf("written again: %v", err)
		}
	})
}

func BenchmarkWrite5M(b *testing.B) {
	data := make([]float32, 5_000_000)
	b.SetBytes(int64(4 * len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, nil, []Tensor{New("a", []int{len(data)}, data)}); err != nil {
			b.Fatal(err)
		}
	}
}
