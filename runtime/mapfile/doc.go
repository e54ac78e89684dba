// Package mapfile maps files into memory for reading. A file must not become shorter while it is
// mapped: reading what is gone ends the process.
package mapfile
