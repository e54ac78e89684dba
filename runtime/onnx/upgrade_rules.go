package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// upgradeKey is an operator and the opset version at which it changed.
type upgradeKey struct {
	op string
	at int
}

// upgradeRule rewrites a node in place for a new version. It may append nodes in front through the
// upgrader, and returns nodes to put behind.
type upgradeRule func(u *upgrader, n *Node) ([]*Node, error)

// upgradeRules is every change that can be rewritten.
var upgradeRules = map[upgradeKey]upgradeRule{
	{"Softmax", 13}: flattening, {"LogSoftmax", 13}: flattening, {"Hardmax", 13}: flattening,
	{"Squeeze", 13}: axesToInput, {"Unsqueeze", 13}: axesToInput, {"ReduceSum", 13}: axesToInput,
	{"ReduceMean", 18}: axesToInput, {"ReduceMax", 18}: axesToInput, {"ReduceMin", 18}: axesToInput, {"ReduceProd", 18}: axesToInput,
	{"ReduceL1", 18}: axesToInput, {"ReduceL2", 18}: axesToInput, {"ReduceSumSquare", 18}: axesToInput, {"ReduceLogSum", 18}: axesToInput,
	{"ReduceLogSumExp", 18}: axesToInput,
	{"Split", 13}:           splitToInput, {"Split", 18}: splitNumOutputs,
	{"Slice", 10}: sliceToInputs, {"TopK", 10}: topKToInput, {"Clip", 11}: clipToInputs, {"Pad", 11}: padToInputs,
	{"Dropout", 10}: dropoutMask, {"Dropout", 12}: dropoutToInputs,
	{"BatchNormalization", 9}: batchNormSpatial, {"BatchNormalization", 14}: batchNormForm,
	{"Upsample", 9}: upsampleScales, {"Upsample", 10}: upsampleToResize, {"Resize", 11}: resizeCoordinates,
	{"Scatter", 11}: scatterElements, {"RoiAlign", 16}: roiAlignCoordinates,
	{"DFT", 20}: dftAxis, {"GridSample", 20}: gridSampleMode,
}

func axesToInput(u *upgrader, n *Node) ([]*Node, error) {
	u.moveInts(n, "axes", 1)
	return nil, nil
}

// flattening: before 13, these operators treated their input as a matrix of the axes before axis
// (default 1) and those from it on.
func flattening(u *upgrader, n *Node) ([]*Node, error) {
	axis := n.Int("axis", 1)
	t, ok := u.types(n.In(0))
	last := axis == -1 || ok && t.Ranked && axis == len(t.Dims)-1
	n.SetAttr(AttrInt("axis", -1))
	if last {
		return nil, nil
	}
	shape := u.before(n, "Shape", []string{n.Input[0]})
	n.Input[0] = u.before(n, "Flatten", []string{n.Input[0]}, AttrInt("axis", axis))
	out := n.Output[0]
	n.Output[0] = u.names.fresh(out + "/flat")
	return []*Node{{OpType: "Reshape", Name: u.names.fresh(out + "/Reshape"), Input: []string{n.Output[0], shape}, Output: []string{out}}}, nil
}

func splitToInput(u *upgrader, n *Node) ([]*Node, error) {
	u.moveInts(n, "split", 1)
	return nil, nil
}

// splitNumOutputs: from 18 on, a split into equal parts says into how many.
func splitNumOutputs(_ *upgrader, n *Node) ([]*Node, error) {
	if n.In(1) == "" {
		n.SetAttr(AttrInt("num_outputs", len(n.Output)))
	}
	return nil, nil
}

func sliceToInputs(u *upgrader, n *Node) ([]*Node, error) {
	u.moveInts(n, "starts", 1)
	u.moveInts(n, "ends", 2)
	u.moveInts(n, "axes", 3)
	return nil, nil
}

func topKToInput(u *upgrader, n *Node) ([]*Node, error) {
	setInput(n, 1, u.constant(n, "k", tensor.Of([]int64{int64(n.Int("k", 0))}, 1)))
	n.DelAttr("k")
	return nil, nil
}

func clipToInputs(u *upgrader, n *Node) ([]*Node, error) {
	for i, name := range []string{"min", "max"} {
		if !n.Has(name) {
			continue
		}
		v := n.Float(name, 0)
		n.DelAttr(name)
		// The defaults were the largest floats, which exporters write out; an absent bound means
		// the same to every engine and is cheaper.
		if v == -math.MaxFloat32 && i == 0 || v == math.MaxFloat32 && i == 1 {
			continue
		}
		c, err := u.number(n, name, n.In(0), v)
		if err != nil {
			return nil, err
		}
		setInput(n, i+1, c)
	}
	return nil, nil
}

func padToInputs(u *upgrader, n *Node) ([]*Node, error) {
	u.moveInts(n, "pads", 1)
	if v := n.Float("value", 0); v != 0 {
		c, err := u.number(n, "value", n.In(0), v)
		if err != nil {
			return nil, err
		}
		setInput(n, 2, c)
	}
	n.DelAttr("value")
	return nil, nil
}

// dropoutMask: the mask became boolean.
func dropoutMask(_ *upgrader, n *Node) ([]*Node, error) {
	if n.Out(1) != "" {
		return nil, errors.New("its mask changed from numbers to booleans")
	}
	return nil, nil
}

// dropoutToInputs: the node stays what it was, an inference-time identity, because training_mode is
// absent.
func dropoutToInputs(u *upgrader, n *Node) ([]*Node, error) {
	if n.Has("ratio") {
		r := n.Float("ratio", 0.5)
		n.DelAttr("ratio")
		setInput(n, 1, u.constant(n, "ratio", tensor.Scalar(r)))
	}
	return nil, nil
}

func batchNormSpatial(_ *upgrader, n *Node) ([]*Node, error) {
	if n.Int("spatial", 1) != 1 {
		return nil, errors.New("statistics per position (spatial=0) were removed")
	}
	n.DelAttr("spatial")
	return nil, nil
}

// batchNormForm: outputs beyond the first used to ask for the training form, in the order running
// mean, running variance, mean and variance of the batch. From 14 on an attribute does, and those
// of the batch are gone.
func batchNormForm(u *upgrader, n *Node) ([]*Node, error) {
	last := len(n.Output)
	for last > 1 && (n.Output[last-1] == "" || last > 3 && !readIn(u.home, n.Output[last-1])) {
		last--
	}
	if last > 3 {
		return nil, fmt.Errorf("it is in training form, and its output %q, a statistic of the batch, was removed", n.Output[last-1])
	}
	for _, o := range n.Output[1:] {
		if o != "" {
			n.SetAttr(AttrInt("training_mode", 1))
		}
	}
	n.Output = n.Output[:last]
	return nil, nil
}

// readIn reports whether a node of the graph or of its sub-graphs reads the value, or an output is
// it.
func readIn(g *Graph, v string) bool {
	for _, o := range g.Output {
		if o.Name == v {
			return true
		}
	}
	for _, n := range g.Node {
		if slices.Contains(n.Input, v) {
			return true
		}
		for _, s := range n.Subgraphs() {
			if readIn(s, v) {
				return true
			}
		}
	}
	return false
}

func upsampleScales(u *upgrader, n *Node) ([]*Node, error) {
	s := n.Floats("scales")
	n.DelAttr("scales")
	setInput(n, 1, u.constant(n, "scales", tensor.Of(s, len(s))))
	return nil, nil
}

func upsampleToResize(_ *upgrader, n *Node) ([]*Node, error) {
	n.OpType = "Resize"
	return nil, nil
}

// resizeCoordinates: opset 11 put roi before scales and made the rule by which coordinates are
// mapped a choice, with another default.
func resizeCoordinates(_ *upgrader, n *Node) ([]*Node, error) {
	if len(n.Input) != 2 {
		return nil, errors.New("two inputs expected")
	}
	n.Input = []string{n.Input[0], "", n.Input[1]}
	n.SetAttr(AttrStr("coordinate_transformation_mode", "asymmetric"))
	if n.Str("mode", "nearest") == "nearest" {
		n.SetAttr(AttrStr("nearest_mode", "floor"))
	}
	return nil, nil
}

func scatterElements(_ *upgrader, n *Node) ([]*Node, error) {
	n.OpType = "ScatterElements"
	return nil, nil
}

func roiAlignCoordinates(_ *upgrader, n *Node) ([]*Node, error) {
	n.SetAttr(AttrStr("coordinate_transformation_mode", "output_half_pixel"))
	return nil, nil
}

// dftAxis: the axis became an input, and its default changed.
func dftAxis(u *upgrader, n *Node) ([]*Node, error) {
	axis := n.Int("axis", 1)
	n.DelAttr("axis")
	setInput(n, 2, u.constant(n, "axis", tensor.Scalar(int64(axis))))
	return nil, nil
}

func gridSampleMode(_ *upgrader, n *Node) ([]*Node, error) {
	mode := n.Str("mode", "bilinear")
	if m := map[string]string{"bilinear": "linear", "bicubic": "cubic"}[mode]; m != "" {
		mode = m
	}
	n.SetAttr(AttrStr("mode", mode))
	return nil, nil
}
