// Package apptest is what the tests of onnxrl's commands share: they run the program as a process
// of its own, read what it prints and leaves, and stop it in the middle.
//
// The tests themselves are in three packages, so that each has the go command's limit of ten
// minutes for itself: cmd/app, beside the commands, and apptest/training and apptest/studies, which
// train. Their test binaries are the program, too; see [Main].
package apptest
