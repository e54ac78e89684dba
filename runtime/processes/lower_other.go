//go:build !unix && !windows

package processes

import "errors"

func lower(int) error { return errors.ErrUnsupported }
