// Package training holds the tests of what trains one agent, and of what is made of it: data,
// encoders and pretraining before, evaluation after, and the runs and documents of older programs.
package training
