package failoverdrill

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/allow"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// TestFaultsBeyondTheGridAreAllowed: faults that affect more than the grid need an administrator's permission for the
// namespace; with unsupportedFaults Skip they are left out.
func TestFaultsBeyondTheGridAreAllowed(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	executors := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name":"lab","types":[{"type":"NodePowerOff"}]}`))
	}))
	t.Cleanup(executors.Close)
	service, err := executor.NewClient(executors.URL, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.rec.Injectors = append(b.rec.Injectors, &inject.Executor{Name: "lab", Service: service, Reader: b.client})
	off := api.DrillFault{Name: "off", Type: api.FaultNodePowerOff, Duration: &metav1.Duration{Duration: 10 * time.Second}}

	refused := b.drill("refused", faults(killing("kill"), off))
	b.run(refused)
	b.run(refused)
	b.want(refused, api.ConditionPreflight, metav1.ConditionFalse, "FaultNotAllowed", "faults of type NodePowerOff cannot be made: it affects more than the grid (allowed in namespace "+b.namespace+
		": none), and an administrator has to allow it, by the value drills.allow of the operator's chart")
	b.rec.Defaults.Allowed = allow.List{"elsewhere": {"NodePowerOff"}, b.namespace: {"NodeLinkDown"}}
	b.run(refused)
	b.want(refused, api.ConditionPreflight, metav1.ConditionFalse, "FaultNotAllowed", "(allowed in namespace "+b.namespace+": NodeLinkDown)")
	b.rec.Defaults.Allowed = allow.List{b.namespace: {"NodePowerOff"}}
	b.until(refused, "it begins once it is allowed", func() bool { return phaseOf(&refused.Status) >= phaseStarting })
	if !slices.ContainsFunc(refused.Status.Providers, func(p api.DrillProvider) bool { return p.Type == api.FaultNodePowerOff && p.Provider == "Executor/lab" }) {
		t.Errorf("providers %+v", refused.Status.Providers)
	}

	b.rec.Defaults.Allowed = nil
	if err := b.client.Delete(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	b.until(refused, "it is gone", func() bool {
		return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(refused), &api.FailoverDrill{}))
	})
	skipping := b.drill("skipping", func(s *api.FailoverDrillSpec) {
		s.Faults, s.UnsupportedFaults = []api.DrillFault{killing("kill"), off}, api.UnsupportedSkip
	})
	b.until(skipping, "it begins without", func() bool { return phaseOf(&skipping.Status) >= phaseStarting })
	if s := skipping.Status.Skipped; len(s) != 1 || s[0].Fault != "off" || !strings.Contains(s[0].Message, "an administrator has to allow it") {
		t.Errorf("skipped %+v", s)
	}
}
