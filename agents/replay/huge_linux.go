package replay

import "golang.org/x/sys/unix"

// AdviseHuge asks for huge pages for memory that begins at a page: rows that are drawn at random
// miss the translation buffer of small ones at every row. It is only advice, so an error has no
// consequence.
func AdviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
