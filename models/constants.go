package models

import (
	"math"
	"regexp"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// use is how the nodes of a graph use an initializer.
type use struct {
	// nodes counts the inputs that it is given to. Of these, statistic counts those that are a
	// running mean or variance, setting those that configure an operator, elementwise those of
	// operators that work element by element, and moved those of operators that pick and arrange
	// elements. Of the elementwise ones, chosen counts those that choose or compare, added those
	// that add.
	nodes, statistic, setting, elementwise, moved, chosen, added int
}

func (u use) statistics() bool { return u.statistic > 0 }

// add returns the uses of both.
func (u use) add(v use) use {
	return use{
		nodes: u.nodes + v.nodes, statistic: u.statistic + v.statistic, setting: u.setting + v.setting, elementwise: u.elementwise + v.elementwise,
		moved: u.moved + v.moved, chosen: u.chosen + v.chosen, added: u.added + v.added,
	}
}

// usesOf counts the uses of every value in a graph and its sub-graphs. A graph's output counts as a
// use.
func usesOf(g *onnx.Graph) map[string]use {
	uses := map[string]use{}
	var walk func(g *onnx.Graph)
	walk = func(g *onnx.Graph) {
		for _, v := range g.Output {
			u := uses[v.Name]
			u.nodes++
			uses[v.Name] = u
		}
		for _, n := range g.Node {
			standard := onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard
			for i, name := range n.Input {
				if typeOnly(n, i) {
					continue
				}
				u := uses[name]
				u.nodes++
				switch {
				case !standard:
				case n.OpType == "BatchNormalization" && i >= 3:
					u.statistic++
				case settings[n.OpType] != nil && settings[n.OpType](i):
					u.setting++
				case elementwise[n.OpType]:
					u.elementwise++
					if chooses[n.OpType] {
						u.chosen++
					}
					if adds[n.OpType] {
						u.added++
					}
				case moves[n.OpType] && i == 0:
					u.moved++
				}
				uses[name] = u
			}
			for _, s := range n.Subgraphs() {
				walk(s)
			}
		}
	}
	walk(g)
	return uses
}

// typeOnly reports whether a node looks at an operand's type or shape and not at its content.
func typeOnly(n *onnx.Node, i int) bool {
	return onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && (n.OpType == "CastLike" && i == 1 || n.OpType == "Shape" || n.OpType == "Size")
}

// settings says which inputs of an operator configure it. They are no weights whatever their type.
var settings = map[string]func(i int) bool{
	"Clip": after(0), "Pad": after(0), "Resize": after(0), "Upsample": after(0), "Dropout": after(0), "OneHot": after(0), "Range": after(-1),
	"QuantizeLinear": after(0), "DequantizeLinear": after(0), "NonMaxSuppression": after(1), "Bernoulli": after(-1), "MaxRoiPool": after(0), "RoiAlign": after(0),
	"ThresholdedRelu": after(0), "TopK": after(0), "MelWeightMatrix": after(-1), "STFT": after(0), "DFT": after(0),
}

func after(first int) func(int) bool { return func(i int) bool { return i > first } }

// elementwise lists the operators that apply an operand element by element, as exporters emit them
// for masks, scales and other constants of a network's code.
var elementwise = map[string]bool{
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Pow": true, "Mod": true, "Min": true, "Max": true, "Mean": true, "Sum": true, "Where": true,
	"Equal": true, "Greater": true, "GreaterOrEqual": true, "Less": true, "LessOrEqual": true, "Expand": true, "Cast": true, "Sqrt": true, "Neg": true, "Reciprocal": true,
}

// chooses and adds are element-wise operators whose scalar operand is hardly ever a parameter: what
// fills masked places, and what keeps a divisor from being 0.
var (
	chooses = map[string]bool{"Where": true, "Equal": true, "Greater": true, "GreaterOrEqual": true, "Less": true, "LessOrEqual": true, "Mod": true}
	adds    = map[string]bool{"Add": true, "Sub": true, "Max": true}
)

// moves are the operators that pick and arrange elements of their first operand, as networks do
// with their position tables.
var moves = map[string]bool{
	"Slice": true, "Gather": true, "Reshape": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Expand": true, "Concat": true, "Tile": true, "Split": true, "Identity": true,
}

// literal matches the names of literals in a network's code, and folded those that exporters make
// up for the results of constant folding: transposed weights, but also computed scales and masks.
// operand matches what tf2onnx calls the literal operands of a network's code. The exporters are
// PyTorch's two, tf2onnx and this program.
var (
	literal = regexp.MustCompile(`^(const/.*|(.*/)?_?(Constant|Const)(_.*|\d.*|:.*)?|(c_)?lifted_tensor_\d+|_tensor_constant\d+)$`)
	folded  = regexp.MustCompile(`^(onnx::.*|_?val_\d+|\d+|const_fold_opt_.*)$`)
	operand = regexp.MustCompile(`^.*/[xy](/.*)?(:\d+)?$`)
)

// isConstant tells an exporter's constants from weights; the package comment gives the rules.
func isConstant(p *onnx.TensorProto, u use) (bool, error) {
	onlyElementwise := u.elementwise == u.nodes
	switch {
	case u.nodes == 0, u.setting > 0, literal.MatchString(p.Name), onlyElementwise && folded.MatchString(p.Name):
		return true, nil
	case len(p.Dims) == 0 && (folded.MatchString(p.Name) || operand.MatchString(p.Name) || u.chosen == u.nodes):
		return true, nil
	case !onlyElementwise:
		return false, nil
	}
	x, err := float32s(p)
	if err != nil {
		return false, err
	}
	return isMask(x) || len(p.Dims) == 0 && u.added == u.nodes && isEpsilon(x[0]), nil
}

// kind is what an initializer is taken for.
type kind int

const (
	isAParameter kind = iota
	isAConstant
	isABuffer
)

// kindOf decides what a float32 initializer that is no running statistic is. declared is what the
// exporter says of it, if anything.
func kindOf(p *onnx.TensorProto, u use, declared string) (kind, error) {
	switch {
	case declared == "PARAMETER" && u.nodes > 0:
		return isAParameter, nil
	case declared == "BUFFER":
		return isABuffer, nil
	case declared == "CONSTANT_TENSOR":
		return isAConstant, nil
	}
	if constant, err := isConstant(p, u); constant || err != nil {
		return isAConstant, err
	}
	if buffer, err := isBuffer(p, u); buffer || err != nil {
		return isABuffer, err
	}
	return isAParameter, nil
}

// float32s returns the content of an initializer of floating-point type.
func float32s(p *onnx.TensorProto) ([]float32, error) {
	t, err := onnx.TensorOf(p)
	if err != nil {
		return nil, err
	}
	if t, err = tensor.ToFloat32(t); err != nil {
		return nil, err
	}
	return t.Float32s(), nil
}

// isEpsilon reports whether a number is one of those that are added so that nothing is divided
// by 0.
func isEpsilon(v float32) bool { return v > 0 && v <= 1e-4 }

// maskMagnitude is far above any weight and below the −3e38 and the infinities that masks add to
// what must not count.
const maskMagnitude = 1e30

// isMask reports whether a tensor holds the huge values of an additive mask. NaN is no mask's value
// and is left for the caller to refuse.
func isMask(x []float32) bool {
	huge := false
	for _, v := range x {
		if v != v {
			return false
		}
		huge = huge || math.Abs(float64(v)) > maskMagnitude
	}
	return huge
}
