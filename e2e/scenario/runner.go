package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Runner runs scenarios, one at a time, against a holdfast that reads a folder.
type Runner struct {
	Folder      string
	HTTP, HTTPS netip.AddrPort
	Generator   *fixture.Generator // makes certificates
	Backends    map[string]*backend.Backend
	// Within is how long a want may take to come true.
	Within time.Duration
}

// Words gives what ${…} may stand for.
func (r *Runner) Words() map[string]string {
	out := map[string]string{}
	for name, b := range r.Backends {
		at := b.Addrs()[0]
		out[name+".ip"], out[name+".port"] = at.Addr().String(), fmt.Sprint(at.Port())
	}
	crt, key := r.Generator.Certificate("wild.test")
	out["wild.crt"], out["wild.key"] = base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(key)
	return out
}

// Run runs one scenario and removes its objects.
func (r *Runner) Run(ctx context.Context, s *Scenario) (err error) {
	w := &written{runner: r, namespace: s.Namespace(), files: map[string]bool{}}
	defer func() { err = errors.Join(err, w.removeAll()) }()
	if err := w.apply(append(r.stock(s), s.Objects...)); err != nil {
		return err
	}
	for i := range s.Steps {
		if err := r.step(ctx, w, &s.Steps[i]); err != nil {
			return fmt.Errorf("step %d, %v: %w", i+1, &s.Steps[i], err)
		}
	}
	return nil
}

// stock makes the objects that a scenario asks for by one word.
func (r *Runner) stock(s *Scenario) []Object {
	var out []Object
	for service, name := range s.Backends {
		at := r.Backends[name].Addrs()[0]
		out = append(out,
			Object{
				"apiVersion": "v1", "kind": "Service", "metadata": Object{"name": service},
				"spec": Object{"ports": []any{Object{"port": 80, "protocol": "TCP"}}},
			},
			Object{
				"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
				"metadata":    Object{"name": service + "-1", "labels": Object{"kubernetes.io/service-name": service}},
				"addressType": "IPv4", "ports": []any{Object{"name": "", "port": at.Port(), "protocol": "TCP"}},
				"endpoints": []any{Object{"addresses": []any{at.Addr().String()}, "conditions": Object{"ready": true}}},
			})
	}
	for secret, names := range s.Certificates {
		crt, key := r.Generator.Certificate(names...)
		out = append(out, Object{
			"apiVersion": "v1", "kind": "Secret", "metadata": Object{"name": secret}, "type": "kubernetes.io/tls",
			"data": Object{"tls.crt": crt, "tls.key": key}, // bytes: written in base64
		})
	}
	return out
}

func (r *Runner) step(ctx context.Context, w *written, s *Step) error {
	switch {
	case s.Get != "":
		return r.ask(ctx, s)
	case len(s.Apply) > 0:
		return w.apply(s.Apply)
	case len(s.Delete) > 0:
		return w.delete(s.Delete)
	}
	return errors.New("the step does nothing")
}

// ask asks until the want holds twice in a row.
func (r *Runner) ask(ctx context.Context, s *Step) error {
	if s.Want == nil {
		return errors.New("a request without a want")
	}
	good := false
	return proc.Until(ctx, "the answer", r.Within, func(ctx context.Context) error {
		err := r.once(ctx, s)
		if err == nil && !good {
			good = true
			err = errors.New("good once, not twice")
		} else if err != nil {
			good = false
		}
		return err
	})
}

// written is what a scenario has put into the folder.
type written struct {
	runner    *Runner
	namespace string
	files     map[string]bool
}

func (w *written) apply(objects []Object) error {
	for _, o := range objects {
		meta, ok := asObject(o["metadata"])
		if !ok {
			return fmt.Errorf("an object without metadata: %v", o)
		}
		if meta["namespace"] == nil && o["kind"] != "IngressClass" {
			meta["namespace"] = w.namespace
		}
		o["metadata"] = meta
		raw, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		name := strings.ToLower(fmt.Sprintf("%v.%v.%v", o["kind"], meta["namespace"], meta["name"]))
		if err := fixture.WriteRaw(w.runner.Folder, name, raw); err != nil {
			return err
		}
		w.files[name] = true
	}
	return nil
}

func asObject(v any) (Object, bool) {
	switch m := v.(type) {
	case Object:
		return m, true
	case map[string]any:
		return m, true
	}
	return nil, false
}

func (w *written) delete(refs []string) error {
	for _, ref := range refs {
		parts := strings.Split(ref, "/")
		if len(parts) == 2 {
			parts = []string{parts[0], w.namespace, parts[1]}
		}
		name := strings.ToLower(strings.Join(parts, "."))
		if !w.files[name] {
			return fmt.Errorf("delete %s: no such object", ref)
		}
		if err := fixture.Remove(w.runner.Folder, name); err != nil {
			return err
		}
		delete(w.files, name)
	}
	return nil
}

func (w *written) removeAll() error {
	var errs []error
	for name := range w.files {
		errs = append(errs, fixture.Remove(w.runner.Folder, name))
	}
	return errors.Join(errs...)
}
