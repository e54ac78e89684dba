// Package snippets holds the test that runs the Python snippets of pages of docs as scripts, each page
// in an environment of its own with the packages that it names.
package snippets
