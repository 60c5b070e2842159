package page

import (
	"slices"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// listen notes what the page asked for, and what went wrong.
func (t *Tab) listen(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.errors = append(t.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			t.errors = append(t.errors, string(e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			t.errors = append(t.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		t.requested = append(t.requested, e.Request.URL)
	}
}

// Errors gives what went wrong on the page until now.
func (t *Tab) Errors() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.errors)
}

// Requested gives what the page asked for until now.
func (t *Tab) Requested() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requested)
}
