// Package safetensors reads and writes the safetensors format: named arrays in one file, without
// code in it.
//
// # The format
//
// Eight bytes with the length of the header (little-endian), the header as JSON, and the arrays'
// bytes, little-endian and row-major. The header maps each name to its dtype, shape and the range
// of its bytes after the header; "__metadata__" maps strings to strings. See
// https://github.com/huggingface/safetensors, section "Format".
//
// # What is accepted
//
// [Open] and [NewFile] check everything before any array is read: a header of at most 100 MB, a
// unique name for each array, known dtypes, sizes that do not overflow and agree with the ranges,
// ranges that cover the data exactly, without holes or overlaps. Nothing is allocated in proportion
// to a number that the file merely claims.
//
// # Memory
//
// Writing takes the caller's slices as they are ([New] keeps a view, not a copy), and reading goes
// straight into the caller's slice. The views rely on a little-endian host; on others the package
// refuses to work with an error.
//
// The header is padded with spaces so that the data starts at a multiple of 64 bytes in the file,
// and arrays are written by falling element size, so that each is aligned to its elements in a
// mapped file.
//
// # How to add a dtype
//
// Add the constant and its size to dtype.go and, where Go has the type, a case to dtypeOf.
package safetensors
