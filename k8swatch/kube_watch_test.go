package k8swatch

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	b := backoff{min: 250 * time.Millisecond, max: 10 * time.Second}
	var waited, longest time.Duration
	for waited < 10*time.Second {
		longest = b.next(0)
		waited += longest
	}
	if longest > 5*time.Second {
		t.Errorf("after 10 s it waits for %s", longest)
	}
	for range 10 {
		longest = b.next(0)
	}
	if longest != b.max {
		t.Errorf("in the long run it waits for %s", longest)
	}
	if got := b.next(time.Hour); got != b.min {
		t.Errorf("after a success it waits for %s", got)
	}
}

func TestRecoveryIsTold(t *testing.T) {
	told := 0
	s := &kindState{emit: func(item) {}, now: time.Now, log: slog.New(slog.DiscardHandler), recovered: func() { told++ }, span: untraced(t)}
	s.replaced(true, item{})
	if told != 0 {
		t.Error("a first list is no recovery")
	}
	s.failed(errClosed)
	s.watching()
	s.watching()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// When another kind is served again, nobody sits out a long wait.
func TestPauseEndsWhenAnotherKindRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{kube: &Kube{}, backoff: backoff{min: time.Second, max: time.Hour, now: time.Hour}}
		begin := time.Now()
		time.AfterFunc(time.Minute, w.kube.served.ring)
		w.pause(t.Context(), time.Hour)
		if got := time.Since(begin); got != time.Minute {
			t.Errorf("it paused for %s", got)
		}
		if got := w.backoff.next(0); got != time.Second {
			t.Errorf("the next pause is %s", got)
		}
		begin = time.Now()
		w.pause(t.Context(), time.Hour)
		if got := time.Since(begin); got != time.Hour {
			t.Errorf("an old ring still counts: %s", got)
		}
	})
}
