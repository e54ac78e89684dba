package study

// Work carries out what next returns, at most n at a time. It asks for more whenever something has
// ended, and returns when next has nothing and nothing goes on any more. next is called by one
// goroutine.
func Work(n int, next func() (do func())) {
	ended := make(chan struct{})
	for going := 0; ; going-- {
		for going < max(n, 1) {
			do := next()
			if do == nil {
				break
			}
			going++
			go func() {
				defer func() { ended <- struct{}{} }()
				do()
			}()
		}
		if going == 0 {
			return
		}
		<-ended
	}
}

// Parallel calls do for 0 to n-1, at most as many at a time as workers.
func Parallel(workers, n int, do func(i int)) {
	i := -1
	Work(workers, func() func() {
		if i++; i >= n {
			return nil
		}
		k := i
		return func() { do(k) }
	})
}
