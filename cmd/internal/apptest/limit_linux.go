package apptest

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// EnvFileSize limits the size of the files that the program may write: the kernel then refuses as a
// full disk does.
const EnvFileSize = "ONNXRL_TEST_FILE_SIZE"

func init() {
	n, err := strconv.ParseUint(os.Getenv(EnvFileSize), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}
