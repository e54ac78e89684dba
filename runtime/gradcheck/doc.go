// Package gradcheck compares the gradients that runtime/autodiff builds with differences of the
// forward model.
//
// The main check is one number for a tensor of any size. Draw a random tangent t of the inputs and
// a random cotangent c of the outputs; then ⟨t, Jᵀc⟩, computed from the gradient, must equal ⟨J·t,
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
package gradcheck
