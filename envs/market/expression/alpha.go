package expression

import (
	"fmt"
	"strings"
)

// Named is an expression with the name of its feature.
type Named struct{ Name, Text string }

// Sets are the names of the factor sets of [Set].
var Sets = []string{"alpha158", "alpha360"}

// Set returns the factors of Qlib's Alpha158 or Alpha360 in its order, with its names: Microsoft's
// qlib/contrib/data/loader.py (MIT).
func Set(name string) ([]Named, error) {
	switch name {
	case "alpha158":
		return alpha158(), nil
	case "alpha360":
		return alpha360(), nil
	}
	return nil, fmt.Errorf("unknown factor set %q; known are %s", name, strings.Join(Sets, ", "))
}

// alpha360 is the prices and volumes of the last 60 bars relative to the newest close and volume.
func alpha360() []Named {
	var list []Named
	for _, field := range []string{"close", "open", "high", "low", "vwap", "volume"} {
		by := "$close"
		if field == "volume" {
			by = "($volume+1e-12)"
		}
		for i := 59; i >= 0; i-- {
			list = append(list, Named{fmt.Sprintf("%s%d", strings.ToUpper(field), i), fmt.Sprintf("%s/%s", ago("$"+field, i), by)})
		}
	}
	return list
}

// ago is a field some bars ago.
func ago(field string, bars int) string {
	if bars == 0 {
		return field
	}
	return fmt.Sprintf("Ref(%s, %d)", field, bars)
}

// shapes are the factors of one bar.
var shapes = []Named{
	{"KMID", "($close-$open)/$open"}, {"KLEN", "($high-$low)/$open"}, {"KMID2", "($close-$open)/($high-$low+1e-12)"},
	{"KUP", "($high-Greater($open, $close))/$open"}, {"KUP2", "($high-Greater($open, $close))/($high-$low+1e-12)"},
	{"KLOW", "(Less($open, $close)-$low)/$open"}, {"KLOW2", "(Less($open, $close)-$low)/($high-$low+1e-12)"},
	{"KSFT", "(2*$close-$high-$low)/$open"}, {"KSFT2", "(2*$close-$high-$low)/($high-$low+1e-12)"},
	{"OPEN0", "$open/$close"}, {"HIGH0", "$high/$close"}, {"LOW0", "$low/$close"}, {"VWAP0", "$vwap/$close"},
}

// rolling are the factors of a window; N stands for its bars.
var rolling = []Named{
	{"ROC", "Ref($close, N)/$close"}, {"MA", "Mean($close, N)/$close"}, {"STD", "Std($close, N)/$close"}, {"BETA", "Slope($close, N)/$close"},
	{"RSQR", "Rsquare($close, N)"}, {"RESI", "Resi($close, N)/$close"}, {"MAX", "Max($high, N)/$close"}, {"MIN", "Min($low, N)/$close"},
	{"QTLU", "Quantile($close, N, 0.8)/$close"}, {"QTLD", "Quantile($close, N, 0.2)/$close"}, {"RANK", "Rank($close, N)"},
	{"RSV", "($close-Min($low, N))/(Max($high, N)-Min($low, N)+1e-12)"}, {"IMAX", "IdxMax($high, N)/N"}, {"IMIN", "IdxMin($low, N)/N"},
	{"IMXD", "(IdxMax($high, N)-IdxMin($low, N))/N"}, {"CORR", "Corr($close, Log($volume+1), N)"},
	{"CORD", "Corr($close/Ref($close,1), Log($volume/Ref($volume, 1)+1), N)"}, {"CNTP", "Mean($close>Ref($close, 1), N)"},
	{"CNTN", "Mean($close<Ref($close, 1), N)"}, {"CNTD", "Mean($close>Ref($close, 1), N)-Mean($close<Ref($close, 1), N)"},
	{"SUMP", gains("$close")}, {"SUMN", losses("$close")}, {"SUMD", balance("$close")},
	{"VMA", "Mean($volume, N)/($volume+1e-12)"}, {"VSTD", "Std($volume, N)/($volume+1e-12)"},
	{"WVMA", "Std(Abs($close/Ref($close, 1)-1)*$volume, N)/(Mean(Abs($close/Ref($close, 1)-1)*$volume, N)+1e-12)"},
	{"VSUMP", gains("$volume")}, {"VSUMN", losses("$volume")}, {"VSUMD", balance("$volume")},
}

// in replaces X in a text by a field.
func in(field, text string) string { return strings.ReplaceAll(text, "X", field) }

func gains(f string) string {
	return in(f, "Sum(Greater(X-Ref(X, 1), 0), N)/(Sum(Abs(X-Ref(X, 1)), N)+1e-12)")
}

func losses(f string) string {
	return in(f, "Sum(Greater(Ref(X, 1)-X, 0), N)/(Sum(Abs(X-Ref(X, 1)), N)+1e-12)")
}

func balance(f string) string {
	return in(f, "(Sum(Greater(X-Ref(X, 1), 0), N)-Sum(Greater(Ref(X, 1)-X, 0), N))/(Sum(Abs(X-Ref(X, 1)), N)+1e-12)")
}

func alpha158() []Named {
	list := append([]Named(nil), shapes...)
	for _, f := range rolling {
		for _, n := range []string{"5", "10", "20", "30", "60"} {
			list = append(list, Named{f.Name + n, strings.ReplaceAll(f.Text, "N", n)})
		}
	}
	return list
}
