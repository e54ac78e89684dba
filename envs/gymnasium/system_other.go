//go:build !unix

package gymnasium

import (
	"fmt"
	"os"
	"runtime"
)

var errSystem = fmt.Errorf("environments of Python are not supported on %s, only on Linux, macOS and other Unix systems", runtime.GOOS)

func memoryFile() (*os.File, error)              { return nil, errSystem }
func mapShared(*os.File, int) ([]byte, error)    { return nil, errSystem }
func unmapShared([]byte) error                   { return errSystem }
func tryRead(uintptr, []byte) (int, bool, error) { return 0, false, errSystem }
func askWhere(*os.Process) error                 { return errSystem }
