//go:build noasm || !(amd64 || arm64)

package kernel

// Levels returns the instruction sets that this CPU and build can use.
func Levels() []Level { return []Level{Portable} }
