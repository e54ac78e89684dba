package rlmath_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The vectors are those of rlax's own tests (Apache License 2.0), of sb3-contrib's tests (MIT) and
// of our own arithmetic; each file names its source.

func load(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// comparer compares numbers and counts them.
type comparer struct {
	t *testing.T
	n int
}

func (c *comparer) near(what string, got, want, tol float64) {
	c.t.Helper()
	c.n++
	if !(math.Abs(got-want) <= tol*(1+math.Abs(want))) {
		c.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (c *comparer) all(what string, got, want []float64, tol float64) {
	c.t.Helper()
	if len(got) != len(want) {
		c.t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		c.near(what+"["+strconv.Itoa(i)+"]", got[i], want[i], tol)
	}
}

func (c *comparer) total(want int) {
	c.t.Helper()
	if c.n != want {
		c.t.Errorf("%d comparisons, expected %d", c.n, want)
	}
}

func repeat(x float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = x
	}
	return out
}

func TestReturnsOfRlax(t *testing.T) {
	var v struct {
		Lambda struct {
			R          [][]float64 `json:"r"`
			Discount   [][]float64 `json:"discount"`
			V          [][]float64 `json:"v_tp1"`
			Lambda75   [][]float64 `json:"lambda_0.75"`
			Discounted [][]float64 `json:"discounted"`
			NStep3     [][]float64 `json:"n_step_3"`
		} `json:"lambda_returns"`
		GAE struct {
			R        [][]float64            `json:"r"`
			Discount [][]float64            `json:"discount"`
			V        [][]float64            `json:"values_T_plus_1"`
			Expected map[string][][]float64 `json:"expected_float64"`
		} `json:"gae"`
	}
	load(t, "rlax_returns_gae_ppo", &v)
	c := &comparer{t: t}
	for i, r := range v.Lambda.R {
		d, val := v.Lambda.Discount[i], v.Lambda.V[i]
		got := make([]float64, len(r))
		rlmath.LambdaReturns(got, r, d, val, 0.75, 1)
		c.all("lambda", got, v.Lambda.Lambda75[i], 1e-6)
		rlmath.DiscountedReturns(got, r, d, val[len(val)-1:])
		c.all("discounted", got, v.Lambda.Discounted[i], 1e-6)
		rlmath.NStepReturns(got, r, d, val, 3, 1)
		c.all("n-step", got, v.Lambda.NStep3[i], 1e-6)
	}
	for text, want := range sorted.All(v.GAE.Expected) {
		lambda, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range v.GAE.R {
			val := v.GAE.V[i]
			got := make([]float64, len(r))
			rlmath.GAE(got, r, v.GAE.Discount[i], val[:len(r)], val[1:], lambda, 1)
			c.all("gae "+text, got, want[i], 1e-12)
		}
	}
	c.total(2*3*5 + 3*2*5)
}

func TestVTraceOfRlax(t *testing.T) {
	var v struct {
		Behaviour [][][]float64 `json:"behaviour_logits"`
		Target    [][][]float64 `json:"target_logits"`
		Actions   [][]int       `json:"actions"`
		R         [][]float64   `json:"rewards"`
		Discount  [][]float64   `json:"discounts"`
		V         [][]float64   `json:"values"`
		Bootstrap []float64     `json:"bootstrap"`
		Errors    [][]float64   `json:"expected_errors"`
		Float64   map[string]struct {
			Rho  []float64 `json:"rho"`
			VS   []float64 `json:"vs"`
			PG1  []float64 `json:"pg_adv_rho1"`
			PG5  []float64 `json:"pg_adv_clip5"`
			Errs []float64 `json:"errors"`
		} `json:"recomputed_float64"`
	}
	load(t, "vtrace_rlax", &v)
	c := &comparer{t: t}
	for b, r := range v.R {
		n := len(r)
		pi, mu, rho := make([]float64, n), make([]float64, n), make([]float64, n)
		buf := make([]float64, len(v.Target[b][0]))
		for i, a := range v.Actions[b] {
			rlmath.LogSoftmax(buf, v.Target[b][i], nil)
			pi[i] = buf[a]
			rlmath.LogSoftmax(buf, v.Behaviour[b][i], nil)
			mu[i] = buf[a]
		}
		want := v.Float64[strconv.Itoa(b)]
		rlmath.Ratios(rho, pi, mu)
		c.all("rho", rho, want.Rho, 1e-12)
		v0 := v.V[b]
		v1 := append(append([]float64{}, v0[1:]...), v.Bootstrap[b])
		vs, pg, errs := make([]float64, n), make([]float64, n), make([]float64, n)
		rlmath.VTrace(vs, pg, r, v.Discount[b], v0, v1, rho, rlmath.DefaultVTrace(), 1)
		rlmath.SubTo(errs, vs, v0)
		c.all("errors", errs, want.Errs, 1e-12)
		for i := range errs {
			c.near("published error", errs[i], v.Errors[b][i], 1e-3)
		}
		c.all("vs", vs, want.VS, 1e-12)
		c.all("pg", pg, want.PG1, 1e-12)
		k := rlmath.DefaultVTrace()
		k.ClipPGRho = 5
		rlmath.VTrace(vs, pg, r, v.Discount[b], v0, v1, rho, k, 1)
		c.all("pg with threshold 5", pg, want.PG5, 1e-12)
	}
	c.total(2 * 4 * 6)
}

func TestClippedSurrogateAndGaussianOfRlax(t *testing.T) {
	var v struct {
		PPO struct {
			Logits  [][]float64 `json:"logits"`
			Old     [][]float64 `json:"old_logits"`
			Actions []int       `json:"actions"`
			Adv     []float64   `json:"adv_abs"`
			Eps     float64     `json:"eps"`
			Pos     float64     `json:"loss_pos_adv"`
			Neg     float64     `json:"loss_neg_adv"`
		} `json:"ppo_clip"`
		Gauss struct {
			Mu      []float64 `json:"mu"`
			Sigma   float64   `json:"sigma"`
			Sample  []float64 `json:"sample"`
			LogProb float64   `json:"logprob"`
			Entropy float64   `json:"entropy"`
		} `json:"diag_gaussian"`
	}
	load(t, "rlax_returns_gae_ppo", &v)
	c := &comparer{t: t}
	n := len(v.PPO.Actions)
	pi, old, neg, buf := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, 3)
	for i, a := range v.PPO.Actions {
		rlmath.LogSoftmax(buf, v.PPO.Logits[i], nil)
		pi[i] = buf[a]
		rlmath.LogSoftmax(buf, v.PPO.Old[i], nil)
		old[i] = buf[a]
		neg[i] = -v.PPO.Adv[i]
	}
	// rlax's number was computed in float32 with a fast exponential and is compared there with a
	// tolerance of 1e-4; the exact one is −(0.3 + 0.2 + 0.1·e⁻²)/3.
	c.near("loss, positive advantages", rlmath.ClippedSurrogate(pi, old, v.PPO.Adv, v.PPO.Eps).Loss, v.PPO.Pos, 1e-5)
	c.near("the same, exactly", rlmath.ClippedSurrogate(pi, old, v.PPO.Adv, v.PPO.Eps).Loss, -(0.3+0.2+0.1*math.Exp(-2))/3, 1e-12)
	s := rlmath.ClippedSurrogate(pi, old, neg, v.PPO.Eps)
	c.near("loss, negative advantages", s.Loss, v.PPO.Neg, 1e-7)
	c.near("clipped fraction", s.ClipFrac, 1.0/3, 1e-12)
	c.near("approximate KL", s.ApproxKL, rlmath.ApproxKL(rlmath.K3, old, pi), 1e-12)
	logStd := repeat(math.Log(v.Gauss.Sigma), 2)
	c.near("log-density", rlmath.GaussianLogProb(v.Gauss.Sample, v.Gauss.Mu, logStd), v.Gauss.LogProb, 1e-12)
	c.near("entropy", rlmath.GaussianEntropy(logStd), v.Gauss.Entropy, 1e-12)
	c.total(7)
}

func TestMasks(t *testing.T) {
	var v struct {
		Categorical []struct {
			Probs  []float64 `json:"probs"`
			Mask   []int     `json:"mask"`
			Expect []float64 `json:"expect"`
		} `json:"categorical"`
	}
	load(t, "masks", &v)
	c := &comparer{t: t}
	for _, e := range v.Categorical {
		logits, mask := make([]float64, len(e.Probs)), make([]bool, len(e.Probs))
		for i, p := range e.Probs {
			// A probability of 0 is written as the smallest one, as torch.distributions does.
			logits[i], mask[i] = math.Log(max(p, 1.1920929e-07)), e.Mask[i] != 0
		}
		rlmath.LogSoftmax(logits, logits, mask)
		for i := range logits {
			c.near("probability", math.Exp(logits[i]), e.Expect[i], 1e-12)
		}
	}
	// Equal logits with m valid actions: exp(H) = m, in both types.
	for m := 1; m <= 7; m++ {
		wide, narrow, mask := repeat(0.3, 7), make([]float32, 7), make([]bool, 7)
		for i := range m {
			mask[6-i] = true
		}
		rlmath.LogSoftmax(wide, wide, mask)
		rlmath.LogSoftmax(narrow, narrow, mask)
		c.near("exp of the entropy", math.Exp(rlmath.Entropy(wide)), float64(m), 1e-12)
		c.near("exp of the entropy", math.Exp(rlmath.Entropy(narrow)), float64(m), 1e-6)
	}
	// Nothing valid: uniform and finite, not NaN.
	none := []float32{1, 2, 3}
	rlmath.LogSoftmax(none, none, make([]bool, 3))
	for _, l := range none {
		c.near("log-probability without a valid action", float64(l), -math.Log(3), 1e-6)
	}
	c.total(6 + 14 + 3)
}

// TestKLGradients differentiates the estimates' expectations by differences: only K2 has the
// gradient of KL(π‖ref).
func TestKLGradients(t *testing.T) {
	var v struct {
		Theta []float64 `json:"theta"`
		Ref   []float64 `json:"ref_logits"`
		KL    float64   `json:"KL"`
		Exact []float64 `json:"exact_grad"`
		K1    []float64 `json:"E_grad_k1"`
		K2    []float64 `json:"E_grad_k2"`
		K3    []float64 `json:"E_grad_k3"`
	}
	load(t, "kl_gradient", &v)
	c := &comparer{t: t}
	logs := func(logits []float64) []float64 {
		out := make([]float64, len(logits))
		rlmath.LogSoftmax(out, logits, nil)
		return out
	}
	pi, ref := logs(v.Theta), logs(v.Ref)
	c.near("KL", rlmath.CategoricalKL(pi, ref), v.KL, 1e-12)
	const h = 1e-5
	for i := range v.Theta {
		move := func(by float64) []float64 {
			theta := append([]float64{}, v.Theta...)
			theta[i] += by
			return logs(theta)
		}
		up, down := move(h), move(-h)
		c.near("exact gradient", (rlmath.CategoricalKL(up, ref)-rlmath.CategoricalKL(down, ref))/(2*h), v.Exact[i], 1e-8)
		for k, want := range sorted.All(map[rlmath.KLEstimate]float64{rlmath.K1: v.K1[i], rlmath.K2: v.K2[i], rlmath.K3: v.K3[i]}) {
			// The expectation over actions of π of the gradient of the estimate at each action: the
			// weights stay those of π.
			g := 0.0
			for a, l := range pi {
				one := func(x []float64) float64 { return rlmath.ApproxKL(k, x[a:a+1], ref[a:a+1]) }
				g += math.Exp(l) * (one(up) - one(down)) / (2 * h)
			}
			c.near("gradient of estimate "+strconv.Itoa(int(k)), g, want, 1e-8)
		}
	}
	// As estimates, K1 and K3 have the right expectation.
	for _, k := range []rlmath.KLEstimate{rlmath.K1, rlmath.K3} {
		e := 0.0
		for a, l := range pi {
			e += math.Exp(l) * rlmath.ApproxKL(k, pi[a:a+1], ref[a:a+1])
		}
		c.near("expectation", e, v.KL, 1e-12)
	}
	c.total(1 + 3*4 + 2)
}
