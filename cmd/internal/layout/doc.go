// Package layout holds the tests that keep the repository's shape: which package may import which,
// how long files may grow, what the top level holds, that every package says what it is, and that a
// module of its own can be built on what is public.
//
// To add a package: give it a doc.go or package comment, and add it to the table in imports_test.go
// when none of its rows covers it.
package layout
