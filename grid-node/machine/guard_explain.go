package machine

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
)

// Explain returns the text for an order that Admit refuses: the rule, the value and the
// limit. It allocates.
func (m *Machine) Explain(o *Offer, why limits.Reason) string {
	g := m.Guard
	value, limit := g.explain(m, o, why)
	text := fmt.Sprintf("%s: %v", why.Rule(), why)
	if value != "" {
		text += ": " + value
	}
	if limit != "" {
		text += ", allowed: " + limit
	}
	return text
}

func (g *Guard) explain(m *Machine, o *Offer, why limits.Reason) (value, limit string) {
	f, msg, p := o.Fields, o.Message, g.profile
	text := func(off uint16) string {
		if off == 0 {
			return "none"
		}
		return fmt.Sprintf("%.40q", fieldAt(msg, off))
	}
	symbol := fmt.Sprintf("%.64q", msg[f.SymbolOff:][:f.SymbolLen])
	switch why {
	case limits.TooManyMessages:
		x := g.core.RulesOf(oneProfile)
		return "", fmt.Sprintf("%d a second and %d at once, %d of them cancels", x.Rate, x.Burst, x.Reserve)
	case limits.Killed:
		return g.killOf(m, o), "orders after an unkill; cancels now"
	case limits.NotAuthorised:
		s := m.senderIn(o)
		return fmt.Sprintf("trader %.64q", s.names[0]), "those in authorisedPersons"
	case limits.RestrictedSymbol:
		return "symbol " + symbol, "those that are not restricted"
	case limits.MaxVolume:
		return "quantity " + text(f.QtyOff), p.MaxOrderVolume
	case limits.MaxValue, limits.Overflow:
		return fmt.Sprintf("quantity %s at %s", text(f.QtyOff), text(f.PriceOff)), p.MaxOrderValue
	case limits.PriceCollar, limits.NoPrice:
		reference, last := g.core.Prices(g.symbols[string(msg[f.SymbolOff:][:f.SymbolLen])])
		limit = "a limit price"
		if c := p.PriceCollar; c != nil {
			limit = fmt.Sprintf("within %d and %d hundredths of a percent of the reference %s and the last %s", c.ReferenceBps, c.LastBps, g.decimal(reference), g.decimal(last))
		}
		return fmt.Sprintf("price %s of %s", text(f.PriceOff), symbol), limit
	case limits.Duplicate:
		return "", fmt.Sprintf("an equal order after %d ms", p.DuplicateWindowMs)
	case limits.ClientCredit:
		return fmt.Sprintf("account %.64q", msg[f.AccountOff:][:f.AccountLen]), "what its credit leaves"
	case limits.BadField, limits.BadQty:
		return fmt.Sprintf("quantity %s at %s", text(f.QtyOff), text(f.PriceOff)), fmt.Sprintf("a positive quantity, %d digits behind its point and %d behind that of the price", g.digits[1], g.digits[0])
	}
	return "", ""
}

func (g *Guard) decimal(units int64) string {
	if units == 0 {
		return "none"
	}
	text, scale := "", int64(1)
	for range g.digits[0] {
		scale *= 10
	}
	if g.digits[0] > 0 {
		text = fmt.Sprintf(".%0*d", g.digits[0], units%scale)
	}
	return fmt.Sprint(units/scale) + text
}

// killOf returns the kill that refuses an order.
func (g *Guard) killOf(m *Machine, o *Offer) string {
	s := m.senderIn(o)
	names := [6]string{string(SessionName(s.id)), string(s.names[0]), string(s.names[1]), string(s.names[2]), string(s.names[3]), ""}
	for i := range g.kills {
		if k := &g.kills[i]; names[k.Scope] == k.Name {
			return fmt.Sprintf("%v %s killed by %s as entry %d: %s", k.Scope, k.Name, k.Who, k.Entry, k.Why)
		}
	}
	return ""
}
