package optim

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	params, grads := make([]float32, 256), make([]float32, 256)
	list := []Param{
		{"head.weight", 128, 20}, {"a.weight", 0, 30}, {"b.weight", 32, 16}, {"b.bias", 48, 16}, {"c.weight", 64, 16},
		{"d.weight", 96, 32}, {"empty", 90, 0},
	}
	none := 0.0
	c := Config{Kind: "adamw", LR: 0.1, Decay: 0.5, NoDecay: []string{"*.bias", "*.norm"},
		Overrides: []Override{{Params: []string{"head.*"}, LRScale: 0.25, Decay: &none}}}
	groups, err := Groups(c, params, grads, list)
	if err != nil {
		t.Fatal(err)
	}
	// c and d are apart by more than padding, so they do not share a group.
	want := []struct {
		name      string
		off, n    int
		lr, decay float32
	}{
		{"a.weight to b.weight", 0, 48, 0.1, 0.5}, {"b.bias", 48, 16, 0.1, 0}, {"c.weight", 64, 16, 0.1, 0.5},
		{"d.weight", 96, 32, 0.1, 0.5}, {"head.weight", 128, 20, 0.025, 0},
	}
	if len(groups) != len(want) {
		t.Fatalf("%d groups, want %d: %+v", len(groups), len(want), groups)
	}
	for i, w := range want {
		g := groups[i]
		if g.Name != w.name || g.Offset != w.off || len(g.Params) != w.n || len(g.Grads) != w.n || g.LR != w.lr || g.Decay != w.decay || &g.Params[0] != &params[w.off] {
			t.Errorf("group %d is %q at %d, %d elements, lr %g, decay %g; want %+v", i, g.Name, g.Offset, len(g.Params), g.LR, g.Decay, w)
		}
	}
	SetLR(groups, 0.4)
	if groups[0].LR != 0.4 || groups[4].LR != 0.1 {
		t.Errorf("SetLR gives %g and %g, want 0.4 and 0.1", groups[0].LR, groups[4].LR)
	}
	if u := c.Unmatched(list); !slices.Equal(u, []string{"*.norm"}) {
		t.Errorf("unmatched patterns %q", u)
	}
	perLayer, err := Groups(Config{Kind: "lamb", LR: 0.1}, params, grads, list)
	if err != nil || len(perLayer) != 6 {
		t.Errorf("lamb has %d groups, want 6: %v", len(perLayer), err)
	}
	fail := func(want string, p, g []float32, list ...Param) {
		mustErr(t, want, func() error { _, err := Groups(c, p, g, list); return err })
	}
	fail("256 parameters and 3 gradients", params, grads[:3])
	fail("x: elements 250 to 260 of an arena of 256", params, grads, Param{"x", 250, 10})
	fail("elements 1 to -9223372036854775808", params, grads, Param{"x", 1, math.MaxInt})
	fail("y overlaps its predecessor at element 5", params, grads, Param{"x", 0, 6}, Param{"y", 5, 6})
}

func TestClipAndNonFinite(t *testing.T) {
	f := newFixture()
	g := f.groups(t, Config{Kind: "adam", LR: 1, Decay: 1, NoDecay: []string{"*.bias"}})
	for i := range f.grads {
		f.grads[i] = 0
	}
	f.grads[20], f.grads[100], f.grads[0] = 3, 4, 1000 // the last is in no group
	norm, scale, err := ClipGlobalNorm(g, 1)
	if err != nil || norm != 5 || scale != 0.2 || g[0].GradScale != 0.2 || g[2].GradScale != 0.2 || f.grads[20] != 3 {
		t.Errorf("norm %v, scale %v, error %v, group scale %v", norm, scale, err, g[0].GradScale)
	}
	norm, scale, err = ClipGlobalNorm(g, 10)
	if err != nil || norm != 5 || scale != 1 || g[0].GradScale != 1 {
		t.Errorf("below the limit: norm %v, scale %v, error %v", norm, scale, err)
	}
	f.grads[20] = math.MaxFloat32
	if _, scale, err = ClipGlobalNorm(g, 1e-10); err != nil || !(scale > 0) || g[0].GradScale == 0 {
		t.Errorf("a huge norm gives scale %v, %v", scale, err)
	}
	mustErr(t, "maximal norm 0", func() error { _, _, err := ClipGlobalNorm(g, 0); return err })

	// A clipped step equals a step on scaled gradients.
	f.fill()
	clone := newFixture()
	clone.fill()
	c := Config{Kind: "sgd", LR: 0.1}
	ga, gb := f.groups(t, c), clone.groups(t, c)
	_, scale, err = ClipGlobalNorm(ga, 0.1)
	if err != nil || scale >= 1 {
		t.Fatalf("scale %v, %v", scale, err)
	}
	for i := range clone.grads {
		clone.grads[i] *= float32(scale)
	}
	mustStep(t, mustNew(t, c), ga)
	mustStep(t, mustNew(t, c), gb)
	if !sameBits(f.params, clone.params) {
		t.Error("clipping within the step differs from scaling before it")
	}

	g[0].GradScale = 0.5
	f.grads[99] = float32(math.Inf(-1))
	_, _, err = ClipGlobalNorm(g, 1)
	var nf *NonFiniteError
	if !errors.As(err, &nf) || nf.Param != "l0.bias" || nf.Index != 3 || g[0].GradScale != 0.5 {
		t.Errorf("error %v, group scale %v", err, g[0].GradScale)
	}
	if want := "gradient of l0.bias is -Inf at element 3"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if err := FindNonFinite("gradient", f.grads, f.list); err == nil || err.Error() != nf.Error() {
		t.Errorf("FindNonFinite: %v", err)
	}
	mustErr(t, "gradient of an unnamed group is NaN at element 1", func() error {
		_, _, err := ClipGlobalNorm([]Group{{Grads: []float32{0, float32(math.NaN())}}}, 1)
		return err
	})
}

func TestValidateConfig(t *testing.T) {
	minus := -1.0
	c := Config{Kind: "adam", LR: math.NaN(), Decay: -1, Momentum: 2, Nesterov: true, Dampening: 3, Beta1: 1, Beta2: 7,
		Eps: math.Inf(1), Alpha: 0.5, NoDecay: []string{""}, Workers: -1,
		Overrides: []Override{{LRScale: -1, Decay: &minus}}}
	err := c.Validate()
	want := []string{
		"lr: NaN", "decay: -1", "momentum: 2", "dampening: 3", "beta1: 1 is not in [0, 1)", "beta2: 7", "eps: +Inf",
		"workers: -1", "nesterov: needs", "momentum: not used by adam", "dampening: not used", "nesterov: not used",
		"alpha: not used", "no_decay[0]: empty", "overrides[0].params: no pattern", "overrides[0].lr_scale: -1", "overrides[0].decay: -1",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("%d problems, want %d:\n%v", len(lines), len(want), err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not reported", w)
		}
	}
	if err := (Config{Kind: "adagrad"}).Validate(); err == nil || !strings.Contains(err.Error(), `unknown optimiser "adagrad", want one of sgd,`) {
		t.Errorf("unknown kind: %v", err)
	}
	for _, k := range Kinds() {
		if err := (Config{Kind: k, LR: 0.1}).WithDefaults().Validate(); err != nil {
			t.Errorf("%s with its defaults: %v", k, err)
		}
	}
	if d := (Config{Kind: "adam", Beta1: Zero}).WithDefaults(); d.Beta1 != Zero || d.Beta2 != 0.999 || d.effective().Beta1 != 0 {
		t.Errorf("an explicit zero becomes %g", d.Beta1)
	}
}
