// Package checkpoint saves and restores the complete state of a run, so that a resumed run
// continues exactly as an uninterrupted one. A checkpoint resumes; an artefact serves, and is made
// elsewhere.
//
// # Vocabulary
//
// A component with state is a [Stater]. It puts arrays and JSON sections into a [Writer] and takes
// them out of a [Reader] by name; [Writer.Scope] prefixes the names of a part. A checkpoint is a
// directory:
//
//	ckpt-000000123/
//	    arrays.safetensors   every array
//	    manifest.json        schema version, kind, step, sections, size and SHA-256 of the other files
//	    manifest.sha256      SHA-256 of the manifest, as sha256sum -c reads it
//
// A [Store] is a directory of checkpoints. The listing is the index: there is no file that could
// disagree with it.
//
// # What cannot go wrong
//
// A checkpoint is written into a temporary directory, synced and renamed, so that it is there as a
// whole or not at all: after an error, a full disk or a kill -9 the checkpoints published before it
// are untouched. One that is pruned is renamed away before it is deleted. What a killed process has
// left is removed when the store is opened for writing; a lock keeps a second process from writing
// to the same store. Loading verifies every hash before any state is changed, and then requires
// that every entry is read exactly once with the expected type and shape; the error names what is
// missing, left over or different.
//
// # Versions
//
// The manifest's layout has a version, and older ones are migrated on load (migrate.go). What a
// component stores is the component's business: it should add a version to a section of its own
// when it changes the meaning of an entry.
//
// # How to make a component resumable
//
//  1. Give it SaveState and LoadState with the same names in both. Save counters, random streams
//     (they are JSON), moments, and whatever else the next step depends on.
//  2. Save it below a scope of its own: w.Scope("optim").
//  3. Test that n steps, save, load into a fresh component and n more steps equal 2n steps, bit by
//     bit.
package checkpoint
