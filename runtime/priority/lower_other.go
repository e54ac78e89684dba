//go:build !unix && !windows

package priority

import "errors"

func lower(int) error { return errors.ErrUnsupported }
