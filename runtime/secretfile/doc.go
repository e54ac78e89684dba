// Package secretfile reads files of secrets: bearer tokens, one a line, without spaces, in printable
// ASCII, where blank lines and those that begin with # are left out; and certificates in PEM.
package secretfile
