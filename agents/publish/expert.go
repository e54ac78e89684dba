package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Experts opens experts for a factory: models of files as experts in a factory's environments,
// joined to them as [OpenActor] does. What experts with adapters over one base make of a window by
// the base alone is computed once, for all of them and all environments of the factory.
func Experts() (open meta.Opener, free func() error) {
	x := &experts{}
	return x.open, x.caches.Close
}

// experts are those of one factory.
type experts struct{ caches prefix.Caches }

// baseParameters are what a published model has of its base, and of constants that layers are made
// with.
var baseParameters = []string{"encoder.", "const/"}

// Features that a base computes of windows are kept where that saves a part of keepShare of a
// model's products and takes no more than keepBytes.
const (
	keepShare = 0.1
	keepBytes = 1 << 30
)

func (x *experts) open(ctx context.Context, path string, f envs.Factory, split envs.Split, c engine.Compiler) (vector.Policy, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, fmt.Errorf("open policy: %w", err)
	}
	s, err := splitOf(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s != nil {
		p, err := x.kept(ctx, path, m, s, f, split, c)
		if err == nil || !errors.Is(err, prefix.ErrRowsDepend) && !errors.Is(err, errTooLarge) {
			return p, err
		}
	}
	return OpenActor(ctx, path, f, split, c, 1)
}

// errTooLarge says that what is kept would take too much memory.
var errTooLarge = errors.New("too large to be kept")

// kept opens a model that is split.
func (x *experts) kept(ctx context.Context, path string, m *onnx.Model, s *prefix.Split, f envs.Factory, split envs.Split, c engine.Compiler) (_ vector.Policy, err error) {
	p, err := served.New(ctx, s.Rest[0].Model, c, 1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var open []*prefix.Cache
	release := func() error {
		var errs []error
		for _, one := range open {
			errs = append(errs, x.caches.Release(one))
		}
		return errors.Join(errs...)
	}
	a, err := join(p, f, split, func(field string, w *envs.Window) (list []served.Kept, err error) {
		if field != windowOf(m) {
			return nil, nil
		}
		for _, part := range s.Parts {
			if prefix.Bytes(part, w) > keepBytes {
				return nil, errTooLarge
			}
			one, err := x.caches.Open(c, part, func(string) *tensor.Tensor { return nil }, w)
			if err != nil {
				return nil, err
			}
			open = append(open, one)
			k := served.Kept{Field: field, Cache: one}
			for _, o := range part.Outputs {
				k.Inputs = append(k.Inputs, prefix.InputName(field, o.Index))
			}
			list = append(list, k)
		}
		return list, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), p.Close(), release())
	}
	return &keeping{a, release}, nil
}

// keeping is an expert that gives up its caches when it is closed.
type keeping struct {
	*served.Actor
	release func() error
}

// Close implements vector.Policy.
func (k *keeping) Close() error { return errors.Join(k.Actor.Close(), k.release()) }

// splitOf is a model in what its base makes of windows and the rest; nil for one that has no base,
// or whose windows are not scaled inside, and where it would not pay.
func splitOf(m *onnx.Model) (*prefix.Split, error) {
	if windowOf(m) == "" {
		return nil, nil
	}
	net, err := models.WithSpecs(m, nil)
	if err != nil {
		return nil, err
	}
	s, err := prefix.Of([]*models.Network{net}, prefix.Options{
		Windows: []string{windowOf(m)}, Batch: layer.Batch, Constant: func(string) (string, bool) { return "", false },
		Fixed: func(name string) bool {
			for _, before := range baseParameters {
				if strings.HasPrefix(name, before) {
					return true
				}
			}
			return false
		},
	})
	if s == nil || err != nil {
		return nil, err
	}
	saved := 0.0
	for _, part := range s.Parts {
		saved += part.FLOPs
	}
	if saved < keepShare*program.FLOPs(m, map[string]int{layer.Batch: 1}) {
		return nil, nil
	}
	return s, nil
}

// windowOf is the input of a published model that is a window of a table; empty where there is
// none.
func windowOf(m *onnx.Model) string {
	list, _ := m.Meta(bake.MetaScales)
	name, _, _ := strings.Cut(list, ",")
	return name
}
