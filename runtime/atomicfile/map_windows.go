package atomicfile

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Map maps the first n bytes of a file, which may be closed afterwards.
func Map(f *os.File, n int) ([]byte, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	// The view keeps the mapping alive after its handle is closed.
	defer windows.CloseHandle(h)
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(n))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n), nil
}

// Unmap ends a mapping.
func Unmap(b []byte) error {
	return windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// ReleasePages does nothing: the system takes pages back when it needs them.
func ReleasePages([]byte) {}
