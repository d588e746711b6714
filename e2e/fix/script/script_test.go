package script

import (
	"testing"

	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
)

// Every script of the versions that the acceptor speaks, in a time of its own.
func TestConformance(t *testing.T) {
	dir, err := quickfixgo.Dir()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Versions {
		cases, err := Cases(dir, v)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(v.Name+"/"+c.Group+"/"+c.Name, func(t *testing.T) {
				world, err := NewVirtual(c.Profile)
				if err != nil {
					t.Fatal(err)
				}
				if err := Run(c.Path, world); err != nil {
					t.Errorf("%v\n  events: %q", err, world.Events)
				}
			})
		}
	}
}
