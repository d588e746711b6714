package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func archived(mediaType string) bool {
	return slices.Contains([]string{ocispec.MediaTypeImageLayer, ocispec.MediaTypeImageLayerGzip, dockerLayer}, mediaType)
}

// unpack returns the only file of a layer. What it unpacks is bounded, also where it was compressed a thousandfold.
func (c *Client) unpack(blob []byte, mediaType string) ([]byte, error) {
	no := func(format string, args ...any) error {
		return &Error{NoModule, "the layer of the image " + fmt.Sprintf(format, args...)}
	}
	var r io.Reader = bytes.NewReader(blob)
	if mediaType != ocispec.MediaTypeImageLayer {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, no("is not compressed as its type says: %v", err)
		}
		r = z
	}
	bounded := &io.LimitedReader{R: r, N: int64(c.MaxBytes) + maxAround}
	archive := tar.NewReader(bounded)
	var module []byte
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && module != nil:
			return module, nil
		case errors.Is(err, io.EOF):
			return nil, no("has no file")
		case bounded.N == 0:
			return nil, c.tooLarge("the unpacked layer of the image", -1)
		case err != nil:
			return nil, no("is no archive: %v", err)
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, no("has %.100q, which is no regular file; allowed: directories and one file", h.Name)
		case module != nil:
			return nil, no("has more than one file, %.100q too; allowed: directories and one file", h.Name)
		case h.Size > int64(c.MaxBytes):
			return nil, c.tooLarge(fmt.Sprintf("file %.100q of the image", h.Name), h.Size)
		}
		module = make([]byte, h.Size)
		if _, err := io.ReadFull(archive, module); err != nil {
			return nil, no("ends within %.100q: %v", h.Name, err)
		}
	}
}
