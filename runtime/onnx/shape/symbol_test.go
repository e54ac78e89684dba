package shape

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// evaluate computes the text of a symbolic extent for given symbols; tests use it to compare
// symbolic with static inference.
func evaluate(text string, env map[string]int) (int, error) {
	p := &evaluator{rest: text, env: env}
	n, err := p.sum()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("%q is left", p.rest)
	}
	if err != nil {
		return 0, fmt.Errorf("evaluate %q: %w", text, err)
	}
	return n, nil
}

type evaluator struct {
	rest string
	env  map[string]int
}

func (p *evaluator) take(s string) bool {
	r, ok := strings.CutPrefix(p.rest, s)
	p.rest = r
	return ok
}

func (p *evaluator) sum() (int, error) {
	sign := 1
	if p.take("-") {
		sign = -1
	}
	total, err := p.product()
	total *= sign
	for err == nil {
		var n int
		switch {
		case p.take("+"):
			n, err = p.product()
		case p.take("-"):
			n, err = p.product()
			n = -n
		default:
			return total, nil
		}
		total += n
	}
	return total, err
}

func (p *evaluator) product() (int, error) {
	total, err := p.factor()
	for err == nil {
		var n int
		switch {
		case p.take("*"):
			n, err = p.factor()
			total *= n
		case p.take("/"):
			if n, err = p.factor(); err == nil && n != 0 {
				q := total / n
				if total%n != 0 && (total < 0) != (n < 0) {
					q--
				}
				total = q
			}
		default:
			return total, nil
		}
	}
	return total, err
}

func (p *evaluator) factor() (int, error) {
	p.take("floor")
	if p.take("(") {
		n, err := p.sum()
		if err == nil && !p.take(")") {
			err = fmt.Errorf("no closing parenthesis before %q", p.rest)
		}
		return n, err
	}
	i := 0
	for i < len(p.rest) && !strings.ContainsRune("+-*/()", rune(p.rest[i])) {
		i++
	}
	word := p.rest[:i]
	p.rest = p.rest[i:]
	if n, err := strconv.Atoi(word); err == nil {
		return n, nil
	}
	n, ok := p.env[word]
	if !ok {
		return 0, fmt.Errorf("no symbol %q", word)
	}
	return n, nil
}

// TestSymbolArithmetic builds random expressions twice, in symbols and in numbers.
func TestSymbolArithmetic(t *testing.T) {
	env := map[string]int{"a": 6, "b": 10, "c": 15}
	r := rand.New(rand.NewPCG(1, 2))
	s := &state{}
	compared := 0
	for range 20000 {
		pool := []val{{sym: "a"}, {sym: "b"}, {sym: "c"}, num(2), num(3), num(-1)}
		nums := []int{6, 10, 15, 2, 3, -1}
		for range 6 {
			i, j := r.IntN(len(pool)), r.IntN(len(pool))
			var v val
			n := 0
			switch r.IntN(6) {
			case 0:
				v, n = s.add(pool[i], pool[j]), nums[i]+nums[j]
			case 1:
				v, n = s.sub(pool[i], pool[j]), nums[i]-nums[j]
			case 2:
				v, n = s.mul(pool[i], pool[j]), nums[i]*nums[j]
			case 3:
				k := 1 + r.IntN(5)
				v, n = s.divFloor(pool[i], int64(k)), nums[i]/k
				if nums[i]%k != 0 && nums[i] < 0 {
					n--
				}
			case 4:
				if nums[j] == 0 || nums[i]%nums[j] != 0 {
					continue
				}
				v, n = s.quotient(pool[i], pool[j]), nums[i]/nums[j]
			case 5:
				v, n = s.extreme(pool[i], pool[j], 1), max(nums[i], nums[j])
				if n < 0 && !v.known {
					// Expressions that can be negative are no extents; their order is not decided
					// by signs of symbols.
					continue
				}
			}
			if v.unknown() {
				continue
			}
			got := int(v.n)
			if !v.known {
				var err error
				if got, err = evaluate(v.sym, env); err != nil {
					t.Fatal(err)
				}
			}
			if got != n {
				t.Fatalf("%+v is %d, want %d", v, got, n)
			}
			compared++
			pool, nums = append(pool, v), append(nums, n)
		}
	}
	if compared < 50000 {
		t.Errorf("%d comparisons", compared)
	}
}

func TestEqualExpressionsHaveEqualText(t *testing.T) {
	s := &state{}
	a, b := val{sym: "a"}, val{sym: "b"}
	for _, c := range []struct{ x, y val }{
		{s.mul(a, b), s.mul(b, a)},
		{s.add(s.add(a, num(1)), b), s.add(b, s.add(num(1), a))},
		{s.mul(s.add(a, num(1)), num(2)), s.add(s.add(a, a), num(2))},
		{s.sub(s.add(a, b), b), a},
		{s.divFloor(s.mul(a, num(6)), 3), s.add(a, a)},
		{s.quotient(s.mul(s.mul(a, b), num(4)), b), s.mul(a, num(4))},
		{s.mul(s.quotient(a, num(4)), num(8)), s.mul(a, num(2))},
	} {
		if c.x != c.y || c.x.unknown() {
			t.Errorf("%+v and %+v should be the same text", c.x, c.y)
		}
	}
	// Growth is bounded: an expression that would say nothing becomes unknown.
	v := a
	for range 12 {
		v = s.mul(v, b)
	}
	if !v.unknown() {
		t.Errorf("a product of 13 symbols is %q", v.sym)
	}
	if !s.mul(num(1<<62), num(4)).unknown() || !s.add(num(1<<62), num(1<<62)).unknown() {
		t.Error("an overflow gave a number")
	}
}

// checkSymbolic compares inferred types with the shapes that the same values have for given
// symbols. It returns how many extents were compared and how many of them were unknown.
func checkSymbolic(e *Env, bound map[string]int, name string, want onnx.TensorType) (compared, unknown int, err error) {
	got := e.Type(onnx.Value(name))
	if !got.Ranked {
		return 0, len(want.Dims), nil
	}
	if len(got.Dims) != len(want.Dims) || got.DType != want.DType {
		return 0, 0, fmt.Errorf("%s is %v, want %v", name, got, want)
	}
	for i, d := range got.Dims {
		n := d.Value
		switch {
		case d.IsKnown():
		case d.Param == "":
			unknown++
			continue
		default:
			if n, err = evaluate(d.Param, bound); err != nil {
				return 0, 0, err
			}
		}
		if want.Dims[i].Value != n {
			return 0, 0, fmt.Errorf("%s is %v, which for %v is not %v", name, got, bound, want)
		}
		compared++
	}
	return compared, unknown, nil
}
