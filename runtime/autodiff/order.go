package autodiff

import (
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Order returns how often a model has been differentiated: 0 when none of its outputs is named like
// a gradient.
func Order(m *onnx.Model) int {
	most := 0
	for _, v := range m.GetGraph().GetOutput() {
		if k, ok := orderOf(v.GetName()); ok {
			most = max(most, k)
		}
	}
	return most
}

// Prefix is what the names of gradients of an order begin with: grad/, grad2/, grad3/ and so on.
func Prefix(order int) string {
	if order <= 1 {
		return "grad/"
	}
	return "grad" + strconv.Itoa(order) + "/"
}

func orderOf(name string) (int, bool) {
	scope, _, ok := strings.Cut(name, "/")
	digits, grad := strings.CutPrefix(scope, "grad")
	if !ok || !grad {
		return 0, false
	}
	if digits == "" {
		return 1, true
	}
	k, err := strconv.Atoi(digits)
	return k, err == nil && k >= 2 && digits[0] != '0'
}

// IsConstant reports whether an initializer of a model that holds gradients is a number of theirs
// rather than a parameter of the model that they were made from.
func IsConstant(m *onnx.Model, name string) bool {
	return strings.HasPrefix(name, "const/") && Order(m) > 0
}
