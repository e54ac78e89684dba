package vector_test

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// lot makes corridors up to a number of them.
type lot struct {
	most   int
	made   int
	closed int
}

func (*lot) Config() any  { return nil }
func (*lot) Close() error { return nil }
func (f *lot) New(envs.Split, int) (envs.Env, error) {
	if f.made == f.most {
		return nil, errors.New("no more")
	}
	f.made++
	e, err := corridor.New(corridor.Config{Cells: 64})
	return counted{e, f}, err
}

// counted counts Close and hides that a corridor can be saved.
type counted struct {
	envs.Env
	f *lot
}

func (c counted) Close() error {
	c.f.closed++
	return c.Env.Close()
}

// whole makes vectors by itself.
type whole struct {
	lot
	n int
	o vector.Options
}

func (w *whole) NewVector(split envs.Split, n int, o vector.Options) (vector.Env, error) {
	w.n, w.o = n, o
	return vector.Open(&w.lot, split, n, vector.Options{})
}

func TestOpen(t *testing.T) {
	f := &lot{most: 3}
	v, err := vector.Open(f, envs.Train, 3, vector.Options{Workers: 1, Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	if v.Len() != 3 || v.Spec().MaxSteps != 5 {
		t.Errorf("%d environments that end after %d steps, expected 3 and 5", v.Len(), v.Spec().MaxSteps)
	}
	if err := v.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := vector.SaveState(v); !errors.Is(err, envs.ErrCannotSave) {
		t.Errorf("saving what cannot be saved gives %v", err)
	}
	if err := errors.Join(v.Close(), v.Close()); err != nil || f.closed != 3 {
		t.Errorf("%d environments are closed, %v", f.closed, err)
	}

	if _, err := vector.Open(f, envs.Train, 0, vector.Options{}); err == nil {
		t.Error("a vector of no environments is opened")
	}
	for _, o := range []vector.Options{{Limit: -1}, {Workers: -1}} {
		f = &lot{most: 2}
		if _, err := vector.Open(f, envs.Train, 2, o); err == nil || f.closed != 2 {
			t.Errorf("options %+v: %d of 2 environments are closed, %v", o, f.closed, err)
		}
	}
	f = &lot{most: 2}
	if _, err := vector.Open(f, envs.Train, 3, vector.Options{}); err == nil || f.closed != 2 {
		t.Errorf("the third of three environments cannot be made: %d are closed, %v", f.closed, err)
	}
}

// pupils count the environments that learn that somebody is trained in them.
type pupils struct {
	envs.Factory
	told int
}

type pupil struct {
	envs.Env
	f *pupils
}

func (f *pupils) New(envs.Split, int) (envs.Env, error) {
	e, err := corridor.New(corridor.Config{Cells: 64})
	return pupil{e, f}, err
}

func (p pupil) Train() { p.f.told++ }

// TestOpenTrain: environments learn that somebody is trained in them, also below wrappers, and
// those of an evaluation are not.
func TestOpenTrain(t *testing.T) {
	c := wrap.Defaults()
	c.TimeLimit = 5
	f := &pupils{}
	wrapped, err := wrap.Apply(f, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []int{0, 3} {
		v, err := vector.Open(wrapped, envs.Train, 3, vector.Options{Workers: 1, Train: told > 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil || f.told != told {
			t.Errorf("%d of 3 environments know that somebody is trained in them, expected %d; %v", f.told, told, err)
		}
	}
}

func TestOpenAsksTheFactory(t *testing.T) {
	w := &whole{lot: lot{most: 9}}
	v, err := vector.Open(w, envs.Train, 4, vector.Options{Limit: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if w.n != 4 || w.o.Limit != 7 || v.Len() != 4 {
		t.Errorf("the factory was asked for %d environments with %+v", w.n, w.o)
	}
}

// nothing makes no vector, as implementations do that return their own pointer.
type nothing struct{ lot }

func (nothing) NewVector(envs.Split, int, vector.Options) (vector.Env, error) {
	return (*vector.Local)(nil), errors.New("there is none")
}

// TestOpenReturnsNoVectorThatIsNone opens a vector that cannot be made: nobody may close it.
func TestOpenReturnsNoVectorThatIsNone(t *testing.T) {
	c := wrap.Defaults()
	c.TimeLimit = 5
	wrapped, err := wrap.Apply(&nothing{lot{most: 1}}, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []envs.Factory{&nothing{lot{most: 1}}, wrapped} {
		if v, err := vector.Open(f, envs.Train, 2, vector.Options{}); v != nil || err == nil {
			t.Errorf("%v, %v", v, err)
		}
	}
}

// closedBook hides that a vector can be saved.
type closedBook struct{ vector.Env }

func TestSavingAVectorNeedsASaver(t *testing.T) {
	e, err := corridor.New(corridor.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.New([]envs.Env{e}, vector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	state, err := vector.SaveState(v)
	if err == nil {
		err = vector.LoadState(v, state)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := vector.SaveState(closedBook{v}); !errors.Is(err, envs.ErrCannotSave) {
		t.Errorf("saving gives %v", err)
	}
	if err := vector.LoadState(closedBook{v}, state); !errors.Is(err, envs.ErrCannotSave) {
		t.Errorf("loading gives %v", err)
	}
}
