package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// counters is a small component whose whole state follows from its step, so that a restored one can
// be checked.
type counters struct {
	Step    int64
	weights []float32
	moments []float64
	indices []int64
}

func newCounters(step int64, n int) *counters {
	c := &counters{Step: step, weights: make([]float32, n), moments: make([]float64, n/4), indices: []int64{step, -step}}
	for i := range c.weights {
		c.weights[i] = float32(i) + float32(step)/8
	}
	for i := range c.moments {
		c.moments[i] = float64(step) / float64(i+3)
	}
	return c
}

func (c *counters) SaveState(w *Writer) error {
	w.PutJSON("counters", map[string]int64{"step": c.Step})
	w.PutFloat32s("weights", c.weights, 2, len(c.weights)/2)
	optim := w.Scope("optim")
	optim.PutFloat64s("moments", c.moments)
	optim.PutInt64s("indices", c.indices)
	return w.Err()
}

func (c *counters) LoadState(r *Reader) error {
	var saved struct{ Step int64 }
	r.JSON("counters", &saved)
	c.Step = saved.Step
	r.Float32sInto("weights", c.weights, 2, len(c.weights)/2)
	optim := r.Scope("optim")
	optim.Float64sInto("moments", c.moments)
	optim.Int64sInto("indices", c.indices)
	return r.Err()
}

// state builds a Stater from functions.
type state struct {
	save func(*Writer) error
	load func(*Reader) error
}

func (s state) SaveState(w *Writer) error { return s.save(w) }
func (s state) LoadState(r *Reader) error { return s.load(r) }

func openStore(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := OpenStore(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func save(t *testing.T, s *Store, step int64) string {
	t.Helper()
	path, err := s.Save(Meta{Kind: "test", Step: step}, newCounters(step, 64))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func checkLoads(t *testing.T, path string, step int64, n int) {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := newCounters(-1, n)
	if err := c.Load(got); err != nil {
		t.Fatal(err)
	}
	if want := newCounters(step, n); !reflect.DeepEqual(got, want) {
		t.Fatalf("%s does not hold the state of step %d", path, step)
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "checkpoints")
	if _, err := Latest(dir); !errors.Is(err, ErrNone) {
		t.Errorf("no store: %v", err)
	}
	s := openStore(t, dir, Options{})
	score := 0.5
	path, err := s.Save(Meta{Kind: "fit", Step: 123, Score: &score, Info: map[string]string{"created": "then"}}, newCounters(123, 64))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) != "ckpt-000000123" {
		t.Errorf("path %s", path)
	}
	checkLoads(t, path, 123, 64)
	c, err := Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Path != path || c.Kind != "fit" || c.Step != 123 || *c.Score != 0.5 || c.Info["created"] != "then" || c.Schema != Schema {
		t.Errorf("manifest %+v", c.Manifest)
	}
	r := c.Reader()
	if want := []string{"counters", "optim/indices", "optim/moments", "weights"}; !reflect.DeepEqual(r.Names(), want) {
		t.Errorf("names %v", r.Names())
	}
	if got := r.Scope("optim").Names(); !reflect.DeepEqual(got, []string{"indices", "moments"}) {
		t.Errorf("names of the scope: %v", got)
	}
	if shape, ok := r.Shape("weights"); !ok || !slices.Equal(shape, []int{2, 32}) || r.Has("weight") || !r.Has("counters") {
		t.Errorf("shape %v", shape)
	}
	if v, shape, err := r.Float32s("weights"); err != nil || len(v) != 64 || v[1] != 1+123.0/8 || shape[1] != 32 {
		t.Errorf("weights %v %v %v", v, shape, err)
	}
}

func TestEveryElementTypeRoundTrips(t *testing.T) {
	half := safetensors.New("", []int{2}, []uint16{0x3c00, 0x7c00})
	half.DType = safetensors.F16
	f32 := []float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), 1}
	s := openStore(t, t.TempDir(), Options{})
	path, err := s.Save(Meta{}, state{save: func(w *Writer) error {
		w.PutFloat32s("f32", f32)
		w.PutFloat64s("f64", []float64{math.Pi})
		w.PutInt64s("i64", []int64{math.MinInt64})
		w.PutUint64s("u64", []uint64{math.MaxUint64})
		w.PutInt32s("i32", []int32{-7})
		w.PutBytes("u8", []byte("abc"))
		w.PutBools("bool", []bool{true, false})
		w.PutTensor("f16", half)
		w.PutFloat32s("empty", nil)
		w.PutFloat32s("scalar", []float32{5}, 1, 1)
		w.PutJSON("json", map[string]any{"x": 0.1, "big": uint64(math.MaxUint64)})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Load(state{load: func(r *Reader) error {
		got32, got64, gotI, gotU, got32i := make([]float32, 4), make([]float64, 1), make([]int64, 1), make([]uint64, 1), make([]int32, 1)
		gotBool := make([]bool, 2)
		gotHalf := safetensors.New("", []int{2}, make([]uint16, 2))
		gotHalf.DType = safetensors.F16
		var section struct {
			X   float64
			Big uint64
		}
		err := errors.Join(r.Float32sInto("f32", got32), r.Float64sInto("f64", got64), r.Int64sInto("i64", gotI),
			r.Uint64sInto("u64", gotU), r.Int32sInto("i32", got32i), r.BoolsInto("bool", gotBool), r.TensorInto("f16", gotHalf),
			r.Float32sInto("empty", nil), r.Float32sInto("scalar", got32[3:4], 1, 1), r.JSON("json", &section))
		text, _, err2 := r.Bytes("u8")
		for i := range 3 {
			if math.Float32bits(got32[i]) != math.Float32bits(f32[i]) {
				t.Errorf("f32[%d] = %v", i, got32[i])
			}
		}
		if got32[3] != 5 || got64[0] != math.Pi || gotI[0] != math.MinInt64 || gotU[0] != math.MaxUint64 || got32i[0] != -7 ||
			string(text) != "abc" || !gotBool[0] || gotBool[1] || !bytes.Equal(gotHalf.Data, half.Data) || section.X != 0.1 || section.Big != math.MaxUint64 {
			t.Error("a value changed")
		}
		return errors.Join(err, err2)
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestLoadNamesEverythingThatDoesNotFit(t *testing.T) {
	path := save(t, openStore(t, t.TempDir(), Options{}), 7)
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	own := errors.New("component is unhappy")
	err = c.Load(state{load: func(r *Reader) error {
		r.Float32sInto("weights", make([]float32, 10))
		r.Scope("optim").Float32sInto("moments", make([]float32, 16))
		r.Float32sInto("bias", make([]float32, 2))
		r.Float32sInto("counters", make([]float32, 2))
		var wrong struct{ Epoch int }
		r.JSON("counters", &wrong)
		r.JSON("weights", &wrong)
		return errors.Join(r.Err(), own)
	}})
	for _, want := range []string{
		"load checkpoint " + path + ": ",
		`array "weights" is F32[2 32] in the checkpoint, expected F32[10]`,
		`array "optim/moments" is F64[16] in the checkpoint, expected F32[16]`,
		`array "bias" is missing`,
		`array "counters" is missing; there is a section of that name`,
		`section "counters": json: unknown field "step"`,
		`section "weights" is missing; there is an array of that name`,
		`nothing has read "optim/indices"`,
	} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("error\n%v\nwant once\n%s", err, want)
		}
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Load(state{load: func(r *Reader) error { return own }}); !errors.Is(err, own) {
		t.Errorf("the component's error is lost: %v", err)
	}
	again.Reader().Skip()
	if err := again.Load(state{load: func(r *Reader) error { return nil }}); err != nil {
		t.Errorf("everything was skipped: %v", err)
	}
}

func TestSaveRefuses(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	save(t, s, 5)
	inf := math.Inf(1)
	own := errors.New("no state")
	fine := func(w *Writer) error { return nil }
	cases := []struct {
		meta Meta
		save func(w *Writer) error
		want string
	}{
		{Meta{Step: 6}, func(w *Writer) error { return own }, "save checkpoint of step 6: no state"},
		{Meta{Step: 6}, func(w *Writer) error { w.PutJSON("a", 1); w.PutBytes("a", nil); return nil }, `entry "a" is saved twice`},
		{Meta{Step: 6}, func(w *Writer) error { w.PutJSON("a", math.NaN()); return nil }, `section "a": json: unsupported value: NaN`},
		{Meta{Step: 6}, func(w *Writer) error { w.PutJSON("", 1); return nil }, "expected text that is not empty"},
		{Meta{Step: 6}, func(w *Writer) error { w.Scope("").PutJSON("a", 1); return nil }, "expected text that is not empty"},
		{Meta{Step: 6}, func(w *Writer) error { w.PutFloat32s("a", make([]float32, 3), 2); return nil }, `tensor "a": 12 bytes, but shape [2] of F32 takes 8`},
		{Meta{Step: -1}, fine, "negative"},
		{Meta{Step: 6, Score: &inf}, fine, "not finite"},
		{Meta{Step: 4}, fine, "is of a later step"},
	}
	refused := 0
	for _, c := range cases {
		if _, err := s.Save(c.meta, state{save: c.save}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
			continue
		}
		refused++
	}
	if names := listNames(t, dir); refused != 9 || !reflect.DeepEqual(names, []string{".lock", "ckpt-000000005"}) {
		t.Errorf("%d of 9 refused, left %v", refused, names)
	}
	if err := s.DropAfter(4); err != nil {
		t.Fatal(err)
	}
	save(t, s, 4)
}

func listNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{KeepLast: 2, KeepBest: 2})
	for i, score := range []float64{0.1, 0.9, 0.3, math.NaN(), 0.9, 0.2, 0.0} {
		m := Meta{Step: int64(i + 1), Score: &score}
		if math.IsNaN(score) {
			m.Score = nil
		}
		if _, err := s.Save(m, newCounters(m.Step, 8)); err != nil {
			t.Fatal(err)
		}
	}
	var steps []int64
	list, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		steps = append(steps, e.Step)
		checkLoads(t, e.Path, e.Step, 8)
	}
	if !reflect.DeepEqual(steps, []int64{2, 5, 6, 7}) {
		t.Errorf("kept %v, want the last 6 and 7 and the best 2 and 5", steps)
	}
	if names := listNames(t, dir); len(names) != 5 {
		t.Errorf("left %v", names)
	}
}

func TestSameStepAgain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	save(t, s, 3)
	for i := range 3 {
		path := save(t, s, 3)
		if want := fmt.Sprintf("ckpt-000000003.%d", i+1); filepath.Base(path) != want {
			t.Errorf("path %s, want %s", path, want)
		}
		if list, _ := List(dir); len(list) != 1 || list[0].Path != path {
			t.Errorf("list %v", list)
		}
	}
	c, err := Latest(dir)
	if err != nil || filepath.Base(c.Path) != "ckpt-000000003.3" {
		t.Fatalf("latest %v", err)
	}
	c.Close()
}

func TestListIgnoresWhatIsNotACheckpoint(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ckpt-1", "ckpt-000000001.0", "ckpt-000000001x", "xckpt-000000001", "ckpt-0000000001", ".ckpt-000000001.tmp-abc", "ckpt-99999999999999999999"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ckpt-000000002"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("list %v %v", list, err)
	}
	s := openStore(t, dir, Options{})
	if slices.Contains(listNames(t, dir), ".ckpt-000000001.tmp-abc") {
		t.Error("a partial checkpoint was not removed")
	}
	save(t, s, 12345678901)
	if list, _ := List(dir); len(list) != 1 || list[0].Step != 12345678901 {
		t.Errorf("list %v", list)
	}
	if _, err := OpenStore(dir, Options{}); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("second store: %v", err)
	}
}

// testdata/v1 was written by the layout of version 1.
func TestOlderSchema(t *testing.T) {
	c, err := Latest("testdata/v1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Schema != Schema || c.Kind != "fit" || c.Step != 5 || c.Score != nil || c.Info["created"] != "2026-01-02T03:04:05Z" {
		t.Errorf("manifest %+v", c.Manifest)
	}
	got := newCounters(-1, 16)
	if err := c.Load(got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, newCounters(5, 16)) {
		t.Errorf("state %+v", got)
	}
	text, err := os.ReadFile("testdata/v1/ckpt-000000005/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []int{0, 3, -1} {
		dir := t.TempDir()
		other := bytes.Replace(text, []byte(`"schema": 1`), fmt.Appendf(nil, `"schema": %d`, schema), 1)
		if err := os.WriteFile(filepath.Join(dir, manifestFile), other, 0o600); err != nil {
			t.Fatal(err)
		}
		if schema == 3 {
			writeSum(t, dir, other)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has schema %d", schema)) {
			t.Errorf("schema %d: error %v", schema, err)
		}
	}
	for schema := 1; schema < Schema; schema++ {
		if migrations[schema] == nil {
			t.Errorf("no migration from schema %d", schema)
		}
	}
}

// FuzzManifest: no panic on foreign manifests of any version.
func FuzzManifest(f *testing.F) {
	v1, err := os.ReadFile("testdata/v1/ckpt-000000005/manifest.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(v1)
	f.Add([]byte(`{"schema":2,"kind":"","step":0,"score":null,"info":null,"files":{"arrays.safetensors":{"size":1,"sha256":""}},"sections":{"a":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, manifestFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		writeSum(t, dir, text)
		if m, _, err := readManifest(dir); err == nil {
			if _, err := json.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A network of five million parameters with two moments: 60 MB, hashed and synced.
func BenchmarkSave5MWithMoments(b *testing.B) {
	s, err := OpenStore(b.TempDir(), Options{KeepLast: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	data := make([]float32, 5_000_000)
	step := int64(0)
	b.SetBytes(int64(12 * len(data)))
	b.ReportAllocs()
	for b.Loop() {
		step++
		_, err := s.Save(Meta{Step: step}, state{save: func(w *Writer) error {
			w.PutFloat32s("params", data)
			w.PutFloat32s("m", data)
			w.PutFloat32s("v", data)
			return nil
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
}
