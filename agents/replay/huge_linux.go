package replay

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages: rows that are drawn at random miss the translation buffer of small ones at every row. It is only advice, so an error has no consequence.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
