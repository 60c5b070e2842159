package k8swatch

import "sync"

// tasks counts what a source has started, so that it can wait for its end. A
// Reflector leaves its list behind when its context ends; such a straggler finds
// that it may no longer begin.
type tasks struct {
	mu    sync.Mutex
	ended bool
	sync.WaitGroup
}

// begin reports whether a task may begin; the caller calls Done at its end.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.Add(1)
	}
	return !t.ended
}

// end lets nothing more begin and waits for what has.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.Wait()
}
