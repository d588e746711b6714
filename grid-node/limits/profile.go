package limits

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Profile is the limits of a grid as a person writes them: the contents of a file of
// `grid-node serve --limits`, and of the log entry that puts them in force. What is left
// out is no limit. Prices, quantities and values are decimal numbers in text.
type Profile struct {
	Name string `json:"name,omitempty"` // as of the RiskProfile
	// PriceDigits and QuantityDigits are the digits behind the point that a price and a
	// quantity may have; 4 and 0 where there is none given. An order with more is refused.
	PriceDigits    *int   `json:"priceDigits,omitempty"`
	QuantityDigits *int   `json:"quantityDigits,omitempty"`
	TraderTag      uint32 `json:"traderTag,omitempty"`    // of the message: 50 SenderSubID, say; 0: none
	DeskTag        uint32 `json:"deskTag,omitempty"`      // 0: none
	AlgorithmTag   uint32 `json:"algorithmTag,omitempty"` // 0: none. The client is the Account (1)

	MaxOrderVolume     string              `json:"maxOrderVolume,omitempty"`
	MaxOrderValue      string              `json:"maxOrderValue,omitempty"`
	PriceCollar        *Collar             `json:"priceCollar,omitempty"`
	MaxMessages        *Messages           `json:"maxMessages,omitempty"`
	DuplicateWindowMs  uint32              `json:"duplicateWindowMs,omitempty"`
	RepeatedExecutions *RepeatedExecutions `json:"repeatedExecutions,omitempty"`
	CreditThreshold    *CreditThreshold    `json:"creditThreshold,omitempty"`
	ReferencePrices    []ReferencePrice    `json:"referencePrices,omitempty"`
	RestrictedSymbols  []string            `json:"restrictedSymbols,omitempty"`
	AuthorisedPersons  []string            `json:"authorisedPersons,omitempty"` // empty: every trader

	Source *Source `json:"source,omitempty"` // nil: of a file that a person keeps
}

// Collar is in hundredths of a percent; 0 is no collar.
type Collar struct {
	ReferenceBps uint32 `json:"referenceBps,omitempty"` // of the reference price
	LastBps      uint32 `json:"lastBps,omitempty"`      // of the last trade's, in a grid that matches
	Least        string `json:"least,omitempty"`        // that a price may be away in any case
}

// Messages of a session.
type Messages struct {
	PerSecond uint32 `json:"perSecond"`
	Burst     uint32 `json:"burst,omitempty"`   // at once; PerSecond
	Reserve   uint32 `json:"reserve,omitempty"` // of Burst, for cancels alone
}

// RepeatedExecutions halt an algorithm, in a grid that matches.
type RepeatedExecutions struct {
	Count    uint32 `json:"count"`
	WindowMs uint32 `json:"windowMs,omitempty"` // 0: since it was enabled
}

// CreditThreshold bounds what orders and executions of a day use in a partition of a grid
// that matches.
type CreditThreshold struct {
	Total   string   `json:"total,omitempty"`
	Default string   `json:"default,omitempty"` // of a client that is not in Clients
	Clients []Credit `json:"clients,omitempty"`
}

// Credit of a client.
type Credit struct {
	Client string `json:"client"`
	Amount string `json:"amount"`
}

// ReferencePrice of a symbol.
type ReferencePrice struct {
	Symbol string `json:"symbol"`
	Price  string `json:"price"`
}

// Bounds of a profile.
const (
	MaxProfile = 60_000 // bytes
	maxNames   = 2048   // in each list
	maxName    = 64     // bytes
	maxDigits  = 8
)

// ParseProfile reads a profile, strictly: what it does not know is an error, since a limit
// that is misspelt is none. text is untrusted.
func ParseProfile(text []byte) (*Profile, error) {
	if len(text) > MaxProfile {
		return nil, fmt.Errorf("limits: a profile of %d bytes, allowed: at most %d", len(text), MaxProfile)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	p := &Profile{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("limits: %w; allowed: one JSON object with the fields of docs/limits.md", err)
	}
	if _, err := d.Token(); err == nil {
		return nil, fmt.Errorf("limits: text behind the profile, allowed: one JSON object")
	}
	return p, p.validate()
}

// Canonical returns the text that equal profiles have in common.
func (p *Profile) Canonical() []byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic("limits: " + err.Error()) // it has texts and numbers only
	}
	return b
}

// Digits of prices and of quantities behind the point.
func (p *Profile) Digits() (price, quantity int) {
	price, quantity = 4, 0
	if p.PriceDigits != nil {
		price = *p.PriceDigits
	}
	if p.QuantityDigits != nil {
		quantity = *p.QuantityDigits
	}
	return price, quantity
}

// NeedsFills reports whether the profile has rules that need to know executions.
func (p *Profile) NeedsFills() bool {
	return p.CreditThreshold != nil || p.RepeatedExecutions != nil || p.PriceCollar != nil && p.PriceCollar.LastBps != 0
}

// Empty reports whether the profile refuses no order.
func (p *Profile) Empty() bool {
	r, _ := p.Rules()
	return r == Rules{} && p.CreditThreshold == nil && len(p.RestrictedSymbols) == 0 && len(p.AuthorisedPersons) == 0
}

func (p *Profile) validate() error {
	price, qty := p.Digits()
	if price < 0 || price > maxDigits || qty < 0 || qty > maxDigits {
		return fmt.Errorf("limits: %d digits of prices and %d of quantities, allowed: 0..%d", price, qty, maxDigits)
	}
	if err := p.Source.Validate(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	r, err := p.Rules()
	if err != nil {
		return err
	}
	if !r.valid() {
		return fmt.Errorf("limits: collars %d and %d, messages %d a second and %d at once of which %d for cancels, allowed: collars up to %d, %d a second, %d at once, more than for cancels",
			r.CollarReference, r.CollarLast, r.Rate, r.Burst, r.Reserve, maxCollar, maxRate, maxBurst)
	}
	if c := p.CreditThreshold; c != nil {
		if len(c.Clients) > maxNames {
			return tooMany("creditThreshold.clients", len(c.Clients))
		}
		for _, v := range append([]Credit{{"total", c.Total}, {"default", c.Default}}, c.Clients...) {
			if n, err := p.Value(v.Amount); err != nil || n > maxCredit || len(v.Client) > maxName {
				return fmt.Errorf("limits: creditThreshold of %.70q is %q, allowed: up to %d in units of %d digits", v.Client, v.Amount, int64(maxCredit), price+qty)
			}
		}
	}
	if len(p.ReferencePrices) > maxNames {
		return tooMany("referencePrices", len(p.ReferencePrices))
	}
	seen := map[string]bool{}
	for _, v := range p.ReferencePrices {
		if n, ok := Units([]byte(v.Price), price); !ok || n <= 0 || v.Symbol == "" || len(v.Symbol) > maxName || seen[v.Symbol] {
			return fmt.Errorf("limits: referencePrices: %.70q is %q, allowed: a positive price of at most %d digits behind the point, each symbol once", v.Symbol, v.Price, price)
		}
		seen[v.Symbol] = true
	}
	return names(p.RestrictedSymbols, "restrictedSymbols", p.AuthorisedPersons, "authorisedPersons")
}

func tooMany(what string, n int) error {
	return fmt.Errorf("limits: %s has %d rows, allowed: %d", what, n, maxNames)
}

func names(a []string, an string, b []string, bn string) error {
	for i, list := range [][]string{a, b} {
		if what := [2]string{an, bn}[i]; len(list) > maxNames {
			return tooMany(what, len(list))
		} else if slices.ContainsFunc(list, func(s string) bool { return s == "" || len(s) > maxName || strings.Contains(s, "\x01") }) {
			return fmt.Errorf("limits: %s: %.200q, allowed: names of 1..%d bytes", what, list, maxName)
		}
	}
	return nil
}

// Rules returns the rules of the profile, in its units.
func (p *Profile) Rules() (r Rules, err error) {
	price, qty := p.Digits()
	number := func(what, s string, digits int) int64 {
		if s == "" || err != nil {
			return 0
		}
		n, ok := Units([]byte(s), digits)
		if !ok || n <= 0 {
			err = fmt.Errorf("limits: %s is %q, allowed: a positive number with at most %d digits behind the point, below 2^63 without it", what, s, digits)
		}
		return n
	}
	r.MaxVolume = number("maxOrderVolume", p.MaxOrderVolume, qty)
	r.MaxValue = number("maxOrderValue", p.MaxOrderValue, price+qty)
	if c := p.PriceCollar; c != nil {
		r.CollarReference, r.CollarLast, r.CollarLeast = c.ReferenceBps, c.LastBps, number("priceCollar.least", c.Least, price)
	}
	if m := p.MaxMessages; m != nil {
		if r.Rate, r.Burst, r.Reserve = m.PerSecond, m.Burst, m.Reserve; r.Burst == 0 {
			r.Burst = r.Rate
		}
		if r.Rate == 0 && err == nil {
			err = fmt.Errorf("limits: maxMessages.perSecond is 0, allowed: 1..%d", maxRate)
		}
	}
	if x := p.RepeatedExecutions; x != nil {
		r.Repeats, r.RepeatWindow = x.Count, int64(x.WindowMs)*1_000_000
		r.Officers[0] = anyOfficer
	}
	r.DuplicateWindow = int64(p.DuplicateWindowMs) * 1_000_000
	return r, err
}

// anyOfficer is the number of the person who enables algorithms: the log has the name.
const anyOfficer = 1

// Value reads an amount in units of the profile; an empty text is the largest there is.
func (p *Profile) Value(s string) (int64, error) {
	price, qty := p.Digits()
	if s == "" {
		return maxCredit, nil
	}
	n, ok := Units([]byte(s), price+qty)
	if !ok || n < 0 {
		return 0, fmt.Errorf("limits: amount %q, allowed: a number with at most %d digits behind the point", s, price+qty)
	}
	return n, nil
}

// CreditOf returns the credit of a client.
func (p *Profile) CreditOf(client string) int64 {
	amount := ""
	if c := p.CreditThreshold; c != nil {
		amount = c.Default
		for i := range c.Clients {
			if c.Clients[i].Client == client {
				amount = c.Clients[i].Amount
			}
		}
	}
	n, _ := p.Value(amount) // validated
	return n
}

// Total returns the credit of all clients together.
func (p *Profile) Total() int64 {
	amount := ""
	if c := p.CreditThreshold; c != nil {
		amount = c.Total
	}
	n, _ := p.Value(amount)
	return n
}

// Units reads a decimal number as so many units of 10^-digits. It reports whether it is one,
// has no more digits than that, but for zeros, and fits.
func Units(s []byte, digits int) (n int64, ok bool) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	point, any := false, false
	left := digits
	for _, c := range s {
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		any = true
		if point {
			if left == 0 {
				if c != '0' {
					return 0, false
				}
				continue
			}
			left--
		}
		if n > (1<<63-1-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	for ; left > 0; left-- {
		if n > (1<<63-1)/10 {
			return 0, false
		}
		n *= 10
	}
	if neg {
		n = -n
	}
	return n, any
}
