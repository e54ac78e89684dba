//go:build unix

package worker

import (
	"errors"
	"syscall"
)

// IsDiskFull reports whether an error is that of a disk, or of a user's share of it, that is full.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, ErrDiskFull)
}
