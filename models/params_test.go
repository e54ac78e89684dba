package models

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func network(roles ...Role) *Network {
	net := &Network{}
	for i, r := range roles {
		net.Specs = append(net.Specs, Spec{Name: string(rune('a' + i)), Shape: []int{i + 1, 3}, Role: r})
	}
	return net
}

func params(t *testing.T, net *Network, frozen *Segment) *Params {
	t.Helper()
	p, err := NewParams(net, frozen)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSegmentsAreOrderedAndAligned(t *testing.T) {
	p := params(t, network(Frozen, Trainable, Buffer, Trainable), nil)
	defer p.Close()
	var got []string
	for _, s := range p.Segments() {
		got = append(got, s.Role.String())
		for i, spec := range s.Specs() {
			got = append(got, spec.Name)
			v := s.View(i)
			off, n := s.Range(i)
			if off%16 != 0 || n != spec.Len() || v != p.View(spec.Name) {
				t.Errorf("%s lies at %d, %d elements", spec.Name, off, n)
			}
			x := s.Floats()[off : off+n]
			if &x[0] != &v.Float32s()[0] || uintptr(unsafe.Pointer(&x[0]))%tensor.Align != 0 {
				t.Errorf("the view of %s is not its range of the segment, or not aligned", spec.Name)
			}
		}
	}
	if want := []string{"trainable", "b", "d", "frozen", "a", "buffer", "c"}; !slices.Equal(got, want) {
		t.Errorf("segments %v, want %v", got, want)
	}
	if p.View("z") != nil || p.Segment(Buffer) == nil || params(t, network(Trainable), nil).Segment(Buffer) != nil {
		t.Error("what is not there must be nil")
	}
}

func TestLikeHasTheLayoutAndZeroes(t *testing.T) {
	p := params(t, network(Trainable, Trainable), nil)
	defer p.Close()
	s := p.Segment(Trainable)
	for i := range s.Floats() {
		s.Floats()[i] = 1
	}
	l, err := s.Like()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.SameLayout(s) || len(l.Floats()) != len(s.Floats()) {
		t.Error("the layout differs")
	}
	for i := range s.Specs() {
		a, n := s.Range(i)
		if b, k := l.Range(i); a != b || n != k {
			t.Errorf("parameter %d lies at %d and at %d", i, a, b)
		}
	}
	for _, v := range l.Floats() {
		if v != 0 {
			t.Fatal("it is not zeroed")
		}
	}
}

// TestSharedFrozenSegments: several networks hold one base; the last one that lets go frees it, and
// none can write to it.
func TestSharedFrozenSegments(t *testing.T) {
	net := network(Frozen, Trainable)
	base := params(t, net, nil)
	a, b := floats(1, 3), floats(2, 3)
	if err := base.Load(map[string]*tensor.Tensor{"a": a, "b": b}); err != nil {
		t.Fatal(err)
	}
	frozen := base.Segment(Frozen)
	other := params(t, net, frozen)
	if base.View("a") != other.View("a") || base.View("b") == other.View("b") {
		t.Error("the frozen parameter must be one, the trainable ones two")
	}
	if err := other.Set("a", a); err == nil || !strings.Contains(err.Error(), `"a": it is shared`) {
		t.Errorf("error %v", err)
	}
	changed := floats(1, 3)
	changed.Float32s()[0] = 99
	for _, values := range []map[string]*tensor.Tensor{{"b": b}, {"a": changed, "b": b}} {
		if err := other.Load(values); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(base.View("a").Float32s(), a.Float32s()) {
		t.Error("loading one network has changed the base of another")
	}
	if err := other.CopyFrom(base); err != nil {
		t.Error(err)
	}
	if err := base.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(other.View("a").Float32s(), a.Float32s()) {
		t.Error("the base is gone while somebody holds it")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Close(); err == nil || !strings.Contains(err.Error(), "it is closed") {
		t.Errorf("error %v", err)
	}
	base = params(t, net, nil)
	defer base.Close()
	if _, err := NewParams(network(Frozen, Frozen), base.Segment(Frozen)); err == nil || !strings.Contains(err.Error(), "does not hold exactly") {
		t.Errorf("error %v", err)
	}
}

func TestLoadNamesWhatDoesNotFit(t *testing.T) {
	p := params(t, network(Trainable, Trainable), nil)
	defer p.Close()
	for want, values := range sorted.All(map[string]map[string]*tensor.Tensor{
		`"b" has no value`:          {"a": floats(1, 3)},
		`"z": the network has none`: {"a": floats(1, 3), "b": floats(2, 3), "z": floats(1)},
		`set parameter "b"`:         {"a": floats(1, 3), "b": floats(3, 2)},
		`set parameter "a"`:         {"a": tensor.New(tensor.Int64, 1, 3), "b": floats(2, 3)},
	}) {
		if err := p.Load(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestCopyFromNeedsTheSameLayout(t *testing.T) {
	p, q := params(t, network(Trainable, Buffer), nil), params(t, network(Trainable, Buffer), nil)
	defer p.Close()
	defer q.Close()
	for _, s := range q.Segments() {
		for i := range s.Specs() {
			for k := range s.View(i).Float32s() {
				s.View(i).Float32s()[k] = rand.Float32()
			}
		}
	}
	if err := p.CopyFrom(q); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if !slices.Equal(p.View(name).Float32s(), q.View(name).Float32s()) {
			t.Errorf("%s was not copied", name)
		}
	}
	for _, roles := range [][]Role{{Trainable}, {Trainable, Frozen}, {Buffer, Trainable}} {
		other := params(t, network(roles...), nil)
		if err := p.CopyFrom(other); err == nil {
			t.Errorf("roles %v were copied into trainable, buffer", roles)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCloseWaitsForBindings: an arena that an engine holds stays, and Close may be repeated.
func TestCloseWaitsForBindings(t *testing.T) {
	p := params(t, network(Trainable, Frozen), nil)
	arena := p.View("a").Arena()
	if err := arena.Retain(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err == nil {
		t.Fatal("closed while it is bound")
	}
	arena.Release()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closing what is closed: %v", err)
	}
}
