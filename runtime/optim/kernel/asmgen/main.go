// Command asmgen writes the vector kernels of package kernel.
//
// Every element-wise kernel is described once, as a straight-line program over
// one vector of float32 (programs.go), and printed for three instruction sets:
// AVX2, AVX-512F and NEON. One description is what makes it believable that
// the three agree; the Go twins in package kernel are written by hand and
// independently, so the tests compare two different authors' versions.
//
// Run it through `go generate ./runtime/optim/kernel`. A test of this package
// fails when the committed files are not what the generator prints.
//
// To add a kernel: write the twin and the exported wrapper in package kernel,
// describe the program in programs.go, run go generate, and add the kernel to
// the table in kernel_test.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "folder of package kernel")
	flag.Parse()
	files, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "asmgen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asmgen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the text of every generated file by name.
func generate() (map[string][]byte, error) {
	ps := programs()
	amd, err := amd64Text(ps)
	if err != nil {
		return nil, err
	}
	arm, err := arm64Text(ps)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"kernels_amd64.s": amd, "kernels_arm64.s": arm}
	for name, arch := range map[string]archStubs{
		"kernels_amd64.go": {tag: "!noasm", suffixes: []string{"AVX512", "AVX2"}, lanes: []int{16, 8}},
		"kernels_arm64.go": {tag: "!noasm", suffixes: []string{"NEON"}, lanes: []int{4}},
		"kernels_noasm.go": {tag: "noasm || !(amd64 || arm64)"},
	} {
		text, err := stubsText(ps, arch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}
