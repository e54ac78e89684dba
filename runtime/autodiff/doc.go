// Package autodiff differentiates ONNX models: it turns a model into one that also outputs
// gradients, made of standard operators and run by the same engines.
//
// # How a gradient is built
//
// [Grad] works in named stages. It binds symbolic extents and infers every type. It expands
// composite operators on the path from the parameters to the loss into operators that have rules.
// It marks the values that matter: useful values depend on a differentiated value, reached values
// influence a loss. It walks the nodes backwards, calling one rule per node. Summing a gradient
// over broadcast axes and adding up the gradients of a value that is used more than once happen
// centrally, so a rule never thinks about either. Differentiated values that no loss depends on get
// explicit zeros and are reported. Finally dead nodes are removed and types are inferred again.
//
// Every value made on behalf of a forward node lies below that node's name: the gradient of node
// fc1 is computed by nodes called grad/fc1/….
//
// # Conventions at kinks
//
// Relu and its relatives use the derivative from the left, which is 0 for Relu; Abs uses 0; Clip
// passes the gradient at its bounds; reductions, Max, Min and the scatter operators share the
// gradient equally among ties; norms have the gradient 0 at 0, and x⁰ the derivative 0 everywhere;
// piecewise constant operators (Floor, Sign, comparisons, integer and shape operators) are listed
// explicitly as having no gradient. An operator that is in no list is an error naming the node,
// never a silent zero.
//
// # How to add an operator
//
// Write rule_<op>.go with a function of type VJP (or Expand, when the operator is best replaced by
// others), add one line to the family's table there, and add at least three cases to package
// opcases, in its cases_<family>.go: the suite runs each case on every engine against finite
// differences, differentiates it twice, and counts the comparisons. A rule returns one gradient per
// input, in the shape of that input or in any shape that broadcasting made of it; the absent Value
// means that no gradient flows. Emit operators that have rules themselves, so that second
// derivatives exist, and where there is a choice measure it and write the figures down.
package autodiff
