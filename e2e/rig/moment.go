package rig

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
)

// Moment is what an Envoy holds at one time, and what it had removed until then.
type Moment struct {
	Holdings envoy.Holdings
	counters map[string]uint64
}

// removals are Envoy's counters of what it removed, by kind. Removed routes and
// scopes are not counted by Envoy.
var removals = map[envoy.Kind]string{
	envoy.Clusters:  "cluster_manager.cluster_removed",
	envoy.Listeners: "listener_manager.listener_removed",
}

// Moment asks Envoy.
func (r *Rig) Moment(ctx context.Context) (Moment, error) {
	h, err := r.Envoy.Holdings(ctx)
	if err != nil {
		return Moment{}, err
	}
	c, err := r.Envoy.Stats(ctx, `^(cluster_manager\.cluster|listener_manager\.listener)_removed$`)
	return Moment{Holdings: h, counters: c}, err
}

// Removed counts the removals of a kind since an earlier Moment: by Envoy's own
// counter, or by the names that are gone, whichever is more.
func (m Moment) Removed(before Moment, k envoy.Kind) int {
	counter := removals[k]
	return max(int(m.counters[counter]-before.counters[counter]), len(m.Holdings.Lost(before.Holdings, k)))
}

// Check gives an error that names everything removed, or touched, since an
// earlier Moment.
func (m Moment) Check(before Moment) error {
	var faults []string
	for _, k := range envoy.Kinds {
		if n := m.Removed(before, k); n > 0 {
			faults = append(faults, fmt.Sprintf("%d %s removed %v", n, k, some(m.Holdings.Lost(before.Holdings, k))))
		}
		if names := m.Holdings.Touched(before.Holdings, k); len(names) > 0 {
			faults = append(faults, fmt.Sprintf("%d %s updated %v", len(names), k, some(names)))
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("changed in Envoy: %s", strings.Join(faults, "; "))
}

func some(names []string) []string { return names[:min(len(names), 5)] }
