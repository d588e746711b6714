//go:build mutants

package limits

import (
	"os"
	"os/exec"
	"testing"
)

// TestMain breaks the limits in the way that the environment names, as in
// grid-node/machine.
func TestMain(m *testing.M) {
	SelectMutant(os.Getenv("ORDERGRID_MUTANT"))
	m.Run()
}

// TestMutantsAreCaught runs the proof of each mutant, which must fail, and without one,
// when it must pass.
func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("ORDERGRID_MUTANT") != "" {
		t.Skip("runs in a process without a mutant")
	}
	proofs := map[string]bool{}
	for _, m := range Mutants() {
		proofs[m.Proof] = true
		if out, err := proof(m.Name, m.Proof); err == nil {
			t.Errorf("%s (%s) is not caught by %s: %s", m.Name, m.Breaks, m.Proof, out)
		} else if _, failed := err.(*exec.ExitError); !failed {
			t.Fatal(err)
		} else {
			t.Logf("%s: caught by %s", m.Name, m.Proof)
		}
	}
	for p := range proofs {
		if out, err := proof("none of them", p); err != nil {
			t.Errorf("%s fails without a mutant: %s", p, out)
		}
	}
}

func proof(mutant, test string) (string, error) {
	c := exec.Command(os.Args[0], "-test.run", "^"+test+"$", "-test.timeout", "120s")
	c.Env = append(os.Environ(), "ORDERGRID_MUTANT="+mutant)
	out, err := c.CombinedOutput()
	return string(out), err
}
