// Package objects moves directories, files and bytes between machines through storage that any of
// them can reach: a directory, such as one of a network file system, or what a driver adds.
//
// # Vocabulary
//
// A [Bucket] has whole objects under keys. A [Store] is content-addressed storage in a bucket: a
// [Blob] has the SHA-256 of its content for a name. A tree is a directory: [Store.PutTree] stores
// it and returns a reference, a digest, and [Store.GetTree] makes the same directory elsewhere. A
// reference is small and says exactly what comes, so it is what messages between machines carry.
//
//	blobs/sha256/HEX    a file of at most 16 MiB, a part of a larger one, or the manifest of a tree
//	parts/sha256/HEX    of a larger file: which blobs it consists of
//	tags/NAME           a small value under a name that moves
//
// A [Reference] is written URL#sha256:HEX, or URL#sha256:HEX/PATH for a file of a tree. [Local]
// gives the path of what it names on this machine: whoever opens files that documents name calls
// it, so a document may name a reference in place of a path. [Abs] and [Named] make the reference
// of a copy's path again, for what is written down.
//
// # What cannot go wrong
//
// Everything is found by its key and nothing by listing, so lists that are old or incomplete do not
// matter. An object is written as a whole, from bytes whose digest is its key; a manifest comes
// after everything that it names. What arrives is compared with its digest, put into a temporary
// directory and renamed. So a tree is there, whole and as it was, or it is not there.
//
// Reading notices bytes that a storage has lost at rest. The error names the object; who sends what
// it is a part of again, with [Options].Verify, mends it. Without that an object that is there with
// the expected size is taken to be whole. A damaged part of the [Cache] is fetched again.
//
// Errors of a storage are tried again with exponential back-off, as long as that brings bytes and
// then [Options].Attempts times. A file is sent in parts of 16 MiB; parts that have arrived are not
// sent again, by another process either, and parts that were received are in the [Cache].
//
// # Secrets
//
// URLs have no credentials: those with user info, and parameters that a driver does not know, are
// refused. Drivers find credentials where the storage's own tools do. Errors and [Store.URL] show
// URLs as [Redact] leaves them.
//
// # How to add a kind of storage
//
// Write a package with a [Bucket] and [Register] its scheme when it is imported; the program
// imports it. Say which errors are final, and never list.
package objects
