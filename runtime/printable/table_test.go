package printable

import (
	"strings"
	"testing"
)

// A table that fits is the same as without a width; one that does not is folded, and loses no word.
func TestTableFolds(t *testing.T) {
	const kinds = "kind\tmeaning\tneeds\ncartpole\tbalances a pole on a cart that moves left and right\tnothing\nx\ty\n\nnumbers that stand below the table, a sentence of seventy columns\n"
	const wide = "agent\treturn %\tSharpe\tvolatility %\tdrawdown %\tCAGR %\tCalmar\tinvested %\t\nA2C\t15.9\t0.67\t15.0\t-11.4\t9.2\t0.81\t74.7\t\nequal-weight\t31.9\t1.04\t17.6\t-14.3\t18.0\t1.26\t87.3\t\n"
	for _, c := range []struct {
		name, text, columns, want string
		right                     bool
	}{
		{"no width", kinds, "", "kind      meaning                                              needs\ncartpole  balances a pole on a cart that moves left and right  nothing\nx         y\n\nnumbers that stand below the table, a sentence of seventy columns\n", false},
		{"words", kinds, "40", "kind      meaning\ncartpole  balances a pole on a cart that\n          moves left and right\nx         y\n\nkind      needs\ncartpole  nothing\n\nnumbers that stand below the table, a\nsentence of seventy columns\n", false},
		{"numbers", wide, "60", "       agent  return %  Sharpe  volatility %  drawdown %\n         A2C      15.9    0.67          15.0       -11.4\nequal-weight      31.9    1.04          17.6       -14.3\n\n       agent  CAGR %  Calmar  invested %\n         A2C     9.2    0.81        74.7\nequal-weight    18.0    1.26        87.3\n", true},
	} {
		t.Setenv("COLUMNS", c.columns)
		var b strings.Builder
		w := NewTable(&b)
		if c.right {
			w = NewNumbers(&b)
		}
		for _, part := range strings.SplitAfter(c.text, "\t") {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n%s\nexpected\n%s", c.name, err, b.String(), c.want)
		}
	}
	// However narrow it is, no line is wider.
	for _, columns := range []string{"1", "7", "20", "33", "59", "60"} {
		t.Setenv("COLUMNS", columns)
		var b strings.Builder
		w := NewTable(&b)
		_, _ = w.Write([]byte(kinds + wide + "sha256:958690877b05958690877b05\ta\n"))
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := len(strings.TrimSuffix(line, "\n")); n > max(Columns(&b), 7) {
				t.Errorf("%s columns: %d in %q", columns, n, line)
			}
		}
		for _, word := range strings.Fields(kinds + wide) {
			if Columns(&b) > 30 && !strings.Contains(b.String(), word) {
				t.Errorf("%s columns: %q is lost", columns, word)
			}
		}
	}
}
