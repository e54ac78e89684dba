//go:build cgo

package ort_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/floor"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// quiet fails the test if it leaves native objects behind.
func quiet(t *testing.T) {
	t.Helper()
	before := ort.Live()
	t.Cleanup(func() {
		if after := ort.Live(); after != before {
			t.Errorf("native objects: %+v before, %+v after", before, after)
		}
	})
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func build(t *testing.T, b *onnx.Builder) *onnx.Model {
	t.Helper()
	m, err := b.Model()
	must(t, err)
	return m
}

// session compiles m on an engine of its own; both are closed after the test.
func session(t *testing.T, o ort.Options, m *onnx.Model, eo engine.Options) engine.Session {
	t.Helper()
	e, err := ort.New(t.Context(), o)
	must(t, err)
	s, err := e.Compile(m, eo)
	if err != nil {
		e.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close(), e.Close()) })
	return s
}

func TestInfo(t *testing.T) {
	e := open(t)
	defer e.Close()
	info, err := ort.Info()
	must(t, err)
	if e.Name() != "ort" || info.APIVersion != capi.APIVersion || !slices.Contains(info.Providers, "CPUExecutionProvider") {
		t.Errorf("engine %q, %+v", e.Name(), info)
	}
	if info.Library.Source != library.SourceFlag && info.Library.Source != library.SourceEnvironment && info.Library.Source != library.SourceSystem &&
		info.Version != library.Version {
		t.Errorf("version %s, expected %s", info.Version, library.Version)
	}
	if !strings.HasPrefix(info.Version, "1.") || info.Library.Version != "" && !strings.HasPrefix(info.Version, info.Library.Version) {
		t.Errorf("the library says %s, its headers %s", info.Version, info.Library.Version)
	}
	if !strings.Contains(info.Build, "ORT") {
		t.Errorf("build %q", info.Build)
	}
}

// One process loads one library.
func TestSecondLibraryIsRefused(t *testing.T) {
	e := open(t)
	defer e.Close()
	info, err := ort.Info()
	must(t, err)
	same, err := ort.New(t.Context(), ort.Options{Library: library.Options{Path: info.Library.Path}})
	must(t, err)
	must(t, same.Close())
	data, err := os.ReadFile(info.Library.Path)
	must(t, err)
	other := filepath.Join(t.TempDir(), filepath.Base(info.Library.Path))
	must(t, os.WriteFile(other, data, 0o755))
	for _, path := range []string{other, filepath.Join(t.TempDir(), "absent.so")} {
		if _, err := ort.New(t.Context(), ort.Options{Library: library.Options{Path: path}}); err == nil || errors.Is(err, ort.ErrUnavailable) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

func TestConcurrentNew(t *testing.T) {
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			e, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
			if err == nil {
				err = e.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	must(t, errs...)
}

func TestEngineWithOpenSessionStaysOpen(t *testing.T) {
	quiet(t)
	e := open(t)
	s, err := e.Compile(policy(t, 1, 2, 3, 1), engine.Options{})
	must(t, err)
	if err := e.Close(); err == nil || !strings.Contains(err.Error(), "1 sessions") {
		t.Errorf("close with an open session: %v", err)
	}
	must(t, s.Close(), e.Close())
}

func TestLiveObjects(t *testing.T) {
	quiet(t)
	before := ort.Live()
	e := open(t)
	s, err := e.Compile(policy(t, 1, 2, 3, 1), engine.Options{})
	must(t, err)
	in, out := []*tensor.Tensor{tensor.New(tensor.Float32, 1, 2)}, []*tensor.Tensor{tensor.New(tensor.Float32, 1, 1)}
	b, err := s.Bind(out, in)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must(t, s.Run(ctx, out, in))
	want := ort.Objects{Sessions: before.Sessions + 1, Bindings: before.Bindings + 1, Values: before.Values + 2, RunOptions: before.RunOptions + 1}
	if got := ort.Live(); got != want {
		t.Errorf("native objects %+v, expected %+v", got, want)
	}
	must(t, b.Close(), s.Close(), e.Close())
}

// Failing calls free what they made.
func TestErrorsDoNotLeak(t *testing.T) {
	quiet(t)
	e := open(t)
	b := onnx.NewBuilder("sum", onnx.DefaultOpset)
	free := func(name string) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol(name)}}
	}
	x, y := b.Input("x", free("n")), b.Input("y", free("m"))
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{x}), "copy"), free("n"))
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, y}), "sum"), free("k"))
	s, err := e.Compile(build(t, b), engine.Options{})
	must(t, err)
	two, three := tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 3)
	for range 20 {
		out := make([]*tensor.Tensor, 2)
		if err := s.Run(t.Context(), out, []*tensor.Tensor{two, three}); err == nil || out[0] != nil || out[1] != nil {
			t.Fatalf("run: %v, outputs %v", err, out)
		}
		if _, err := s.Bind([]*tensor.Tensor{two, tensor.New(tensor.Float64, 2)}, []*tensor.Tensor{two, two}); err == nil {
			t.Fatal("bound a tensor of another type")
		}
		bad := policy(t, 1, 2, 3, 1)
		bad.Graph.Node[0].Input[0] = "ghost"
		if _, err := e.Compile(bad, engine.Options{}); err == nil {
			t.Fatal("compiled a model that uses an undefined value")
		}
	}
	must(t, s.Close(), e.Close())
}

// product is y = x·f for a scalar f.
func product(t *testing.T) *onnx.Model {
	b := onnx.NewBuilder("product", onnx.DefaultOpset)
	x, f := b.Input("x", onnx.TypeOf(tensor.Float32, 8)), b.Input("f", onnx.TypeOf(tensor.Float32))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, f}), "y"), onnx.TypeOf(tensor.Float32, 8))
	return build(t, b)
}

func TestDenormals(t *testing.T) {
	quiet(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mode := capi.FloatMode()
	x, f := tensor.New(tensor.Float32, 8), tensor.Scalar(float32(1e-3))
	for i := range x.Float32s() {
		x.Float32s()[i] = 1e-37
	}
	denormal := float32(1e-37) * float32(1e-3)
	if denormal == 0 || denormal >= math.SmallestNonzeroFloat32*(1<<23) {
		t.Fatalf("%g is no denormal number", denormal)
	}
	for _, threads := range []int{1, 2} {
		for _, keep := range []bool{false, true} {
			want := map[bool]float32{true: denormal}[keep]
			s := session(t, ort.Options{KeepDenormals: keep}, product(t), engine.Options{Threads: threads})
			out := []*tensor.Tensor{nil}
			bound := tensor.New(tensor.Float32, 8)
			b, err := s.Bind([]*tensor.Tensor{bound}, []*tensor.Tensor{x, f})
			must(t, err)
			must(t, s.Run(t.Context(), out, []*tensor.Tensor{x, f}), b.Run(), floor.Runs(b, make([]int64, 3)), b.Close())
			for _, got := range append(slices.Clone(out[0].Float32s()), bound.Float32s()...) {
				if got != want {
					t.Errorf("keep %v, %d threads: %g, expected %g", keep, threads, got, want)
				}
			}
			if now := capi.FloatMode(); now&^0x3f != mode&^0x3f { // the low bits record exceptions
				t.Errorf("keep %v, %d threads: the thread's floating-point mode went from %#x to %#x", keep, threads, mode, now)
			}
		}
	}
}

// Large initializers reach ONNX Runtime by address, with the same result.
func TestHandedOverInitializers(t *testing.T) {
	quiet(t)
	in := []*tensor.Tensor{tensor.New(tensor.Float32, 2, 17)}
	for i := range in[0].Float32s() {
		in[0].Float32s()[i] = float32(i) / 10
	}
	m := policy(t, 2, 17, 32, 6)
	before := m.Clone()
	var want []float32
	for _, each := range []int{1 << 30, 0, 512} {
		total := 0
		if each == 1<<30 {
			total = each
		}
		ort.SetHandOver(t, total, each)
		s := session(t, ort.Options{}, m, engine.Options{})
		out := make([]*tensor.Tensor, 1)
		must(t, s.Run(t.Context(), out, in))
		if want == nil {
			want = out[0].Float32s()
		}
		if !slices.Equal(out[0].Float32s(), want) {
			t.Errorf("from %d bytes on: %v, expected %v", each, out[0].Float32s(), want)
		}
	}
	for i, p := range m.Graph.Initializer {
		if !slices.Equal(p.RawData, before.Graph.Initializer[i].RawData) || p.DataLocation != 0 {
			t.Errorf("initializer %q was changed", p.Name)
		}
	}
}

// A model in memory whose weights lie in files needs to be told where.
func TestExternalDataInBaseDir(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	data := binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5))
	must(t, os.WriteFile(filepath.Join(dir, "w.bin"), data, 0o644))
	model := func(location string) *onnx.Model {
		b := onnx.NewBuilder("external", onnx.DefaultOpset)
		x := b.Input("x", onnx.TypeOf(tensor.Float32, 1))
		b.Graph().Initializer = []*onnx.TensorProto{{Name: "w", DataType: int32(tensor.Float32), Dims: []int64{1},
			DataLocation: onnx.TensorProto_EXTERNAL, ExternalData: []*onnx.MetadataProp{{Key: "location", Value: location}}}}
		b.Output(b.Rename(b.Op("Add", []onnx.Value{x, "w"}), "y"), onnx.TypeOf(tensor.Float32, 1))
		return build(t, b)
	}
	s := session(t, ort.Options{}, model("w.bin"), engine.Options{BaseDir: dir})
	out := make([]*tensor.Tensor, 1)
	must(t, s.Run(t.Context(), out, []*tensor.Tensor{tensor.Of([]float32{1}, 1)}))
	if out[0].Float32s()[0] != 3.5 {
		t.Errorf("got %v, expected 3.5", out[0].Float32s())
	}
	e := open(t)
	defer e.Close()
	sub := filepath.Join(dir, "sub")
	must(t, os.Mkdir(sub, 0o755))
	for name, m := range sorted.All(map[string]*onnx.Model{"missing": model("absent.bin"), "outside": model("../w.bin")}) {
		if s, err := e.Compile(m, engine.Options{BaseDir: sub}); err == nil {
			s.Close()
			t.Errorf("%s file was accepted", name)
		} else if !strings.Contains(err.Error(), `w`) {
			t.Errorf("%s file: %v", name, err)
		}
	}
}

func TestProfile(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "profile")
	e := open(t)
	defer e.Close()
	s, err := e.Compile(policy(t, 1, 2, 3, 1), engine.Options{Profile: prefix})
	must(t, err)
	must(t, s.Run(t.Context(), make([]*tensor.Tensor, 1), []*tensor.Tensor{tensor.New(tensor.Float32, 1, 2)}), s.Close())
	files, err := filepath.Glob(prefix + "*.json")
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("profiles %v, expected one", files)
	}
	if data, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(data), "Gemm") {
		t.Errorf("profile of %d bytes, %v; expected it to name Gemm", len(data), err)
	}
}

func TestBadOptions(t *testing.T) {
	quiet(t)
	e := open(t)
	defer e.Close()
	for _, o := range []engine.Options{{Threads: -1}, {Optimize: 99}} {
		if s, err := e.Compile(policy(t, 1, 2, 3, 1), o); err == nil {
			s.Close()
			t.Errorf("%+v was accepted", o)
		}
	}
}

// Many goroutines ending each other's contexts: no run is lost or mixed up.
func TestConcurrentCancellation(t *testing.T) {
	quiet(t)
	s := session(t, ort.Options{}, product(t), engine.Options{})
	const routines, runs = 8, 60
	errs := make([]error, routines)
	done := make([]int, routines)
	var wg sync.WaitGroup
	for g := range routines {
		wg.Go(func() {
			x, f, y := tensor.New(tensor.Float32, 8), tensor.Scalar(float32(g)), tensor.New(tensor.Float32, 8)
			x.Float32s()[3] = 2
			for range runs {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				err := s.Run(ctx, []*tensor.Tensor{y}, []*tensor.Tensor{x, f})
				cancel()
				switch {
				case err == nil && y.Float32s()[3] == float32(2*g), errors.Is(err, context.Canceled):
					done[g]++
				default:
					errs[g] = errors.Join(err, errors.New("wrong result"))
				}
			}
		})
	}
	wg.Wait()
	must(t, errs...)
	for g, n := range done {
		if n != runs {
			t.Errorf("goroutine %d: %d runs ended well, expected %d", g, n, runs)
		}
	}
}

func TestCloseWaitsForRuns(t *testing.T) {
	quiet(t)
	e := open(t)
	s, err := e.Compile(product(t), engine.Options{})
	must(t, err)
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	errs := make([]error, 4)
	for g := range errs {
		wg.Go(func() {
			x, f := tensor.New(tensor.Float32, 8), tensor.Scalar(float32(1))
			for i := 0; ; i++ {
				if err := s.Run(context.Background(), make([]*tensor.Tensor, 1), []*tensor.Tensor{x, f}); err != nil {
					errs[g] = err
					return
				}
				if i == 0 {
					started <- struct{}{}
				}
			}
		})
	}
	for range errs {
		<-started
	}
	must(t, s.Close())
	wg.Wait()
	for _, err := range errs {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("run ended with %v, expected %v", err, engine.ErrClosed)
		}
	}
	must(t, e.Close())
}

// A binding that is dropped without Close is a leak, not a crash: C still knows
// the addresses of its buffers.
func TestDroppedBindingKeepsItsMemory(t *testing.T) {
	quiet(t)
	s := session(t, ort.Options{}, product(t), engine.Options{})
	before := ort.Live().Bindings
	for range 3 {
		x, f, y := tensor.New(tensor.Float32, 8), tensor.Scalar(float32(3)), tensor.New(tensor.Float32, 8)
		_, err := s.Bind([]*tensor.Tensor{y}, []*tensor.Tensor{x, f})
		must(t, err)
	}
	for range 5 {
		runtime.GC()
	}
	if n := ort.Live().Bindings - before; n != 3 {
		t.Errorf("%d bindings are open, expected 3", n)
	}
	if n := ort.CloseBindings(t); n != 3 {
		t.Errorf("%d bindings were kept, expected 3", n)
	}
}

func TestStringsCannotBeBound(t *testing.T) {
	quiet(t)
	b := onnx.NewBuilder("words", onnx.DefaultOpset)
	x := b.Input("x", onnx.TypeOf(tensor.String, 1))
	b.Output(b.Rename(x, "y"), onnx.TypeOf(tensor.String, 1))
	s := session(t, ort.Options{}, build(t, b), engine.Options{})
	one := []*tensor.Tensor{tensor.New(tensor.String, 1)}
	if _, err := s.Bind(one, one); err == nil || !strings.Contains(err.Error(), "use Run") {
		t.Errorf("error %v", err)
	}
}

func TestFloor(t *testing.T) {
	quiet(t)
	s := session(t, ort.Options{}, product(t), engine.Options{})
	x, f, y := tensor.New(tensor.Float32, 8), tensor.Scalar(float32(3)), tensor.New(tensor.Float32, 8)
	x.Float32s()[0] = 5
	b, err := s.Bind([]*tensor.Tensor{y}, []*tensor.Tensor{x, f})
	must(t, err)
	ns := make([]int64, 50)
	must(t, floor.Runs(b, ns), floor.Runs(b, nil))
	if y.Float32s()[0] != 15 || slices.Min(ns) <= 0 {
		t.Errorf("y %v after runs of %v ns", y.Float32s(), ns)
	}
	must(t, b.Close())
	if err := floor.Runs(b, ns); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("closed binding: %v", err)
	}
	if err := floor.Runs(nil, ns); !errors.Is(err, floor.ErrForeign) {
		t.Errorf("no binding: %v", err)
	}
}

func TestLayoutOfWrapper(t *testing.T) { must(t, ort.CheckLayout()) }
