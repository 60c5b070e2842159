package k8swatch

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/holdfast-xds/holdfast/kinds"
)

// Silence is a fault only before the end of a streamed list.
func TestFeedStalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		initial, end bool
		stalls       bool
	}{
		{"a list without its end", true, false, true},
		{"a list that has ended", true, true, false},
		{"a watch", false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lister{resource: resource{Watched: kinds.Find(kinds.Service)}, running: &tasks{}, stall: 30 * time.Second}
				l.state = &kindState{emit: func(item) {}, now: time.Now, span: untraced(t)}
				from := watch.NewFake()
				if !l.running.begin() {
					t.Fatal("may not begin")
				}
				f := l.feed(from, c.initial, nil)
				if c.end {
					end := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
					from.Action(watch.Bookmark, end)
					<-f.ResultChan()
				}
				stalled := false
				select {
				case e := <-f.ResultChan():
					stalled = e.Type == watch.Error
				case <-time.After(time.Hour):
				}
				if stalled != c.stalls || l.noStream.Load() != c.stalls {
					t.Errorf("stalled: %v", stalled)
				}
				f.Stop()
				l.running.end()
			})
		})
	}
}
