// Package wrap changes environments from the outside. A wrapper is an envs.Env around another one; it owns it, and it can be saved when the other can.
//
// # How to add a wrapper
//
// Embed envs.Env, override what changes, give it an Unwrap method, and forward SaveState and LoadState through envs.SaveState and envs.LoadState with the wrapper's own state around. Run envtest.Run over a wrapped environment.
package wrap
