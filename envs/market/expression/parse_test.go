package expression

import (
	"math"
	"strings"
	"testing"
)

// The precedence is Python's.
func TestPrecedence(t *testing.T) {
	cases := []struct{ text, want string }{
		{"$a+$b*$c", "Add($a, Mul($b, $c))"},
		{"($a+$b)*$c", "Mul(Add($a, $b), $c)"},
		{"$a-$b-$c", "Sub(Sub($a, $b), $c)"},
		{"$a/$b/2", "Div(Div($a, $b), 2)"},
		{"-$a**2", "Mul(-1, Power($a, 2))"},
		{"$a**-2", "Power($a, -2)"},
		{"$a**$b**$c", "Power($a, Power($b, $c))"},
		{"$a+1>$b", "Gt(Add($a, 1), $b)"},
		{"($a>1)&($b>1)|($c>1)", "Or(And(Gt($a, 1), Gt($b, 1)), Gt($c, 1))"},
		{"$a*(2+3*4)", "Mul($a, 14)"},
		{"1.5e-1*$a", "Mul(0.15, $a)"},
		{" Mean ( $close ,5 ) ", "Mean($close, 5)"},
		{"Quantile($a, 5, 0.25)", "Quantile($a, 5, 0.25)"},
		{"Ref($a, 1)", "Ref($a, 1)"},
		{"EMA($a, 0.5)", "EMA($a, 0.5)"},
		{"$成交量/2", "Div($成交量, 2)"},
	}
	for _, c := range cases {
		e, err := Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		if e.String() != c.want {
			t.Errorf("%s is %s, expected %s", c.text, e, c.want)
		}
		again, err := Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Errorf("%s does not read itself: %v, %v", e, again, err)
		}
	}
	if len(cases) != 16 {
		t.Error(len(cases))
	}
}

func TestParseErrors(t *testing.T) {
	cases := []struct{ text, want string }{
		{"", "column 1: expected a field, a number, an operator or a parenthesis, found the end"},
		{"1+2", "the expression is a number"},
		{"$close+", "column 8: expected a field"},
		{"$close $open", `column 8: expected an operator or the end, found "$open"`},
		{"($close", `column 8: expected ")", found the end`},
		{"$", "column 1: expected a name behind $"},
		{"close/2", `column 1: unknown operator "close"; known are Abs`},
		{"Mean", `column 5: expected "(", found the end`},
		{"2*Mean($close)", "column 3: Mean takes 2 arguments (x, N), found 1"},
		{"If($a>1, 2)", "If takes 3 arguments (condition, x, y), found 2"},
		{"Mean($close, $open)", "Mean: N must be a number, is $open"},
		{"Mean($close, 2.5)", "Mean: expected a whole N of at most 100000 bars, found 2.5"},
		{"Mean($close, 1e6)", "expected a whole N"},
		{"Ref($close, -1)", "Ref: expected a positive N, found -1: a feature cannot look into the future"},
		{"Ref($close, 0)", "depend on where the data begin"},
		{"Skew($close, 2)", "Skew: expected an N of at least 3, found 2"},
		{"EMA($close, 0)", "EMA: expected a number of bars as N or"},
		{"EMA($close, 1e9)", "EMA: expected a smaller N than 1e+09"},
		{"Quantile($close, 5, 1.5)", "Quantile: quantile must be between 0 and 1, is 1.5"},
		{"$a & $b", "And joins conditions such as $close > $open; argument 1, $a, is none"},
		{"$a < $b < $c", `column 9: expected an operator or the end, found "<"`},
		{"ChangeInstrument($a, 1)", "ChangeInstrument looks at another instrument"},
		{"$a ? $b", "column 4: unexpected '?'"},
		{"1.2.3*$a", `"1.2.3" is not a number`},
		{strings.Repeat("(", 300) + "$a", "more than 200 levels of parentheses"},
		{strings.Repeat("-", 300) + "$a", "more than 200 levels"},
	}
	for _, c := range cases {
		if e, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, expected %q", c.text, e, err, c.want)
		}
	}
	if len(cases) != 26 {
		t.Error(len(cases))
	}
}

// Whatever is given is refused or can be written, read again and computed.
func FuzzParse(f *testing.F) {
	for _, text := range samples() {
		f.Add(text)
	}
	for _, name := range Sets {
		list, err := Set(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, n := range list[:60] {
			f.Add(n.Text)
		}
	}
	f.Add("If(($open>1)&Not($close<=2), -$high**2, 1e-3)")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q reads as %s, which reads as %v: %v", text, e, again, err)
		}
		p, err := Compile(fields, e)
		if err != nil || p.window > 1000 {
			return
		}
		for _, row := range run(p, randomBars(5)) {
			if math.IsInf(row[0], 0) {
				continue
			}
		}
	})
}
