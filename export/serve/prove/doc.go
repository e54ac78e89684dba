// Package prove tries a version of a model in a process of its own before a server takes it in: a
// fault in an engine's C++ ends the process that it happens in, and nothing can catch it there.
//
// [Process] is the server's side; its Try is what serve.Options.Prove asks for. [Main] is the other
// side: a program that is started with [Process].Argv calls it with its standard input and output.
// It compiles the model and runs it on zeros and on ones. [Process.Compiler] puts a trial before
// every compilation, for commands that open models which others wrote.
//
// Weights stay behind: what a kernel computes with cannot crash it, so floating-point weights that
// are only computed with are replaced by one number. That makes trying a large model cheap to
// begin, and versions that differ in such weights alone, as those of a training do, are tried once.
// All weights come along where what they give may decide sizes, divisors or how long a run takes.
package prove
