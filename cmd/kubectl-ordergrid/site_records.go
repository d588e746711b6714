package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// siteRecord is the record of a partition, as far as promotion and demotion need it.
type siteRecord struct {
	name      string
	partition wire.PartitionID
	claimed   bool
	standby   bool
	term      int64
	epoch     int64
	promote   *api.SitePromotion // decided, done or not
	demote    *api.SiteDemotion
	// ended is the token that an earlier demote read; nil: none did, or nothing keeps it.
	ended *tokenEnd
}

func (r *siteRecord) role() string {
	switch {
	case !r.claimed:
		return "not claimed"
	case r.standby:
		return string(api.SiteStandby)
	}
	return string(api.SiteActive)
}

// waiting is a decision that is not carried out yet, for tables; "" for none.
func (r *siteRecord) waiting() string {
	switch {
	case r.claimed && r.standby && r.promote != nil && r.promote.Term > r.term:
		return fmt.Sprintf("promote to term %d (%s)", r.promote.Term, r.promote.Mode)
	case r.claimed && !r.standby && r.demote != nil && r.demote.Term == r.term:
		return "demote"
	}
	return ""
}

// siteRecords are the records of one grid, in a cluster or in the arbiter of grid-node dev.
type siteRecords interface {
	// list returns all partitions by number.
	list(ctx context.Context) ([]siteRecord, error)
	// identity tells this grid from every other, also from one of its name.
	identity(ctx context.Context) (string, error)
	// promote and demote write a decision; nil withdraws it.
	promote(ctx context.Context, name string, p *api.SitePromotion) error
	demote(ctx context.Context, name string, d *api.SiteDemotion) error
	// keep notes where the log of a demoted partition ends.
	keep(ctx context.Context, name string, end tokenEnd) error
}

// annotationSiteEnd is where a demoted partition's log ended, for a demote that is run again: later the other site's
// entries follow, and the end is no token any more.
const annotationSiteEnd = "ordergrid.dev/site-end"

// kubeRecords are GridPartitions.
type kubeRecords struct {
	c    *cluster
	grid string
}

func (k kubeRecords) identity(ctx context.Context) (string, error) {
	g, err := k.c.grid(ctx, k.grid)
	if err != nil {
		return "", err
	}
	return string(g.UID), nil
}

func (k kubeRecords) list(ctx context.Context) ([]siteRecord, error) {
	parts, err := k.c.partitions(ctx, k.grid)
	if err != nil {
		return nil, err
	}
	out := make([]siteRecord, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		r := siteRecord{name: p.Name, partition: wire.PartitionID(p.Spec.Partition), claimed: p.Status.Epoch > 0, epoch: p.Status.Epoch}
		if s := p.Status.Site; s != nil {
			r.standby, r.term = s.Role == api.SiteStandby, s.Term
		}
		if s := p.Spec.Site; s != nil {
			r.promote, r.demote = s.Promote, s.Demote
		}
		var end tokenEnd
		if json.Unmarshal([]byte(p.Annotations[annotationSiteEnd]), &end) == nil {
			r.ended = &end
		}
		out = append(out, r)
	}
	return out, nil
}

func (k kubeRecords) promote(ctx context.Context, name string, p *api.SitePromotion) error {
	if p == nil {
		return k.patch(ctx, name, "promote", nil)
	}
	// All fields are given: a merge would keep the token of an earlier decision.
	fields := map[string]any{"term": p.Term, "mode": p.Mode, "seq": nil, "hash": nil}
	if p.Seq > 0 {
		fields["seq"], fields["hash"] = p.Seq, p.Hash
	}
	return k.patch(ctx, name, "promote", fields)
}

func (k kubeRecords) demote(ctx context.Context, name string, d *api.SiteDemotion) error {
	if d == nil {
		return k.patch(ctx, name, "demote", nil)
	}
	// The end of an earlier demotion is none of this one.
	if err := k.c.annotate(ctx, name, annotationSiteEnd, ""); err != nil {
		return err
	}
	return k.patch(ctx, name, "demote", map[string]any{"term": d.Term})
}

func (k kubeRecords) keep(ctx context.Context, name string, end tokenEnd) error {
	text, err := json.Marshal(end)
	if err != nil {
		return err
	}
	return k.c.annotate(ctx, name, annotationSiteEnd, string(text))
}

func (k kubeRecords) patch(ctx context.Context, name, decision string, value any) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"site": map[string]any{decision: value}}})
	if err != nil {
		return err
	}
	err = k.c.own.Patch(types.MergePatchType).Namespace(k.c.namespace).Resource("gridpartitions").Name(name).
		Param("fieldManager", "kubectl-ordergrid").Body(body).Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; the chart's ClusterRole ending in -operate grants it", err)
	}
	return err
}

// devRecord is a record as the arbiter of grid-node dev has it, as far as it is used here.
type devRecord struct {
	Name    string `json:"name"`
	Epoch   int64  `json:"epoch"`
	Standby bool   `json:"standby"`
	Term    int64  `json:"term"`
	Spec    struct {
		Grid      string     `json:"grid"`
		Partition int        `json:"partition"`
		Promote   devPromote `json:"promote"`
		Demote    devDemote  `json:"demote"`
	} `json:"spec"`
}

type devPromote struct {
	Term   int64  `json:"term"`
	Seq    int64  `json:"seq,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Forced bool   `json:"forced,omitempty"`
}

type devDemote struct {
	Wanted bool  `json:"wanted"`
	Term   int64 `json:"term"`
}

// devRecords are those of grid-node dev, at the address of its arbiter.
type devRecords struct{ url, grid string }

func (d devRecords) identity(context.Context) (string, error) { return d.url, nil }

func (d devRecords) list(ctx context.Context) ([]siteRecord, error) {
	var all []devRecord
	if err := d.call(ctx, http.MethodGet, "/v1/partitions", nil, &all); err != nil {
		return nil, err
	}
	var out []siteRecord
	for i := range all {
		p := &all[i]
		if p.Spec.Grid != d.grid {
			continue
		}
		r := siteRecord{name: p.Name, partition: wire.PartitionID(p.Spec.Partition), claimed: p.Epoch > 0, standby: p.Standby, term: p.Term, epoch: p.Epoch}
		if s := &p.Spec.Promote; s.Term > 0 {
			r.promote = &api.SitePromotion{Term: s.Term, Mode: api.PromoteClean, Seq: s.Seq, Hash: s.Hash}
			if s.Forced {
				r.promote.Mode = api.PromoteForced
			}
		}
		if s := &p.Spec.Demote; s.Wanted {
			r.demote = &api.SiteDemotion{Term: s.Term}
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--arbiter %s: it has no partition of a grid %q; the grid of grid-node dev is called dev", d.url, d.grid)
	}
	slices.SortFunc(out, func(a, b siteRecord) int { return cmp.Compare(a.partition, b.partition) })
	return out, nil
}

func (d devRecords) promote(ctx context.Context, name string, p *api.SitePromotion) error {
	var s devPromote
	if p != nil {
		s = devPromote{Term: p.Term, Seq: p.Seq, Hash: p.Hash, Forced: p.Mode == api.PromoteForced}
	}
	return d.call(ctx, http.MethodPut, "/v1/partitions/"+url.PathEscape(name)+"/spec", map[string]any{"promote": s}, nil)
}

func (d devRecords) demote(ctx context.Context, name string, by *api.SiteDemotion) error {
	var s devDemote
	if by != nil {
		s = devDemote{Wanted: true, Term: by.Term}
	}
	return d.call(ctx, http.MethodPut, "/v1/partitions/"+url.PathEscape(name)+"/spec", map[string]any{"demote": s}, nil)
}

func (devRecords) keep(context.Context, string, tokenEnd) error { return nil }

func (d devRecords) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var r io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(d.url, "/")+path, r)
	if err != nil {
		return usageError{fmt.Errorf("--arbiter: value %q, allowed: http://host:port, which grid-node dev prints: %w", d.url, err)}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("--arbiter: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	switch {
	case err != nil:
		return fmt.Errorf("--arbiter: %s %s: %w", method, path, err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("--arbiter: %s %s: %s: %.300s", method, path, resp.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
