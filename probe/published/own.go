package published

// FlashScenario is of the public benchmark flash1-dev/matching-engine-benchmark, which is no table of a report.
const FlashScenario = "match-flash"

// AuctionScenario is a call auction under load.
const AuctionScenario = "match-auction"

// SessionsScenario are FIX sessions of many users through concentrators, beside the exchange of the JADE report.
const SessionsScenario = "jade-sessions"

// own are scenarios that no report asks for.
var own = []Scenario{{
	Name: FlashScenario, Seed: "OrderGrid", Reproduces: "the five flows of flash1-dev/matching-engine-benchmark through the matching engine",
	Verdict: "the reports have the published SHA-256",
}, {
	Name: AuctionScenario, Seed: "OrderGrid", Reproduces: "a call auction of many orders in a grid that matches",
	Verdict: "price, volume and each trade are the naive matcher's; an order of a large auction takes no longer than one of a small one, and other books trade meanwhile",
}, {
	Name: SessionsScenario, Seed: "OrderGrid", Reproduces: "users with FIX sessions of their own through concentrators, at the numbers of users of the JADE report's exchange (TradeEm-TCP)",
	Verdict: "no order lost or twice; TPS of the most users at least 0.95 of that of the fewest; p99 at the rate at most 10 ms; a further session takes at most 6 KiB of its gateway",
}}
