package load

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Phase is a stretch of equal outcomes.
type Phase struct {
	Outcome string
	Since   time.Time
	Answers int
	Detail  string // of its first answer, when it is not the wanted one
}

// watchRate is how often a Watch asks, per second, unless its configuration
// says otherwise: often enough to see a gap of milliseconds.
const watchRate = 500

// Watch asks for one target again and again and keeps the sequence of outcomes,
// for questions like "did it ever say 503 between 404 and 200".
type Watch struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	phases []Phase
}

// StartWatch begins to ask, each request on a fresh connection.
func StartWatch(ctx context.Context, c Config, t Target) *Watch {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Rate == 0 {
		c.Rate = watchRate
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{cancel: cancel}
	w.done.Go(func() { w.loop(ctx, &c, &t) })
	return w
}

func (w *Watch) loop(ctx context.Context, c *Config, t *Target) {
	pace := time.NewTicker(time.Duration(float64(time.Second) / c.Rate))
	defer pace.Stop()
	for ctx.Err() == nil {
		var slot *conn
		began := time.Now()
		o := exchange(ctx, c, t, &slot)
		closeConn(&slot)
		if ctx.Err() == nil {
			w.add(began, o)
		}
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
}

func (w *Watch) add(began time.Time, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.phases); n == 0 || w.phases[n-1].Outcome != o.name {
		w.phases = append(w.phases, Phase{Outcome: o.name, Since: began, Detail: o.detail})
	}
	w.phases[len(w.phases)-1].Answers++
}

// Phases so far.
func (w *Watch) Phases() []Phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Phase(nil), w.phases...)
}

// Now is the last phase's outcome; empty before the first answer.
func (w *Watch) Now() string {
	p := w.Phases()
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1].Outcome
}

// Stop ends it and gives the sequence.
func (w *Watch) Stop() []Phase {
	w.cancel()
	w.done.Wait()
	return w.Phases()
}

// Outcomes gives a sequence's outcomes, "404 200".
func Outcomes(phases []Phase) string {
	var names []string
	for _, p := range phases {
		names = append(names, p.Outcome)
	}
	return strings.Join(names, " ")
}

// String gives the phase with its length.
func (p Phase) String() string {
	return fmt.Sprintf("%s %s ×%d", p.Since.Format("15:04:05.000"), p.Outcome, p.Answers)
}
