package allow

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	known := func(what string) error {
		if what != "Fly" && what != "Swim" {
			return errors.New("allowed are Fly and Swim")
		}
		return nil
	}
	list, err := Parse("--allow", []string{"trading=Swim", "*=Fly", "trading=Fly", "trading=Swim"}, known)
	if err != nil {
		t.Fatal(err)
	}
	if got := list.In("trading"); !slices.Equal(got, []string{"Fly", "Swim"}) {
		t.Errorf("trading may %v", got)
	}
	if got := list.In("kube-system"); !slices.Equal(got, []string{"Fly"}) {
		t.Errorf("kube-system may %v", got)
	}
	if got := list.Sentence("trading"); got != "allowed in namespace trading: Fly, Swim" {
		t.Error(got)
	}
	if got := List(nil).Sentence("trading"); got != "allowed in namespace trading: none" {
		t.Error(got)
	}
	for entry, want := range map[string]string{
		"Fly":          `--allow: "Fly" is not NAMESPACE=WHAT`,
		"trading=":     `is not NAMESPACE=WHAT`,
		"=Fly":         `"" is not the name of a namespace`,
		"Trading=Fly":  `"Trading" is not the name of a namespace`,
		"trad*=Fly":    `"trad*" is not the name of a namespace`,
		"trading=Walk": `--allow: "trading=Walk": allowed are Fly and Swim`,
	} {
		if _, err := Parse("--allow", []string{entry}, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", entry, err, want)
		}
	}
}
