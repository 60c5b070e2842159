package k8swatch

import "sync"

// bell wakes all who wait for it: one kind that is served again is a sign that
// the others may be too.
type bell struct {
	mu sync.Mutex
	c  chan struct{} // closed by ring; nil until somebody waits
}

func (b *bell) rung() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
