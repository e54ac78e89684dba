// Package configs reads and writes the YAML that describes a run.
//
// # Strictness
//
// A configuration that is silently misread costs a training run, so nothing is guessed. These are
// errors, and all of them are reported at once, each with file, line, column, key path and the line
// of the source:
//
//   - a key the struct does not have (with a suggestion), a key given twice, a second YAML
//     document;
//   - a value that would change when written out again: 1.5 for an int, 300 for a uint8,
//     0.3333333333 for a float32, an integer beyond 2^53 for a float64. 1e6 and 0x10 are integers
//     and are accepted as such; 010 is refused, because YAML 1.1 reads it as 8 and YAML 1.2 as 10;
//   - a value of another kind: yes for a bool, a number for a string, a list for a mapping, null
//     for a number;
//   - tags, and documents that are too large, too deep or that expand to too much through aliases.
//
// # Vocabulary
//
// A [Document] is a parsed file. [Document.Set] edits it (the command line's --set),
// [Document.Decode] reads it into a struct that already holds the defaults and then validates. A
// [Section] is a part of the document that is kept raw with its positions, because its type is
// known only to its owner; [Kinded] is a section with the key "kind" which says who the owner is.
// [Marshal] writes the effective configuration; decoding that gives the same value again.
//
// # Structs
//
// A field's key is its yaml tag, or its name in snake case (LearningRate is learning_rate, NSteps
// is n_steps). A tag of "-" excludes a field; an embedded struct without a tag, or with ",inline",
// contributes its fields to the outer mapping. Lists and maps of a document replace the default as
// a whole; structs are filled in key by key, and so are elements of both that have defaults of
// their own ([Defaulter]).
//
// # Reference
//
// A [Book] says what a document can contain: every key, its type, its default and what it means, from
// the structs that documents are decoded into. It has the kinds that documents can name, in lists such
// as env or encoder, and what the comments in the source say of the fields. A field of type Kinded has
// the tag kinds:"LIST"; one of type Section, which has one form whatever the document says, the tag
// section:"LIST", whose only kind it is. From them and a struct that holds defaults come
//
//   - [Book.Keys], the keys with their meaning, for tables,
//   - [Book.Template], a commented document with every key and its default,
//   - [Book.Schema], the JSON Schema from which editors complete, and
//   - [Book.Check], all problems of a document, those of its kinds included.
//
// Nothing lists keys: a field that is added or renamed is described at once.
//
// # How to add a configuration
//
//  1. Write a struct with yaml tags and a constructor that returns the defaults.
//  2. Give it a method Validate() error that checks its own fields with [Problems]; nested structs
//     are visited by themselves.
//  3. For a part whose type depends on a name, use a [Kinded] field and call its Decode with the
//     owner's struct.
//  4. Put an example into experiments/; a test parses every file there.
package configs
