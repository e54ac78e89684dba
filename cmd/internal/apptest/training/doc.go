// Package training holds the tests of what trains one agent, and of what is made of it: data,
// encoders and pretraining before, evaluation after, the Python snippets with which pages of docs use
// it, and documents of older programs, whose runs are in package golden.
package training
