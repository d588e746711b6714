package wire

import (
	"reflect"
	"strings"
	"testing"
)

// TestMarketBand: a band has its prices, no state, and needs a feature that other operations do not.
func TestMarketBand(t *testing.T) {
	in := Market{ReqID: 1, Op: MarketBand, Price: -5, Top: 12, Symbol: []byte("IBM"), Reason: []byte("volatility")}
	frame := AppendMarket(nil, 0, &in)
	var out Market
	if err := DecodeMarket(frame, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%+v (%v), want %+v", out, err, in)
	}
	halt := AppendMarket(nil, 0, &Market{Op: MarketState, State: 4, Symbol: []byte("IBM"), Reason: []byte("x")})
	read := AppendReadOrders(nil, 0, &ReadOrders{Most: 1, Symbol: []byte("IBM")})
	if a, b, c := NeededFeatures(frame), NeededFeatures(halt), NeededFeatures(read); a != FeatureMarketBand || b != 0 || c != FeatureReadOrders {
		t.Errorf("features %d, %d, %d", a, b, c)
	}
	frame[33] = 4
	if err := DecodeMarket(frame, &out); err == nil || !strings.Contains(err.Error(), "0, of a band") {
		t.Errorf("a band with a state: %v", err)
	}
}
