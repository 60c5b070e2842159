package suite

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profile fetches a CPU profile of holdfast over the given time, in the
// background, and a heap profile at its end; wait waits for both. Without
// Config.Profiles it does nothing.
func (r *rig) profile(ctx context.Context, name string, d time.Duration) (wait func()) {
	if r.Profiles == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		base := filepath.Join(r.Profiles, fmt.Sprintf("%s-%d", name, r.hosts))
		url := "http://" + r.server.Config.Admin.String() + "/debug/pprof/"
		err := poll(ctx, patience, func() error {
			return fetch(ctx, fmt.Sprintf("%sprofile?seconds=%d", url, max(1, int(d.Seconds()))), base+".cpu.pprof")
		})
		if err == nil {
			err = fetch(ctx, url+"heap?gc=1", base+".heap.pprof")
		}
		if err != nil {
			r.Log("profile %s: %v", name, err)
		}
	}()
	return func() { <-done }
}

func fetch(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, response.Body)
	return err
}
