package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// aliased are rules by which a Secret is found however its name is written, and
// "any" answers for names that end in "?".
type aliased struct{ indextest.Rules }

func (a aliased) Types() []index.TypeSpec {
	types := a.Rules.Types()
	for i := range types {
		if types[i].URL == indextest.Secret {
			types[i].Aliasing = &index.Aliasing{
				Candidates: func(name string) []string {
					var out []string
					if lower := strings.ToLower(name); lower != name {
						out = append(out, lower)
					}
					if strings.HasSuffix(name, "?") {
						out = append(out, "any")
					}
					return out
				},
				Rename: func(body []byte, name string) []byte { return fmt.Appendf(nil, "%s for %s", body, name) },
			}
		}
	}
	return types
}

func newAliased() *index.Index {
	ix, err := index.New(aliased{})
	if err != nil {
		panic(err)
	}
	ix.Apply(index.Cause{}, index.SourceID{ID: "s"})
	return ix
}

// TestAliases runs scripts as TestScenarios does.
func TestAliases(t *testing.T) {
	datadriven.Walk(t, "testdata/aliases", func(t *testing.T, path string) {
		p := &play{t: t, client: newClient(newAliased())}
		p.fresh = newAliased
		datadriven.RunTest(t, path, p.run)
	})
}

// There are ever so many ways to write a name: a client is never left with many.
func TestAliasesAreTakenBack(t *testing.T) {
	c := newClient(newAliased())
	c.ix.Apply(index.Cause{}, indextest.Changes("list host @10; a cert=any @5\nlist path @10\nlist svc @10\nlist slice @10\nlist cert @10; any pem=x @6")...)
	c.connect(c.ix)
	const asked = 1000
	for i := range asked {
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Secret, ResourceNamesSubscribe: []string{fmt.Sprintf("n%d?", i)}})
		for c.flying[delta.Secret] != nil {
			c.ack(delta.Secret)
		}
	}
	held := c.holds[delta.Secret]
	if len(held) != 256 || held[fmt.Sprintf("n%d?", asked-1)].body == "" {
		t.Errorf("the client is left with %d aliases", len(held))
	}
	i := slices.IndexFunc(c.stream.Status().Types, func(s delta.TypeStatus) bool { return s.Type == delta.Secret })
	if s := c.stream.Status().Types[i]; s.Subscribed != 256 || s.Held != 256 {
		t.Errorf("holdfast is left with %d subscriptions and %d held", s.Subscribed, s.Held)
	}
	// One that was taken back is lent again.
	c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Secret, ResourceNamesSubscribe: []string{"n0?"}})
	c.ack(delta.Secret)
	if c.holds[delta.Secret]["n0?"].body == "" {
		t.Error("an alias is not lent twice")
	}
}
