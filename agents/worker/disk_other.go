//go:build !unix

package worker

import "errors"

// IsDiskFull reports whether an error is that of a disk that is full, as far as another process has
// said so.
func IsDiskFull(err error) bool { return errors.Is(err, ErrDiskFull) }
