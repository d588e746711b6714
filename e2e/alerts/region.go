package alerts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/client"
)

// regioned gives a grid a region with room for few values.
func regioned(dir string) (gridOptions, error) {
	file := filepath.Join(dir, "regions.yaml")
	return gridOptions{args: []string{"--", "--regions", file}}, os.WriteFile(file, []byte("memory: 16Mi\nregions: [{name: quotes, maxBytes: 16Ki}]\n"), 0o600)
}

// fillRegion puts values until each partition has refused one.
func fillRegion(ctx context.Context, w *world) error {
	const most = 10_000
	refused := map[string]bool{}
	for i := 0; len(refused) < len(w.grid.client.Table()); i++ {
		key := fmt.Appendf(nil, "key-%d", i)
		_, err := w.grid.client.Region("quotes").Put(ctx, key, make([]byte, 200))
		switch {
		case errors.Is(err, client.ErrCapacity):
			refused[w.grid.client.RouteClOrdID(key).String()] = true
		case err != nil:
			return err
		case i == most:
			return fmt.Errorf("%d values fit into a region of 16 KiB", most)
		}
	}
	return nil
}
