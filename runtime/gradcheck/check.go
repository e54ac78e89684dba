package gradcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Problem is a model and the point at which its gradient is checked. Nothing in it is changed.
type Problem struct {
	// Model computes in float32 (or, where it converts itself, in any types).
	Model *onnx.Model
	// Inputs gives the value of every graph input that has no initializer.
	Inputs map[string]*tensor.Tensor
	// Wrt names the graph inputs and initializers to differentiate with respect to.
	Wrt []string
	// Outputs names the outputs that enter the loss; nil means all floating-point ones.
	Outputs []string
	// Stop is passed to the differentiation.
	Stop []string
	// Name is that of the objective. It is needed when the model has gradients of its own, so that
	// second derivatives get names that are free.
	Name string
}

// Options tune a check. The zero value is right for most problems.
type Options struct {
	// Seed selects the random tangents and cotangents.
	Seed uint64
	// Products is the number of inner products; 0 means 2.
	Products int
	// Full is the largest total number of elements that are also checked one by one; 0 means 32,
	// negative means never.
	Full int
	// Loose multiplies the tolerances; 0 means 1. For functions of extreme curvature.
	Loose float64
	// Zero asserts that the model is constant around the point and its gradient exactly zero.
	Zero bool
	// SingleOnly leaves out float64, for models whose meaning depends on the type.
	SingleOnly bool
	// OwnForward takes the differences of the forward pass that the gradient model contains, not of
	// the model itself: for operators that the engine executes otherwise than the specification
	// says and that the differentiation expands.
	OwnForward bool
	// Compile is passed to the engine.
	Compile engine.Options
}

// Result tells what was compared.
type Result struct {
	// Comparisons counts scalar comparisons; MaxError is the largest relative error among them,
	// Level the precision reached.
	Comparisons int
	MaxError    float64
	Level       Level
}

// Error is a disagreement between gradient and differences.
type Error struct {
	// What says which quantity: an inner product, one element, or a tensor.
	What      string
	Got, Want float64
	// Rel is the relative error and Tol what was accepted.
	Rel, Tol float64
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: gradient gives %.9g, differences give %.9g: relative error %.2g exceeds %.2g", e.What, e.Got, e.Want, e.Rel, e.Tol)
}

// Check differentiates the model and compares. A disagreement is an [*Error]; the Result is valid
// then too. Other errors say that the problem cannot be built or run.
func Check(ctx context.Context, c engine.Compiler, p Problem, o Options) (Result, error) {
	if o.Products == 0 {
		o.Products = 2
	}
	if o.Full == 0 {
		o.Full = 32
	}
	if o.Loose == 0 {
		o.Loose = 1
	}
	k, err := newChecker(ctx, c, p, o)
	if err != nil {
		return Result{}, err
	}
	defer k.close()
	err = k.run()
	return k.res, err
}

type checker struct {
	ctx context.Context
	o   Options
	rng *rand.Rand
	// f evaluates the model for differences; g32 and g64 the gradient. g64 is nil unless the level
	// is double.
	f, g32, g64 *program
	point       map[string]*tensor.Tensor
	wrt, outs   []string
	prefix      string
	// alone compiles the float32 gradient with respect to one value.
	alone func(w string) (*program, error)
	res   Result
}

func (k *checker) close() {
	for _, p := range []*program{k.f, k.g32, k.g64} {
		if p != nil {
			p.session.Close()
		}
	}
}

func (k *checker) run() error {
	var errs []error
	for range k.o.Products {
		if err := k.product(); err != nil {
			errs = append(errs, err)
			break
		}
	}
	n := 0
	for _, w := range k.wrt {
		n += k.point[w].Len()
	}
	if n <= k.o.Full && len(errs) == 0 {
		errs = append(errs, k.elements())
	}
	if len(k.wrt) > 1 && len(errs) == 0 {
		errs = append(errs, k.oneByOne())
	}
	return errors.Join(errs...)
}

// oneByOne differentiates with respect to each value alone, where rules leave out what is not asked
// for, and compares with the gradient of all together.
func (k *checker) oneByOne() error {
	in := k.withOnes()
	all, err := k.read(k.g32, in, k.wrt...)
	if err != nil {
		return err
	}
	for _, w := range k.wrt {
		p, err := k.alone(w)
		if err != nil {
			return fmt.Errorf("with respect to %q alone: %w", w, err)
		}
		g, err := k.read(p, in, w)
		p.session.Close()
		if err != nil {
			return fmt.Errorf("with respect to %q alone: %w", w, err)
		}
		most := 0.0
		for _, v := range all[w] {
			most = max(most, math.Abs(v))
		}
		for i, v := range all[w] {
			if err := k.compare(fmt.Sprintf("gradient of %q alone, element %d, against all together", w, i), g[w][i], v, most, agreeTol*k.o.Loose); err != nil {
				return err
			}
		}
	}
	return nil
}

// grads runs the gradient at the point for one cotangent, in the best precision and in float32, and
// compares the two.
func (k *checker) grads(c map[string][]float64) (map[string][]float64, error) {
	in := map[string]*tensor.Tensor{}
	for name, t := range k.point {
		in[name] = t
	}
	for name, v := range c {
		in[cotangent(name)] = k.like(name, v)
	}
	g32, err := k.read(k.g32, in, k.wrt...)
	if err != nil || k.g64 == nil {
		return g32, err
	}
	g64, err := k.read(k.g64, in, k.wrt...)
	if err != nil {
		return nil, err
	}
	for _, w := range k.wrt {
		// Points and cotangents are of order 1, so that a gradient far below is what is left of
		// terms that cancel.
		most := 1e-2
		for _, v := range g64[w] {
			most = max(most, math.Abs(v))
		}
		for i, v := range g64[w] {
			what := fmt.Sprintf("float32 gradient of %q element %d against float64", w, i)
			if err := k.compare(what, g32[w][i], v, most, agreeTol*k.o.Loose); err != nil {
				return nil, err
			}
		}
	}
	return g64, nil
}

// read runs a gradient and returns the gradients of the values wrt.
func (k *checker) read(p *program, in map[string]*tensor.Tensor, wrt ...string) (map[string][]float64, error) {
	out, err := p.run(k.ctx, in)
	if err != nil {
		return nil, err
	}
	g := map[string][]float64{}
	for _, w := range wrt {
		name := k.prefix + w
		t := out[name]
		if t == nil {
			return nil, fmt.Errorf("the gradient model has no output %q", name)
		}
		if g[w], err = floats(t); err != nil {
			return nil, err
		}
		if len(g[w]) != k.point[w].Len() {
			return nil, fmt.Errorf("the gradient of %q is %v but the value is %v", w, t, k.point[w])
		}
	}
	return g, nil
}

// like makes a float32 cotangent for an output of the forward model; programs widen it as they
// need.
func (k *checker) like(out string, v []float64) *tensor.Tensor {
	t := tensor.New(tensor.Float32, k.f.shapes[out]...)
	for i, x := range v {
		t.Float32s()[i] = float32(x)
	}
	return t
}

// cotangents draws a cotangent of each output and returns the gradients for them.
func (k *checker) cotangents() (c, grads map[string][]float64, err error) {
	c = map[string][]float64{}
	for _, out := range k.outs {
		c[out] = k.direction(length(k.f.shapes[out]))
	}
	grads, err = k.grads(c)
	return c, grads, err
}

// product compares ⟨t, Jᵀc⟩ with ⟨J·t, c⟩.
func (k *checker) product() error {
	c, g, err := k.cotangents()
	if err != nil {
		return err
	}
	t := map[string][]float64{}
	var lhs, scale float64
	for _, w := range k.wrt {
		t[w] = k.direction(k.point[w].Len())
		for i, gi := range g[w] {
			lhs += gi * t[w][i]
			scale += gi * gi * t[w][i] * t[w][i]
			if k.o.Zero && gi != 0 {
				return k.compare(fmt.Sprintf("gradient of %q element %d", w, i), gi, 0, 1, 0)
			}
		}
	}
	rhs, rough, err := k.derivative(t, c)
	if err != nil {
		return err
	}
	scale = max(math.Sqrt(scale), rough, math.Abs(lhs), math.Abs(rhs))
	return k.compare("inner product", lhs, rhs, scale, k.tol())
}

func (k *checker) tol() float64 {
	if k.o.Zero {
		return 0
	}
	return k.res.Level.Tol * k.o.Loose
}

// elements compares every element of the gradient with a difference along that element alone.
func (k *checker) elements() error {
	c, g, err := k.cotangents()
	if err != nil {
		return err
	}
	most := 0.0
	for _, w := range k.wrt {
		for _, v := range g[w] {
			most = max(most, math.Abs(v))
		}
	}
	for _, w := range k.wrt {
		for i := range g[w] {
			t := map[string][]float64{w: make([]float64, len(g[w]))}
			t[w][i] = 1
			d, rough, err := k.derivative(t, c)
			if err != nil {
				return err
			}
			if err := k.compare(fmt.Sprintf("gradient of %q element %d", w, i), g[w][i], d, max(most, rough, math.Abs(d)), k.tol()); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare counts one comparison. scale is the magnitude that the error is relative to.
func (k *checker) compare(what string, got, want, scale, tol float64) error {
	k.res.Comparisons++
	rel := math.Abs(got-want) / (1e-6 + scale)
	if got == want {
		rel = 0
	}
	if math.IsNaN(rel) {
		rel = math.Inf(1)
	}
	k.res.MaxError = max(k.res.MaxError, rel)
	if rel > tol {
		return &Error{What: what, Got: got, Want: want, Rel: rel, Tol: tol}
	}
	return nil
}

// direction draws elements from ±[0.5, 1]: no element is neglected, and none moves further than the
// step.
func (k *checker) direction(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 0.5 + 0.5*k.rng.Float64()
		if k.rng.Uint64()&1 == 0 {
			v[i] = -v[i]
		}
		// The same numbers must reach float32 and float64 programs.
		v[i] = float64(float32(v[i]))
	}
	return v
}

// derivative returns ⟨c, J·t⟩ by central differences at two steps, extrapolated, and the root of
// the sum of squares of its terms.
func (k *checker) derivative(t, c map[string][]float64) (d, rough float64, err error) {
	h := k.res.Level.Step
	d1, r, err := k.difference(t, c, h)
	if err != nil {
		return 0, 0, err
	}
	d2, _, err := k.difference(t, c, h/2)
	return (4*d2 - d1) / 3, r, err
}

func (k *checker) difference(t, c map[string][]float64, h float64) (d, rough float64, err error) {
	plus, err := k.moved(t, h)
	if err != nil {
		return 0, 0, err
	}
	minus, err := k.moved(t, -h)
	if err != nil {
		return 0, 0, err
	}
	for _, out := range k.outs {
		a, b := plus[out], minus[out]
		if len(a) != len(c[out]) || len(b) != len(c[out]) {
			return 0, 0, fmt.Errorf("output %q changes its size around the point", out)
		}
		for i, ci := range c[out] {
			term := ci * (a[i] - b[i]) / (2 * h)
			if a[i] == b[i] {
				term = 0 // Also where both are the same infinity.
			}
			d += term
			rough += term * term
		}
	}
	return d, math.Sqrt(rough), nil
}
