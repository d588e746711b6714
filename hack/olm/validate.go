package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/interfaces"
)

// validators are those of operator-sdk's `bundle validate`, with all optional suites that look at the bundle alone: the one
// about architectures pulls the images it names.
var validators = validator.Validators{
	validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
	validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
	validation.ObjectValidator, validation.OperatorGroupValidator, validation.AlphaDeprecatedAPIsValidator,
	validation.GoodPracticesValidator,
}

// known are warnings that are right, and why nothing is done about them.
var known = []struct{ text, because string }{
	{"Kind=GridPartition: provided API should have an example annotation", "the operator writes it, people do not"},
	{"removed in v1.25. More info: https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-25. Migrate the API(s) for events", "a right to write events of group events.k8s.io, version v1: the library goes by the name of the group"},
}

// validate holds the bundle in a directory against the library's rules. A warning is an error too.
func validate(dir string) error {
	b, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	var all []error
	for _, result := range validators.Validate(b.ObjectsToValidate()...) {
		for _, e := range append(result.Errors, result.Warnings...) {
			if text := e.Error(); !slices.ContainsFunc(known, func(k struct{ text, because string }) bool { return strings.Contains(text, k.text) }) {
				all = append(all, fmt.Errorf("%s: %s", result.Name, text))
			}
		}
	}
	return errors.Join(all...)
}
