//go:build !noasm

package kernel

// Levels returns the instruction sets that this CPU and build can use. NEON is
// part of the ARMv8-A base that Go requires.
func Levels() []Level { return []Level{Portable, NEON} }
