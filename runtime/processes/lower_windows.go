package processes

import "golang.org/x/sys/windows"

func lower(nice int) error {
	class := uint32(windows.BELOW_NORMAL_PRIORITY_CLASS)
	if nice == Least {
		class = windows.IDLE_PRIORITY_CLASS
	}
	is, err := windows.GetPriorityClass(windows.CurrentProcess())
	if err != nil || is == windows.IDLE_PRIORITY_CLASS || is == class {
		return err
	}
	return windows.SetPriorityClass(windows.CurrentProcess(), class)
}
