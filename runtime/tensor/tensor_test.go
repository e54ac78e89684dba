package tensor

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestHalfConversionsRoundTripEveryBitPattern(t *testing.T) {
	n := 0
	for h := range 1 << 16 {
		f := Float16ToFloat32(uint16(h))
		if f != f {
			if back := Float32ToFloat16(f); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("half %#04x: NaN came back as %#04x", h, back)
			}
		} else if back := Float32ToFloat16(f); back != uint16(h) {
			t.Fatalf("half %#04x -> %g -> %#04x", h, f, back)
		}
		g := BFloat16ToFloat32(uint16(h))
		if g == g {
			if back := Float32ToBFloat16(g); back != uint16(h) {
				t.Fatalf("bfloat16 %#04x -> %g -> %#04x", h, g, back)
			}
		}
		n++
	}
	if n != 65536 {
		t.Fatalf("compared %d patterns", n)
	}
}

func TestHalfRounding(t *testing.T) {
	for _, c := range []struct {
		f float32
		h uint16
	}{{1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02}, {65504, 0x7bff}, {65520, 0x7c00}, {0x1p-24, 1}, {0x1p-25, 0}, {0x1.8p-25, 1}, {-2, 0xc000}, {float32(math.Inf(-1)), 0xfc00}} {
		if got := Float32ToFloat16(c.f); got != c.h {
			t.Errorf("Float32ToFloat16(%g) = %#04x, want %#04x", c.f, got, c.h)
		}
	}
}

func TestLenRefusesOverflowAndNegatives(t *testing.T) {
	for _, s := range [][]int{{-1}, {math.MaxInt, 2}, {1 << 31, 1 << 31, 4}} {
		if _, err := Len(s); err == nil {
			t.Errorf("Len(%v) gave no error", s)
		}
	}
	for _, s := range [][]int{{0, 4, 1 << 62}, {1 << 62, 4, 0}} {
		if n, err := Len(s); n != 0 || err != nil {
			t.Errorf("Len(%v) = %d, %v", s, n, err)
		}
	}
	if n, err := Len(nil); n != 1 || err != nil {
		t.Errorf("Len(nil) = %d, %v", n, err)
	}
}

func TestArenaViewsShareAlignedMemory(t *testing.T) {
	a, err := NewArena(1000)
	if err != nil {
		t.Fatal(err)
	}
	v, err := a.Tensor(Float32, 128, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	v.Float32s()[5] = 7
	if got := a.Float32s(128, 6)[5]; got != 7 {
		t.Fatalf("arena holds %g, want 7", got)
	}
	if p := uintptr(unsafe.Pointer(&v.Float32s()[0])); p%Align != 0 {
		t.Fatalf("view at %#x is not aligned", p)
	}
	for _, off := range []int{-64, 4, 1 << 40} {
		if _, err := a.Tensor(Float32, off, 2); err == nil {
			t.Errorf("view at offset %d was allowed", off)
		}
	}
	if err := a.Retain(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); !errors.Is(err, ErrArenaBusy) {
		t.Fatalf("close while retained: %v", err)
	}
	v.Float32s()[0] = 1
	a.Release()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
	if err := a.Retain(); err == nil {
		t.Fatal("retained a closed arena")
	}
	defer func() {
		if r, ok := recover().(string); !ok || !strings.Contains(r, "closed arena") {
			t.Fatalf("use after close: recovered %v", r)
		}
	}()
	_ = v.Float32s()
}

func TestNewIsAlignedAndCloneIsIndependent(t *testing.T) {
	x := New(Float32, 3, 5)
	if p := uintptr(unsafe.Pointer(&x.Bytes()[0])); p%Align != 0 {
		t.Fatalf("tensor at %#x is not aligned", p)
	}
	y := x.Clone()
	y.Float32s()[0] = 1
	if x.Float32s()[0] != 0 {
		t.Fatal("clone shares memory")
	}
	if err := x.CopyFrom(y); err != nil || x.Float32s()[0] != 1 {
		t.Fatalf("copy: %v", err)
	}
	if err := x.CopyFrom(New(Float32, 15)); err == nil {
		t.Fatal("copied between shapes")
	}
	if b := New(Int4, 3); len(b.Bytes()) != 2 {
		t.Fatalf("3 int4 take %d bytes", len(b.Bytes()))
	}
}

func TestDTypeNamesParse(t *testing.T) {
	n := 0
	for d := range sorted.All(dtypeInfo) {
		if d == Undefined {
			continue
		}
		if got, err := ParseDType(d.String()); err != nil || got != d {
			t.Errorf("ParseDType(%q) = %v, %v", d, got, err)
		}
		n++
	}
	if n != 26 {
		t.Errorf("%d element types, want 26", n)
	}
}
