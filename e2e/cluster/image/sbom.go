package image

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// labelVersion is the label of an image with the version of its program.
const labelVersion = "org.opencontainers.image.version"

// BillOfMaterials lists what is in an image, read back from the very files that were packed into it: the program, every Go
// module that the linker lists in it, and Go's own library. An image is FROM scratch, so that there is nothing else; a
// file that is no Go program is listed by its digest. The same image gives the same bytes: there is no time in it, and its
// serial number comes from the image's id.
func BillOfMaterials(d *Dockerfile, context, ref, id string) ([]byte, error) {
	digest := strings.TrimPrefix(id, "sha256:")
	serial, err := serialNumber(digest)
	if err != nil {
		return nil, fmt.Errorf("image id %q: %w", id, err)
	}
	name, tag, _ := strings.Cut(ref, ":")
	image := cyclonedx.Component{
		BOMRef: id, Type: cyclonedx.ComponentTypeContainer, Name: name, Version: tag, Description: d.Labels["org.opencontainers.image.description"],
		Licenses: licence(d.Labels["org.opencontainers.image.licenses"]),
		Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: digest}},
	}
	bom := cyclonedx.NewBOM()
	bom.SpecVersion, bom.JSONSchema = cyclonedx.SpecVersion1_6, "http://cyclonedx.org/schema/bom-1.6.schema.json"
	bom.SerialNumber = serial
	bom.Metadata = &cyclonedx.Metadata{Component: &image}

	parts, in := newParts(), []string{}
	for _, c := range d.Copies {
		ref, err := parts.addFile(filepath.Join(context, filepath.FromSlash(c.Source)), c.Target, d.Labels[labelVersion])
		if err != nil {
			return nil, fmt.Errorf("COPY %s: %w", c.Source, err)
		}
		in = append(in, ref)
	}
	components, needs := parts.sorted()
	needs = append([]cyclonedx.Dependency{{Ref: id, Dependencies: &in}}, needs...)
	bom.Components, bom.Dependencies = &components, &needs
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
	return out.Bytes(), err
}

// serialNumber is a UUID of the kind that is made from a name (RFC 9562, version 8): the beginning of the image's id.
func serialNumber(digest string) (string, error) {
	b, err := hex.DecodeString(digest)
	if err != nil || len(b) < 16 {
		return "", fmt.Errorf("want a SHA-256 in hexadecimal: %w", err)
	}
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16]), nil
}

func licence(expression string) *cyclonedx.Licenses {
	if expression == "" {
		return nil
	}
	return &cyclonedx.Licenses{{Expression: expression}}
}

// Summary is one line for people about a bill of materials that BillOfMaterials made.
func Summary(data []byte) (string, error) {
	bom := &cyclonedx.BOM{}
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		return "", err
	}
	if bom.Metadata == nil || bom.Metadata.Component == nil || bom.Components == nil {
		return "", errors.New("no image, or nothing in it")
	}
	libraries, files := 0, []string{}
	for _, c := range *bom.Components {
		if c.Type == cyclonedx.ComponentTypeLibrary {
			libraries++
			continue
		}
		files = append(files, strings.TrimSpace(c.Name+" "+c.Version))
	}
	image := bom.Metadata.Component
	return fmt.Sprintf("%s:%s  %s  %s; %d Go modules", image.Name, image.Version, image.BOMRef, strings.Join(files, ", "), libraries), nil
}

// parts are the components of an image and what each needs, by reference.
type parts struct {
	components map[string]cyclonedx.Component
	needs      map[string][]string
}

func newParts() *parts {
	return &parts{components: map[string]cyclonedx.Component{}, needs: map[string][]string{}}
}

// sorted are both in the order of references.
func (p *parts) sorted() (components []cyclonedx.Component, needs []cyclonedx.Dependency) {
	for ref, c := range p.components {
		components = append(components, c)
		d := cyclonedx.Dependency{Ref: ref}
		if on := p.needs[ref]; len(on) > 0 {
			slices.Sort(on)
			d.Dependencies = &on
		}
		needs = append(needs, d)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	slices.SortFunc(needs, func(a, b cyclonedx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	return components, needs
}

// addFile adds a file of the image, and of a Go program, which has that version, what it is made of.
func (p *parts) addFile(file, target, version string) (ref string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	ref = "file:" + target
	c := cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeFile, Name: target,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}}}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		if isELF := bytes.HasPrefix(data, []byte("\x7fELF")); isELF {
			return "", fmt.Errorf("%w: what is in this program cannot be told; build it with go build", err)
		}
		p.components[ref] = c // a text, such as a notice
		return ref, nil
	}
	c.Type, c.Version = cyclonedx.ComponentTypeApplication, version
	properties := []cyclonedx.Property{{Name: "go:package", Value: info.Path}}
	for _, s := range info.Settings {
		properties = append(properties, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	c.Properties = &properties
	p.components[ref] = c
	p.needs[ref] = p.addModules(info)
	return ref, nil
}

// addModules adds the modules of a program, its own among them, and Go's library.
func (p *parts) addModules(info *debug.BuildInfo) (refs []string) {
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	refs = append(refs, p.addModule("std", goVersion, "")) // Go's library and runtime, by the name that purl gives them
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		refs = append(refs, p.addModule(m.Path, m.Version, m.Sum))
	}
	return refs
}

// addModule adds a Go module; sum is its line in go.sum.
func (p *parts) addModule(module, version, sum string) (ref string) {
	ref = "pkg:golang/" + module + "@" + version
	c := cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: module, Version: version, PackageURL: ref}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}
	p.components[ref] = c
	return ref
}
