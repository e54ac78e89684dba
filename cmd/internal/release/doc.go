// Command release builds what is published of a version: for each platform an archive with the
// program, the licences of everything that is linked into it and a list of it (SPDX 2.3), wheels
// for pip, and SHA256SUMS. Everything of the same commit, toolchain and C compiler is the same bit
// for bit. .ci/release starts it; docs/install.md says what a user does with the files.
//
// # Concepts
//
// A target is a platform and whether cgo is used: the program with cgo runs ONNX Runtime, and the
// portable one, without, the pure-Go engine only, but everywhere. With cgo needs a C compiler for
// the platform. A released version is that of the tag at the commit, of a clean tree, and what was
// built has to say so itself; a snapshot is built from whatever lies there.
//
// # How to add a platform
//
// Add it to targets in target.go, with its tag for wheels in platformTags.
package main
