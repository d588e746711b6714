package gridfunction

import (
	"context"
	"fmt"
	"slices"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/function"
)

// check loads the module as a grid node does, with what it is granted, and returns what it asks for. An error is a
// *Problem. It takes up to seconds, and memory by the size of the module.
func check(ctx context.Context, spec *api.GridFunctionSpec, files *Files) (*api.FunctionModuleStatus, error) {
	options := function.Options{Pages: uint32(spec.MemoryPages), Fuel: int64(spec.Fuel), Config: files.Config}
	kind := map[api.FunctionKind]function.Kind{api.FunctionPre: function.Pre, api.FunctionPost: function.Post, api.FunctionCompute: function.Compute}[spec.Kind]
	for _, tag := range spec.SetTags {
		if !function.Settable(uint32(tag)) {
			return nil, &Problem{Reason: reasonNotGranted, Text: fmt.Sprintf("spec.setTags: tag %d cannot be granted: it is of the envelope, the session or the order's identity, or decides how other tags are read; remove it", tag)}
		}
		options.Tags = append(options.Tags, uint32(tag))
	}
	m, err := function.Load(ctx, files.Module, kind, options)
	if err != nil {
		return nil, &Problem{Reason: reasonModuleRefused, Text: err.Error()}
	}
	defer func() { _ = m.Close(ctx) }() // of memory only
	status := &api.FunctionModuleStatus{SHA256: fmt.Sprintf("%x", m.Digest()), Bytes: int32(len(files.Module))}
	if kind == function.Compute {
		return status, nil // it is given a key, not an order
	}
	status.Asks = api.FunctionReadsTags
	message, tags := m.Asks()
	if message {
		status.Asks = api.FunctionReadsMessage
	}
	for _, t := range tags {
		if t > 0 && t < 100_000 && !slices.Contains(status.Tags, int32(t)) {
			status.Tags = append(status.Tags, int32(t))
		}
	}
	return status, granted(spec, status)
}

// granted reports what the module asks for and spec does not grant.
func granted(spec *api.GridFunctionSpec, asks *api.FunctionModuleStatus) error {
	if spec.Reads != api.FunctionReadsTags {
		return nil
	}
	if asks.Asks == api.FunctionReadsMessage {
		return &Problem{Reason: reasonNotGranted, Text: "the module asks for the whole message, allowed are the tags of spec.readTags; set spec.reads to Message, or use a module that asks for tags"}
	}
	for _, t := range asks.Tags {
		if !slices.Contains(spec.ReadTags, t) {
			return &Problem{Reason: reasonNotGranted, Text: fmt.Sprintf("the module asks for tag %d, allowed are those of spec.readTags: %v; add it, or use a module that does not ask for it", t, spec.ReadTags)}
		}
	}
	return nil
}
