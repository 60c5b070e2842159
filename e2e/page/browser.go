package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a real Chromium with a profile of its own. It reaches nothing but what
// it is told to open.
type Browser struct {
	ctx  context.Context
	ends []context.CancelFunc
	dir  string
}

// flags keep Chromium from calling home, and let it run as root.
var flags = []chromedp.ExecAllocatorOption{
	chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU,
	chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
	chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	chromedp.Flag("disable-extensions", true), chromedp.Flag("disable-default-apps", true),
	chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true),
	chromedp.Flag("disable-features", "OptimizationHints,MediaRouter,Translate"),
	chromedp.Flag("hide-scrollbars", false), chromedp.Flag("force-color-profile", "srgb"),
}

// Start starts the browser that the path names.
func Start(ctx context.Context, path string) (*Browser, error) {
	dir, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		return nil, err
	}
	opts := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(dir)}, flags...)
	allocator, end1 := chromedp.NewExecAllocator(ctx, opts...)
	tab, end2 := chromedp.NewContext(allocator)
	b := &Browser{ctx: tab, ends: []context.CancelFunc{end2, end1}, dir: dir}
	if err := chromedp.Do(tab); err != nil {
		b.Close()
		return nil, fmt.Errorf("chromium: %w", err)
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() {
	for _, end := range b.ends {
		end()
	}
	_ = os.RemoveAll(b.dir) // a leftover in the temporary folder
}

// View is how a page is looked at.
type View struct {
	Width, Height int64
	Dark          bool
	NoScript      bool
}

// Tab is an open page, with what went wrong on it.
type Tab struct {
	ctx context.Context

	mu sync.Mutex
	// errors are exceptions, and what the console said of errors: a broken content
	// security policy, say.
	errors []string
	// requested are the addresses of all that was asked for.
	requested []string
}

// pageLimit bounds what is done on one page.
const pageLimit = time.Minute

// Open opens an address in a tab of its own, and does something there.
func (b *Browser) Open(url string, v View, do func(*Tab) error) error {
	ctx, closeTab := chromedp.NewContext(b.ctx)
	defer closeTab()
	t := &Tab{ctx: ctx}
	if err := chromedp.Listen(ctx, t.listen); err != nil {
		return fmt.Errorf("chromium: %w", err)
	}
	t.ctx, closeTab = context.WithTimeout(ctx, pageLimit)
	defer closeTab()
	if err := t.open(url, v); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if err := do(t); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

func (t *Tab) open(url string, v View) error {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	return t.Do(
		send(network.Enable, network.EnableParams{}), send(log.Enable, cdp.Empty{}), send(runtime.Enable, cdp.Empty{}),
		chromedp.EmulateViewport(v.Width, v.Height),
		send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		send(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.NoScript}),
		chromedp.Navigate(url),
		chromedp.WaitReady(chromedp.CSS("main")),
	)
}

// send makes an action of a command of the protocol.
func send[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// Do does things on the page.
func (t *Tab) Do(steps ...chromedp.Action[chromedp.Void]) error {
	return chromedp.Do(t.ctx, steps...)
}

// Eval evaluates an expression on the page.
func Eval[T any](t *Tab, expression string) (T, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Shot writes a picture of the whole page.
func (t *Tab) Shot(file string) error {
	png, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}
