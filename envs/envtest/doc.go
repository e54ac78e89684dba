// Package envtest is the suite that every environment passes: the contract of package envs, as
// code.
//
// [Run] plays an environment with random valid actions and checks that
//
//   - the spec is valid, and every value of every step lies in it, masks and tables included;
//   - the first step has no reward, and steps are first after the last and at no other time;
//   - the same key and actions give the same bits, whatever TimeStep is passed, and other keys give
//     other episodes exactly where the spec says so;
//   - observations are written in place, completely, and a step allocates nothing;
//   - actions outside the space are errors that change nothing, and actions that the mask excludes
//     are none;
//   - Step before Reset, after the last step and after Close are errors;
//   - an episode can be abandoned, and, for an envs.Saver, saved and continued in another
//     environment.
//
// It counts what it compared, and fails when no episode came to its last step. Environments whose
// episodes do not end under random actions are given a Policy that ends them.
package envtest
