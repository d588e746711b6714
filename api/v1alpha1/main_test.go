package v1alpha1_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

// newClient talks to a real API server with the generated CRDs.
func newClient(t *testing.T) client.Client {
	t.Helper()
	return envtest.Client(t, envtest.Config(t))
}
