package listener

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Judge asks the grid who the holder of a token is. Its nodes ask the API server (TokenReview) and apply their rules, so the
// gateway needs no right of its own. client.ErrUnauthenticated and client.ErrNotPermitted are judgements; another error
// means that none was made.
type Judge func(ctx context.Context, token string) (client.Identity, error)

const (
	// maxProofs bounds the tokens that the grid has accepted, and maxJudged those that it is asked about at the same time.
	maxProofs = 4096
	maxJudged = 16
	judgeTime = 4 * time.Second // shorter than a client has to log in
	// proofLasts is how long a judgement is used where the grid names no time, or cannot be asked again.
	proofLasts = time.Minute
)

// proof is a token that the grid has accepted, and what its holder may read.
type proof struct {
	sum    [sha256.Size]byte
	token  string
	user   string
	may    uint16
	grants [sha256.Size]byte // what it was given
	until  time.Time
	seen   bool // a client has it
}

// proofs are the tokens that the grid has accepted. The zero value has none.
type proofs struct {
	mu     sync.Mutex
	bySum  map[[sha256.Size]byte]*proof
	judged int // at present
}

func (s *proofs) keeps(p *proof) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.seen = true
	return s.bySum[p.sum] == p
}

// grantOf is what the holder of a token may read: what the file has for the user, or all with the permission Watch.
func (a *Access) grantOf(p *proof) (*server.Grant, error) {
	if e := a.known.Load().byUser[p.user]; e != nil {
		return &server.Grant{Client: e.Name, Topics: e.grant.Topics, Publish: e.grant.Publish, Identity: p}, nil
	}
	if p.may&wire.MayWatch == 0 {
		return nil, fmt.Errorf("%.100s is not in the file of clients and has no permission Watch", p.user)
	}
	return &server.Grant{Client: p.user, Topics: everything, Identity: p}, nil
}

// grants sums up what grantOf returns.
func (a *Access) grants(p *proof) [sha256.Size]byte {
	g, err := a.grantOf(p)
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", g.Client, g.Topics, g.Publish))
}

// byProof returns the grant of a token that the grid has accepted before. server.ErrUndecided: it has to be asked.
func (a *Access) byProof(sum [sha256.Size]byte) (*server.Grant, error) {
	if a.files.Judge == nil {
		return nil, errToken
	}
	a.proofs.mu.Lock()
	p := a.proofs.bySum[sum]
	fresh := p != nil && time.Now().Before(p.until)
	a.proofs.mu.Unlock()
	if !fresh {
		return nil, server.ErrUndecided
	}
	return a.grantOf(p)
}

// ask has the grid judge a token; decided is called once, from another goroutine. false: too many are being judged.
func (a *Access) ask(token string, decided func(*server.Grant, error)) bool {
	s := &a.proofs
	s.mu.Lock()
	full := s.judged >= maxJudged
	if !full {
		s.judged++
	}
	s.mu.Unlock()
	if full {
		return false
	}
	go func() {
		p, err := a.judge(token)
		s.mu.Lock()
		s.judged--
		if err == nil {
			if s.bySum == nil {
				s.bySum = map[[sha256.Size]byte]*proof{}
			}
			if old := s.bySum[p.sum]; old != nil && old.user == p.user && old.may == p.may {
				old.until, p = p.until, old
			} else if old == nil && len(s.bySum) >= maxProofs {
				err = fmt.Errorf("%d tokens of the grid are in use, allowed: %d", len(s.bySum), maxProofs)
			} else {
				s.bySum[p.sum] = p
			}
		}
		if err == nil {
			p.seen = true
		}
		s.mu.Unlock()
		if err != nil {
			decided(nil, err)
			return
		}
		decided(a.grantOf(p))
	}()
	return true
}

var errNotJudged = errors.New("the grid cannot be asked about the token: try again")

// judge asks the grid. Its error has nothing of the token.
func (a *Access) judge(token string) (*proof, error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime)
	defer cancel()
	id, err := a.files.Judge(ctx, token)
	switch {
	case errors.Is(err, client.ErrUnauthenticated):
		return nil, errToken
	case errors.Is(err, client.ErrNotPermitted):
		return nil, fmt.Errorf("%w by the grid: no rule gives the token's user a permission", client.ErrNotPermitted)
	case err != nil:
		return nil, errNotJudged
	}
	p := &proof{sum: sha256.Sum256([]byte(token)), token: token, user: id.User, may: id.Permissions, until: time.Now().Add(proofLasts)}
	if id.For > 0 {
		p.until = time.Now().Add(id.For)
	}
	p.grants = a.grants(p)
	return p, nil
}

// reviewProofs drops the tokens that no client has, and has the grid judge those again whose time is over. It reports
// whether clients have lost their proof. review marks, by keeps, the proofs of all clients.
func (a *Access) reviewProofs(review func()) (lost bool) {
	s := &a.proofs
	s.mu.Lock()
	for _, p := range s.bySum {
		p.seen = false
	}
	some := len(s.bySum) > 0
	s.mu.Unlock()
	if !some {
		return false
	}
	review()
	var due []*proof
	s.mu.Lock()
	for sum, p := range s.bySum {
		switch over := time.Now().After(p.until); {
		case over && !p.seen:
			delete(s.bySum, sum)
		case over:
			due = append(due, p)
		}
	}
	s.mu.Unlock()
	for _, p := range due {
		now, err := a.judge(p.token)
		s.mu.Lock()
		switch {
		case errors.Is(err, errNotJudged):
			p.until = time.Now().Add(proofLasts) // it keeps its identity, as at a node
		case err != nil || now.user != p.user || now.may != p.may:
			delete(s.bySum, p.sum)
			lost = true
		default:
			p.until = now.until
		}
		s.mu.Unlock()
	}
	return lost
}
