package gradcheck

// Level names a precision of the check and the largest relative error it accepts.
type Level struct {
	Name string
	// Tol bounds the relative error; Step is the longer of the two steps along a tangent whose
	// elements lie in ±[0.5, 1].
	Tol, Step float64
}

// The levels, strictest first. Truncation adds about Step⁴ and rounding about ε/Step: 1e-12 and
// 1e-13 in float64, 1e-7 and 1e-5 in float32; the tolerances leave room for curvature and for sums
// that cancel.
var (
	DoubleLevel = Level{Name: "double", Tol: 1e-6, Step: 1e-3}
	MixedLevel  = Level{Name: "mixed", Tol: 3e-4, Step: 1e-3}
	SingleLevel = Level{Name: "single", Tol: 4e-3, Step: 2e-2}
)

// agreeTol bounds the difference of a float32 gradient from the float64 one, relative to its
// largest element.
const agreeTol = 1e-4

// MaxStep is how far a check moves any input element. Generators keep a larger distance from kinks.
const MaxStep = 0.02
