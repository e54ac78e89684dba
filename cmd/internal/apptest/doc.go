// Package apptest is what the tests of onnxrl's commands share: they run the program, read what it
// prints and leaves, and stop it in the middle.
//
// Most commands run in the process of the tests, by [Run]; [Program] is for signals, crashes and what
// a process is given. The tests themselves are beside the commands, in cmd/app, and in packages by
// what they are about. Each links the whole program, so that a few large packages are quicker than
// many small ones. Their test binaries are the program, too; see [Main].
package apptest
