// Package atomicfile replaces files so that a reader, a full disk, an error or a kill -9 at any
// moment leaves either the old content or the new one, never a part.
//
// # How
//
// The content goes to a temporary file in the same directory, the file is synced, renamed over the
// target, and the directory is synced; without the last step a power failure may undo the rename.
// On an error the temporary file is removed. A process that is killed leaves it behind: [Clean]
// removes those, and tells them from files that another live process is still writing by an
// advisory lock that the kernel releases when a process ends.
//
// A temporary name starts with a dot and contains ".tmp-"; programs that list a directory skip such
// names ([IsTemp]).
//
// # Mappings
//
// [Map] maps a file into memory for reading. A mapped file must not become shorter: reading what is gone
// ends the process. A file that this package replaces does not, as the old one stays whole for whoever
// has it open.
//
// # Testing with faults
//
// Everything goes through the small interface [Disk]. Package faultdisk wraps a Disk so that it
// runs full after a number of bytes or fails at a chosen operation; use it to test code that writes
// through this package.
//
// # How to add an operation
//
// Add a method to Disk, to osDisk and to faultdisk.Disk, where it must count as an operation.
package atomicfile
