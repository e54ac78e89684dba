// Package gradcheck compares the gradients that runtime/autodiff builds with differences of the
// forward model ([Check]), and with those that another framework computed ([CheckFixture]).
//
// The main check is one number for a tensor of any size. Draw a random tangent t of the inputs and
// a random cotangent c of the outputs. Then ⟨t, Jᵀc⟩, computed from the gradient, must equal ⟨J·t,
// c⟩, computed from central differences of the model along t. Small inputs are also checked element
// by element.
//
// # Precision
//
// Differences of float32 numbers are poor, so a model is also converted to float64 ([Double]). The
// engine decides what it can run, and the check is as strict as that allows; [Result] says which
// [Level] was reached:
//
//   - double: model and gradient run in float64 and must agree with differences to 1e-6; the
//     float32 gradient must agree with the float64 one.
//   - mixed: only the model runs in float64; the float32 gradient is compared with float64
//     differences.
//   - single: all is float32. The step is larger and the tolerance wider.
//
// All differences are extrapolated from two steps (Richardson), whose error is of fourth order in
// the step, so that a step of 0.02 is good enough in float32.
//
// Points must stay away from kinks by more than the step: generators of inputs see to it.
//
// # Fixtures of other frameworks
//
// A fixture is a directory:
//
//	model.onnx                 the forward model
//	data/input_<i>.pb          inputs
//	data/output_<k>.pb         expected outputs
//	data/cotangent_<k>.pb      ∂loss/∂output, one per output: loss = Σₖ Σ output·cotangent
//	data/grad_param_<j>.pb     expected gradients of initializers
//	data/grad_input_<i>.pb     expected gradients of inputs
//
// Further folders data_2, data_3 and so on hold more points of the same layout and input shapes.
// All points run through one compiled program, which is how shapes that depend on the data are
// checked.
//
// Each file holds a TensorProto. The name inside a gradient is that of the initializer or input it
// belongs to. The names of inputs and outputs may be empty, then the number in the file name is the
// position in the graph. What is compared is stated by the files: a tensor that the model lacks,
// and a file that the directory should have and lacks, are failures.
//
// Errors are relative to the largest element of a tensor: |Δ| / (1e-6 + max|expected|). Where that
// exceeds the tolerance through nothing but differences below four units in the last place (2⁻²¹)
// of the largest gradient of the fixture, these do not count: the bias of attention keys has a
// gradient that is zero in theory, both sides hold rounding noise, and no two ways of summing agree
// on noise. Compared.Rounding then holds the error as it stands, and it is printed.
package gradcheck
