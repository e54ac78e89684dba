// Package library finds the ONNX Runtime shared library, and installs it on
// first use where it is missing.
//
// The package is pure Go: it looks at files and runs package clients, and never
// loads what it finds. [github.com/onnxrl/onnxrl/runtime/ort] does the loading.
//
// # Where it looks
//
// [Locate] asks, in this order, and stops at the first answer:
//
//  1. [Options.Path], which a command's flag fills;
//  2. the environment variable [EnvLibrary];
//  3. the user's cache, where an earlier run installed it;
//  4. the directory of the executable, the dynamic loader's path and the usual
//     system directories;
//  5. an installation into the user's cache, unless [EnvInstall] forbids it.
//
// A library that a person names explicitly (1 and 2) is used or refused, never skipped: a
// typing error must not silently select another library. A file in the cache counts only
// if its SHA-256 is one of those in the catalogue; any other file must be built for this
// platform, export OrtGetApiBase and be of release 1.[MinMinor] or later, as far as its
// headers tell.
//
// # How it installs
//
// The library comes out of a published package of one exact [Version], fetched
// by the first package client of the catalogue that is present: pip, or npm where
// it has the release. No install script of a package is run. The file is unpacked beside its destination,
// compared with the size and SHA-256 of the catalogue while it is written,
// flushed to the disk and only then renamed, so no reader ever sees part of a
// library, whatever dies. An advisory lock on a file in the cache, which the
// operating system drops together with its owner, makes concurrent first uses
// wait for one of them.
//
// # How to move to another release
//
// Change [Version] (and, if onnxruntime_go's header moved, [MinMinor]), fetch
// each package of the catalogue for each platform, and replace sizes and
// checksums. TestCatalogue says what is inconsistent, TestFirstUseInstalls
// proves the row of the machine that it runs on.
package library
